"""What docs/howto/without-the-repository.md says, tried as somebody would who has nothing else of ours.

A bare Debian with the packages that the page names and a wheel; and the image, in containers that have the
options that the page gives, and no others. Both are containers of runc, for a chroot would forbid nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.resources import version
from testbed.supplies import runner
from testbed.supplies.box import building
from tests import containers
from tests.containers import Command
from tests.paths import ROOT
from tests.wheels import build

pytestmark = [
    pytest.mark.long(one_in=0),
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for containers as Docker makes them"),
    pytest.mark.skipif(shutil.which("runc") is None, reason="needs runc: apt-get install runc"),
]

PAGE = (ROOT / "docs" / "howto" / "without-the-repository.md").read_text(encoding="utf-8")
PIPX_NEEDS = ["pip", "setuptools", "wheel"]  # it brings them up to date first
FROM_NOTHING = 120.0  # seconds to the first figure
JUDGED = (0, 3)  # held, or nothing to be said on a machine that is busy with other tests
SHORT = shlex.split(
    "bench --scenario contmec --enforcement bandwidth --scale 0.1 --set flows[0].duration=3"
    " --set flows[1].duration=3 --set flows[2].duration=3"
    " --set disturbances[0].start=1 --set disturbances[0].duration=1"
)

Run = Callable[[Command], subprocess.CompletedProcess[str]]


def docker_lines(directory: Path, user: int) -> list[Command]:
    """Return the page's ``docker run`` lines, as a shell in a directory understands them."""
    blocks = re.findall(r"```sh\n(docker run .*?)```", PAGE, re.DOTALL)
    meant = {"\\\n": "", "$PWD": str(directory), "$(id -u):$(id -g)": f"{user}:{user}", "VERSION": version()}
    for written, value in meant.items():
        blocks = [block.replace(written, value) for block in blocks]
    return [containers.parse(shlex.split(block)) for block in blocks]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The current directory of whoever types, who may be anybody."""
    directory = tmp_path / "work"
    directory.mkdir()
    directory.chmod(0o777)
    return directory


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Assemble the image, load it, and return what runs it."""
    directory = tmp_path_factory.mktemp("image")
    make = [sys.executable, "tasks.py", "image.build"]
    environment = {**os.environ, "CONCORDE_CACHE": str(directory)}
    subprocess.run(make, cwd=ROOT, env=environment, check=True, capture_output=True)
    (archive,) = directory.rglob("bench-*.tar")
    start = containers.unpack(archive, directory)
    archive.unlink()

    def run(command: Command) -> subprocess.CompletedProcess[str]:
        assert command.image == runner.IMAGE
        return containers.run(command, start, directory, f"concorde-{os.getpid()}", FROM_NOTHING)

    return run


def figures(directory: Path) -> list[Path]:
    return [file for file in directory.glob("reports/2*/figures/*") if file.stat().st_size]


def judged(work: Path) -> set[str]:
    """What was run and judged; what a busy machine could not tell was run again, and has a recording more."""
    return {file.parent.name.partition("-")[2] for file in work.glob("reports/2*/summary.json")}


def test_the_image_judges_the_papers_experiments_with_the_capabilities_of_the_page(
    run: Run, work: Path
) -> None:
    with_capabilities, _ = docker_lines(work, 1000)
    assert with_capabilities.words == ("bench",)
    began = time.monotonic()
    done = run(with_capabilities)
    assert time.monotonic() - began < FROM_NOTHING
    assert done.returncode in JUDGED, done.stdout + done.stderr
    assert judged(work) == {"contmec-pod", "kubernetes-pod"}
    assert figures(work)


def test_the_image_judges_without_any_capability_and_leaves_files_of_ones_own(run: Run, work: Path) -> None:
    _, as_oneself = docker_lines(work, 1000)
    done = run(replace(as_oneself, words=tuple(SHORT)))
    assert done.returncode in JUDGED, done.stdout + done.stderr
    assert {file.stat().st_uid for file in figures(work)} == {1000}
    assert run(replace(as_oneself, words=("doctor",))).returncode == 0


def weakened(command: Command) -> dict[str, Command]:
    """Return what is left of a command without one of its options, by that option."""
    return {
        **{
            name: replace(command, capabilities=command.capabilities - {name})
            for name in command.capabilities - containers.DEFAULT_CAPABILITIES
        },
        **{
            name: replace(command, unconfined=command.unconfined - {name})
            for name in command.unconfined - {"apparmor"}
        },
    }


