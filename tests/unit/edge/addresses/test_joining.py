"""A node follows from blocks: whenever its program was killed, whatever failed, and while the API is away."""

from __future__ import annotations

import errno
import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Network
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from edge.addresses import joining
from edge.addresses.batches import SUBNET, Template, placeholder
from edge.addresses.cluster import NODES
from edge.addresses.joining import Known, Plan, Station, parse
from edge.http import UnfitError
from edge.log import Logger
from edge.watch import Changed, Listed
from testbed import resources
from tests.unit.edge.stub import StubApi, serving
from tests.waiting import until

ONE, TWO, NEW = (IPv4Network(f"10.{n}.0.0/24") for n in (1, 2, 3))
IP: Template = [
    ("", "link add x type dummy\n"),
    ("", "link set x up\n"),
    ("", f"address add {placeholder('own', 0)}/32 dev x\n"),
    ("other", f"route add {placeholder('other', SUBNET)} via 192.168.1.2 dev x\n"),
    ("third", f"route add {placeholder('third', SUBNET)} via 192.168.1.3 dev x\n"),
    ("", "rule add to 10.0.0.0/8 lookup 101 priority 101\n"),
]
BRIDGE: Template = [("other", "fdb add 0e:02 dev x dst 192.168.1.2 self permanent\n")]


def plan(directory: Path, api: str = "http://127.0.0.1:1") -> Plan:
    subnet, daemon, conflist = (str(directory / name) for name in ("subnet.env", "bird.conf", "net.conflist"))
    return Plan(
        "own", api, "", "", "",
        {"ip": IP, "bridge": BRIDGE},
        {
            subnet: [("", f"SUBNET={placeholder('own', SUBNET)}\n")],
            daemon: [("", "own\n"), ("other", f"peer {placeholder('other', 0)}\n")],
            conflist: [("", f'{{"subnet": "{placeholder("own", SUBNET)}"}}')],
        },
        [(daemon, ["birdc", "configure"])],
        str(directory / "journal.json"),
    )  # fmt: skip


class KilledError(BaseException):
    """The program is no more."""


class FakeNode:
    """A kernel that knows entries by their words, and a daemon that reads its file; killed after so many."""

    def __init__(self, directory: Path) -> None:
        self.plan = plan(directory)
        self.kernel: set[str] = set()
        self.read = ""
        self.left = -1  # how many changes are made before the program is killed
        self.refused = ""  # what the kernel does not take
        self.reloads = 0

    def run(self, tool: str, text: str) -> list[str]:
        problems = []
        for line in text.splitlines():
            self._count()
            kind, verb, *rest = line.split()
            key = f"{tool} {kind} {' '.join(rest)}"
            if self.refused and self.refused in line:
                problems.append(f"{line}: refused")
            elif verb == "del" and kind == "link":
                self.kernel = {one for one in self.kernel if f" {rest[0]}" not in one}
            elif verb == "del":
                self.kernel.discard(key)
            else:
                self.kernel.add(key)
        return problems

    def reload(self, argv: Sequence[str]) -> list[str]:
        self._count()
        self.reloads += 1
        file = Path(next(path for path, _ in self.plan.reloads))
        if not file.exists():
            return ["birdc: no such file"]
        self.read = file.read_text()
        return []

    def station(self) -> Station:
        return Station(self.plan, self.run, self.reload)

    @property
    def state(self) -> tuple[set[str], dict[str, str], str]:
        files = {name: Path(name).read_text() for name in self.plan.files if Path(name).exists()}
        return self.kernel, files, self.read if files else ""

    def _count(self) -> None:
        if self.left == 0:
            raise KilledError
        self.left -= 1


CHANGES: Sequence[dict[str, IPv4Network]] = [
    {"other": TWO},
    {"other": TWO, "own": ONE},
    {"other": TWO, "own": ONE, "third": NEW},
    {"own": ONE, "other": NEW},  # one went, another has its block
    {"own": NEW},
    {"other": ONE},
]


