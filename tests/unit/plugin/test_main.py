"""The built program against everything a runtime should never send it."""

from __future__ import annotations

import json
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import cases
from tests.unit.plugin.conftest import Program
from tests.unit.plugin.examples import json_values

# Each example is a process of 15 ms or more; CONCORDE_PLUGIN_PROCESSES says how many there are.
processes = settings(
    max_examples=cases.count("CONCORDE_PLUGIN_PROCESSES", 30, 600),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NO_NETNS = "/nowhere/netns"
ADD = {"CNI_COMMAND": "ADD", "CNI_CONTAINERID": "pod", "CNI_IFNAME": "eth0", "CNI_NETNS": NO_NETNS}


def network(directory: Path, **keys: object) -> bytes:
    whole = {"cniVersion": "1.1.0", "name": "net", "type": "concorde", "subnet": "10.0.0.0/24"}
    return json.dumps({**whole, "stateDir": str(directory), **keys}).encode()


def test_version_answers_with_all_supported_versions(program: Program) -> None:
    expected = {"cniVersion": "0.2.0", "supportedVersions": ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]}
    assert program(b'{"cniVersion": "0.2.0"}', {"CNI_COMMAND": "VERSION"}) == (0, expected)


@pytest.mark.parametrize(
    ("verb", "version", "code"),
    [
        ("ADD", "0.2.0", 1),
        ("ADD", "2.0.0", 1),
        ("CHECK", "0.3.1", 1),
        ("GC", "1.0.0", 1),
        ("STATUS", "1.0.0", 1),
        ("ADD", "0.3.0", 3),
        ("CHECK", "0.4.0", 3),
    ],
)
def test_a_verb_needs_its_version(
    program: Program, tmp_path: Path, verb: str, version: str, code: int
) -> None:
    status, error = program(network(tmp_path, cniVersion=version), {**ADD, "CNI_COMMAND": verb})
    assert status == 1
    assert error is not None
    assert error["code"] == code


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("CNI_COMMAND", "add", 4),
        ("CNI_CONTAINERID", "", 4),
        ("CNI_CONTAINERID", "-a", 4),
        ("CNI_CONTAINERID", "a b", 4),
        ("CNI_CONTAINERID", "a" * 201, 4),
        ("CNI_IFNAME", "", 4),
        ("CNI_IFNAME", "a/b", 4),
        ("CNI_IFNAME", "eth0 master", 4),
        ("CNI_IFNAME", "sixteen-letters-", 4),
        ("CNI_NETNS", "", 4),
        ("CNI_NETNS", "run/netns/pod", 4),
        ("CNI_NETNS", "/run/netns/pod\nlink del dev eth0", 4),
        ("CNI_NETNS", "/proc/self/ns/net", 4),
        ("CNI_NETNS", NO_NETNS, 3),
    ],
)
def test_a_bad_parameter_is_named(
    program: Program, tmp_path: Path, variable: str, value: str, code: int
) -> None:
    status, error = program(network(tmp_path), {**ADD, variable: value})
    assert status == 1
    assert error is not None
    assert error["code"] == code
    assert variable in error["msg"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{} {}",
        b"{",
        b"\xff\xfe",
        '{"name": "ü"}'.encode("utf-16"),
        b'{"name": "a", "name": "b"}',
        b'{"mtu": NaN}',
        b'{"mtu": -Infinity}',
        b'{"mtu": 1e999}',
        b'{"mtu": ' + b"9" * 5000 + b"}",
        b'{"a":' * 100_000,
        b"[" * 100_000,
        b'{"a": "' + b" " * (5 << 20) + b'"}',
        b'{"a": "\x01"}',
    ],
    ids=range(17),
)
@pytest.mark.parametrize("verb", ["ADD", "DEL", "GC", "STATUS"])
def test_input_that_is_no_json_object_cannot_be_decoded(program: Program, verb: str, content: bytes) -> None:
    status, error = program(content, {**ADD, "CNI_COMMAND": verb})
    assert status == 1
    assert error is not None
    assert error["code"] == 6


def test_a_wrong_key_is_code_7_with_its_path(program: Program, tmp_path: Path) -> None:
    _, error = program(network(tmp_path, enforcement="most"), {"CNI_COMMAND": "STATUS"})
    assert error is not None
    assert error["code"] == 7
    assert error["msg"].startswith("enforcement: ")


def test_status_is_ready_where_an_add_could_be_served(program: Program, tmp_path: Path) -> None:
    assert program(network(tmp_path), {"CNI_COMMAND": "STATUS"}) == (0, None)


def test_status_names_what_is_missing(program: Program, tmp_path: Path) -> None:
    content = network(tmp_path, subnet=None, subnetFile=str(tmp_path / "subnet.env"))
    _, error = program(content, {"CNI_COMMAND": "STATUS"})
    assert error is not None
    assert error["code"] == 50
    assert "subnet.env" in error["msg"]


def test_del_of_what_never_was_succeeds_whatever_else_is_wrong(program: Program, tmp_path: Path) -> None:
    content = network(tmp_path, enforcement="most", subnet="x", prevResult=3, runtimeConfig=[])
    assert program(content, {**ADD, "CNI_COMMAND": "DEL"}) == (0, None)


def test_gc_without_a_list_keeps_every_pod(program: Program, tmp_path: Path) -> None:
    _, error = program(network(tmp_path), {"CNI_COMMAND": "GC"})
    assert error is not None
    assert error["code"] == 7


def test_a_trace_is_only_shown_on_request(built: Path) -> None:
    """In the answer: what a plugin that fails says on standard error, runtimes drop."""
    answers = []
    for debug in ("", "1"):
        environment = {"CNI_COMMAND": "ADD", "CONCORDE_DEBUG": debug}
        done = subprocess.run([built], input=b"", env=environment, capture_output=True)
        assert done.stderr == b""
        answers.append(json.loads(done.stdout))
    details = answers[1].pop("details")
    assert "Traceback" in details
    assert "strict_json.py" in details
    assert answers[0] == answers[1]
    assert answers[0]["code"] == 6


@pytest.mark.long
@processes
@given(content=st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_input_gets_a_proper_answer(program: Program, content: bytes) -> None:
    program(content, ADD)


@pytest.mark.long
@processes
@given(
    key=st.sampled_from(
        [
            "bridge",
            "subnet",
            "subnetFile",
            "mtu",
            "burst",
            "enforcement",
            "count",
            "defaultGuarantee",
            "prevResult",
            "dns",
            "runtimeConfig",
            "name",
            "cniVersion",
            "cni.dev/valid-attachments",
            "cni.dev/attachments",
            "anything",
        ]
    ),
    value=json_values,
    verb=st.sampled_from(["CHECK", "DEL", "STATUS", "GC"]),
)
def test_any_value_of_any_key_gets_a_proper_answer(
    program: Program, tmp_path: Path, key: str, value: object, verb: str
) -> None:
    program(network(tmp_path, **{key: value}), {**ADD, "CNI_COMMAND": verb})


@pytest.mark.long
@processes
@given(
    values=st.fixed_dictionaries(
        {
            name: st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
            for name in ("CNI_CONTAINERID", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH")
        }
    ),
    netns=st.text(string.printable, max_size=30).map(lambda text: "/nowhere/" + text.replace("\0", "")),
)
def test_any_environment_gets_a_proper_answer(
    program: Program, tmp_path: Path, values: dict[str, str], netns: str
) -> None:
    program(network(tmp_path), {"CNI_COMMAND": "ADD", "CNI_NETNS": netns, **values})
