"""What the tests take a ``docker run`` line for: only what it says, and never more than it says."""

from __future__ import annotations

import shlex

import pytest

from tests import containers

START = {"Entrypoint": ["/bin/program"], "Env": ["PATH=/bin"], "WorkingDir": "/work"}
LINE = "docker run --rm --cap-add SYS_ADMIN --security-opt systempaths=unconfined --volume /a:/work image go"


def test_a_line_is_understood() -> None:
    command = containers.parse(shlex.split(LINE))
    assert (command.image, command.words, command.volumes) == ("image", ("go",), {"/work": "/a"})
    assert command.capabilities == containers.DEFAULT_CAPABILITIES | {"SYS_ADMIN"}
    assert command.unconfined == {"systempaths"}


@pytest.mark.parametrize("option", ["--privileged image", "--security-opt label=disable image"])
def test_an_option_that_is_not_known_is_refused(option: str) -> None:
    with pytest.raises(LookupError):
        containers.parse(["docker", "run", *option.split()])


def test_nothing_is_allowed_that_the_line_does_not_allow() -> None:
    plain = containers.configuration(containers.parse(["docker", "run", "image"]), START)
    allowed = set(plain["process"]["capabilities"]["effective"])
    assert not allowed & {"CAP_SYS_ADMIN", "CAP_NET_ADMIN"}
    refused = {name for rule in plain["linux"]["seccomp"]["syscalls"] for name in rule["names"]}
    assert {"unshare", "setns", "mount", "clone"} <= refused
    assert "/proc/sys" in plain["linux"]["readonlyPaths"]
    given = containers.configuration(containers.parse(shlex.split(LINE)), START)
    assert given["linux"]["seccomp"]["syscalls"] == []
    assert given["linux"]["maskedPaths"] == []


def test_a_user_has_no_capabilities() -> None:
    command = containers.parse(["docker", "run", "--user", "1000:1000", "image"])
    assert containers.configuration(command, START)["process"]["capabilities"]["effective"] == []