def test_without_a_block_there_is_nothing_and_then_all_of_it(tmp_path: Path) -> None:
    node = FakeNode(tmp_path)
    station = node.station()
    assert station.settle({"other": TWO}) == []
    nothing: tuple[set[str], dict[str, str], str] = (set(), {}, "")
    assert node.state == nothing
    assert station.settle({"other": TWO, "own": ONE}) == []
    _, files, read = node.state
    assert node.kernel == {
        "ip link x type dummy",
        "ip link x up",
        "ip address 10.1.0.0/32 dev x",
        "ip route 10.2.0.0/24 via 192.168.1.2 dev x",
        "ip rule to 10.0.0.0/8 lookup 101 priority 101",
        "bridge fdb 0e:02 dev x dst 192.168.1.2 self permanent",
    }
    assert list(files.values()) == [
        "SUBNET=10.1.0.0/24\n",
        "own\npeer 10.2.0.0\n",
        '{"subnet": "10.1.0.0/24"}',
    ]
    assert read == "own\npeer 10.2.0.0\n"


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    node = FakeNode(tmp_path)
    station = node.station()
    station.settle(CHANGES[1])
    reloads, node.left = node.reloads, 0
    assert station.settle(CHANGES[1]) == []
    node.left = 1
    assert station.settle({**CHANGES[1], "third": NEW}) == []
    assert node.reloads == reloads


@pytest.mark.parametrize("step", range(1, len(CHANGES)))
def test_wherever_it_is_killed_the_next_one_gets_to_the_same(tmp_path: Path, step: int) -> None:
    straight = FakeNode(tmp_path / "straight")
    straight.station().settle(CHANGES[step])
    for left in count():
        node = FakeNode(tmp_path / str(left))
        station = node.station()
        for before in CHANGES[:step]:
            station.settle(before)
        node.left = left
        try:
            station.settle(CHANGES[step])
            return  # it was killed after each of its changes
        except KilledError:
            node.left = -1
        # The next one finds the cluster as it is, or as it will be.
        other = CHANGES[(step + left) % len(CHANGES)]
        next_one = node.station()
        assert next_one.settle(other) == []
        assert next_one.settle(CHANGES[step]) == []
        there, wanted = node.state, straight.state
        assert there[0] == wanted[0]
        assert list(there[1].values()) == list(wanted[1].values())
        assert there[2] == wanted[2]


@pytest.mark.parametrize("half", ["", '{"subnet": "10.1', "\udcff"])
def test_half_a_file_and_half_a_journal_are_written_anew(tmp_path: Path, half: str) -> None:
    node = FakeNode(tmp_path)
    node.station().settle(CHANGES[1])
    whole = node.state
    for path in [*node.plan.files, node.plan.journal]:
        Path(path).write_bytes(half.encode(errors="surrogateescape"))
        Path(path).with_name(f".{Path(path).name}.new").write_text("half")
    assert node.station().settle(CHANGES[1]) == []
    assert node.state == whole


def test_what_the_kernel_refuses_is_said_and_tried_again(tmp_path: Path) -> None:
    node = FakeNode(tmp_path)
    station = node.station()
    node.refused = "route"
    assert station.settle(CHANGES[1]) == ["route replace 10.2.0.0/24 via 192.168.1.2 dev x: refused"]
    node.refused = ""
    assert station.settle(CHANGES[1]) == []
    assert "ip route 10.2.0.0/24 via 192.168.1.2 dev x" in node.kernel


def test_a_file_that_cannot_be_written_keeps_the_later_ones_back(tmp_path: Path) -> None:
    node = FakeNode(tmp_path)
    (tmp_path / "subnet.env").mkdir()
    (problem,) = node.station().settle(CHANGES[1])
    assert problem.startswith(f"{tmp_path}/subnet.env: ")
    assert not (tmp_path / "net.conflist").exists()


def test_a_tool_that_was_killed_has_not_done_what_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ip").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert joining.batch("ip", "link set x up\n") == ["ip -batch: ended with status -9"]


def test_of_a_file_that_has_no_space_the_former_one_stays_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "net.conflist"
    assert joining.write(file, "one")

    def full(path: Path, text: str, **_: object) -> None:
        path.write_bytes(text[:1].encode())
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        joining.write(file, "two")
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"one"]


def node_of(name: str, *blocks: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"podCIDR": blocks[0], "podCIDRs": [*blocks]} if blocks else {},
    }