def test_each_option_of_the_page_is_needed(run: Run, work: Path) -> None:
    """But for AppArmor's, which not every kernel has."""
    refused = {name: run(one) for line in docker_lines(work, 1000) for name, one in weakened(line).items()}
    assert set(refused) == {"SYS_ADMIN", "NET_ADMIN", "seccomp", "systempaths"}
    assert {name: done.returncode for name, done in refused.items()} == dict.fromkeys(refused, 4)
    assert "concorde-testbed doctor says what to do" in refused["SYS_ADMIN"].stderr


@pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="this machine has no /dev/net/tun")
def test_the_device_of_the_page_makes_links_that_take_time_possible(run: Run, work: Path) -> None:
    (device,) = re.findall(r"`--device (\S+)`", PAGE)
    line, _ = docker_lines(work, 1000)
    found = {
        bool(command.devices): run(command).stdout
        for command in (replace(line, words=("doctor",), devices=devices) for devices in ((), (device,)))
    }
    assert {given: "ok       TAP devices" in said for given, said in found.items()} == {
        False: False,
        True: True,
    }


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a bare Debian in ``rootfs`` that has the page's packages, and wheels in ``wheels``."""
    if shutil.which("mmdebstrap") is None or not Path("/etc/debian_version").exists():
        pytest.skip("needs Debian, and mmdebstrap: apt-get install mmdebstrap")
    (packages,) = re.findall(r"^apt-get install (.*)$", PAGE, re.MULTILINE)
    wanted = building.read_recipe()

    def output(argv: Sequence[str]) -> str:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    directory = tmp_path_factory.mktemp("debian")
    make = [
        "mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages.split())}",
        *(f"--aptopt={line}" for line in output(building.PROXIES).splitlines()),
        "--format=directory", wanted.suite, str(directory / "rootfs"), "-",
    ]  # fmt: skip
    mirrors = building.find_mirrors(wanted, output(building.INDEX_TARGETS), "", "")
    sources = building.package_sources(wanted, mirrors)
    given = directory / "sources"
    given.write_text(sources, encoding="utf-8")
    with given.open() as stdin, subprocess.Popen(make, stdin=stdin, stderr=subprocess.PIPE) as making:
        fill(directory / "wheels")
        _, words = making.communicate()
    assert making.returncode == 0, words
    return directory


def fill(wheels: Path) -> None:
    """Put our wheel into a directory, and all that pip would fetch for it."""
    build(wheels)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", f"--dest={wheels}"]
    for wanted in (["--require-hashes", "-r", "requirements/run.txt"], PIPX_NEEDS):
        subprocess.run([*pip, *wanted], cwd=ROOT, check=True, capture_output=True)


# What the page says, and then the other way to start it, by the Python that has it now.
AS_THE_PAGE_SAYS = """
status=0
{} >&2 || status=$?
~/.local/pipx/.cache/*/bin/python -m concorde_testbed --version
~/.local/pipx/.cache/*/bin/python -m concorde_testbed doctor >&2
exit $status
"""


def test_a_wheel_judges_the_papers_experiments_on_a_bare_debian(debian: Path, work: Path) -> None:
    (line,) = re.findall(r"^pipx run .*$", PAGE, re.MULTILINE)
    (wheel,) = (debian / "wheels").glob("concorde_testbed-*.whl")
    shutil.copy(wheel, work)
    start: dict[str, Any] = {
        "Entrypoint": ["sh", "-c"],
        "Env": ["PATH=/usr/bin:/bin", "HOME=/root", "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels"],
        "WorkingDir": "/work",
    }
    # A machine of one's own forbids nothing.
    machine = Command(
        "", (AS_THE_PAGE_SAYS.format(line.replace("VERSION", version())),),
        capabilities=containers.DEFAULT_CAPABILITIES | {"SYS_ADMIN", "NET_ADMIN"},
        unconfined=frozenset(containers.UNCONFINED),
        volumes={"/work": str(work), "/wheels": str(debian / "wheels")},
    )  # fmt: skip
    began = time.monotonic()
    done = containers.run(machine, start, debian, f"concorde-{os.getpid()}", FROM_NOTHING)
    assert time.monotonic() - began < FROM_NOTHING
    assert done.returncode in JUDGED, done.stdout + done.stderr
    assert done.stdout == f"concorde-testbed {version()}\n"
    assert judged(work) == {"contmec-pod", "kubernetes-pod"}
    assert figures(work)
    (site,) = (debian / "rootfs/root/.local/pipx/.cache").glob("*/lib/python3*/site-packages")
    beside = {path.name for path in site.iterdir()}
    assert "concorde_testbed" in beside
    assert not beside & {"bench", "testbed", "edge", "plugin", "concorde", "tasks.py", "scenarios"}
    assert not (site / "concorde_testbed" / "tree" / "build").exists()