def test_the_block_of_ipv4_counts_and_a_node_that_is_gone_has_none() -> None:
    known = Known()
    both = ("fd00::/120", "10.1.0.0/24")
    known.take(Listed(NODES, [node_of("own", *both), node_of("other"), node_of("third", "nonsense")]))
    assert known.blocks == {"own": ONE}
    known.take(Changed(NODES, node_of("other", "010.2.0.7/24"), False))  # as an API before 1.22 takes it
    assert known.blocks == {"own": ONE, "other": TWO}
    known.take(Changed(NODES, node_of("own", *both), True))
    assert known.blocks == {"other": TWO}
    known.take(Listed(NODES, []))
    assert known.blocks == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"node": None}, "node: must be a string"),
        ({"nodes": ""}, "nodes: no such field (node, api,"),
        ({"batches": []}, "batches: must be an object of templates"),
        ({"batches": {"tc": []}}, "batches.tc: no such tool (ip, bridge)"),
        ({"files": {"/x": ["line"]}}, "files./x: must be a list of [node, line]"),
        ({"reloads": [["/x", []]]}, "reloads: must be a list of [path, [program, argument, ...]]"),
        ({"journal": ...}, "journal: required"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_the_field(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    said = {**plan(tmp_path)._asdict(), **change}
    text = json.dumps({name: value for name, value in said.items() if value is not ...})
    with pytest.raises(UnfitError) as error:
        parse(text)
    assert str(error.value).startswith(words)


def test_no_plan_ends_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert joining.main([]) == 2
    assert joining.main([str(tmp_path / "none")]) == 2
    (tmp_path / "plan").write_text("{}")
    assert joining.main([str(tmp_path / "plan")]) == 2
    assert "node: required" in capsys.readouterr().err


@pytest.fixture
def api() -> Iterator[StubApi]:
    with serving() as one:
        yield one


def test_a_program_that_is_killed_and_an_api_that_was_away_change_nothing(
    tmp_path: Path, api: StubApi
) -> None:
    files_only = plan(tmp_path, api.url)._replace(batches={}, reloads=[])
    (tmp_path / "plan.json").write_text(json.dumps(files_only._asdict()))
    conflist = tmp_path / "net.conflist"

    def start() -> subprocess.Popen[str]:
        argv = ["/usr/bin/python3", "-IS", str(resources.EDGE), "join", str(tmp_path / "plan.json")]
        return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)

    def has(text: str) -> Callable[[], bool]:
        return lambda: conflist.exists() and conflist.read_text() == text

    api.do("POST", NODES, node_of("own"))
    first = start()
    until(lambda: any("watch=1" in path for _, path in api.asked))
    assert not conflist.exists()
    blocks = {"spec": {"podCIDR": str(ONE), "podCIDRs": [str(ONE)]}}
    api.do("PATCH", f"{NODES}/own", {**blocks, "metadata": {"uid": api.all(NODES)["own"]["metadata"]["uid"]}})
    until(has('{"subnet": "10.1.0.0/24"}'))
    first.kill()
    first.communicate()
    conflist.write_text('{"subn')
    api.fault = lambda *_: 503
    second = start()
    until(lambda: len([path for _, path in api.asked if "limit" in path]) > 2)
    assert conflist.read_text() == '{"subn'  # without an API nobody knows
    api.fault = lambda *_: None
    until(has('{"subnet": "10.1.0.0/24"}'))
    api.end_watches(forget=True)
    api.do("DELETE", f"{NODES}/own")
    until(lambda: not conflist.exists())
    second.send_signal(signal.SIGTERM)
    _, said = second.communicate()
    assert second.returncode == 0
    assert "cannot be followed" in said


def test_what_failed_is_tried_again_though_nothing_is_heard(tmp_path: Path) -> None:
    node = FakeNode(tmp_path)
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    node.refused = "link add"
    tries: list[str] = []

    def run(tool: str, text: str) -> list[str]:
        tries.append(tool)
        if len(tries) > 3:
            node.refused = ""
        return node.run(tool, text)

    with (tmp_path / "log").open("w") as log:
        following = threading.Thread(
            target=joining.keep, args=(Station(node.plan, run, node.reload), inbox, Logger(log))
        )
        following.start()
        inbox.put(Listed(NODES, [node_of("own", "10.1.0.0/24")]))
        until(lambda: "ip link x type dummy" in node.kernel)
        inbox.put(None)
        following.join()
    assert "refused" in (tmp_path / "log").read_text()
