"""What will be made, what is in the way, and how it is taken away again: with a node that only notes."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network

import pytest

from testbed.access.place import CommandError, Result
from testbed.providers.ssh import ledger, plan
from testbed.providers.ssh.artefacts import Artefact, Directory, Link, Mount, Namespace, Setting, Tree
from testbed.providers.ssh.ledger import Ledger
from testbed.providers.ssh.node import command_line
from testbed.providers.ssh.survey import Interface, Seen
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.doubles import Asked, RecordingNode, SilentNode, said
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"
UPLINK = Interface("ens5", 1500, (IPv4Address("192.168.56.13"),))
EMPTY = Seen(
    (UPLINK,), (IPv4Network("192.168.56.0/24"),), frozenset(), False, frozenset(), {}, frozenset(), "0"
)
Status = Callable[[Sequence[str]], int]


class Noting(RecordingNode):
    """A node that notes its commands, but for the question when it was started, and answers with a status."""

    def __init__(self, boot: str = "today", status: Status = lambda _: 0) -> None:
        super().__init__()
        self._boot = boot
        self._status = status

    def answer(self, asked: Asked) -> Result:
        if asked.argv == ["cat", ledger.BOOT]:
            self.asked.remove(asked)
            return said(f"{self._boot}\n")
        return Result(self._status(asked.argv), "", "no")


def contmec(*overrides: str) -> Addressing:
    return Addressing(load(CONTMEC, overrides))


def book(*things: Artefact) -> Ledger:
    return Ledger(run="r", node="worker-01", by="me", since="now", boot="today", things=list(things))


def test_everything_of_a_worker_is_in_the_plan() -> None:
    addressing = contmec()
    made = [str(thing) for thing in plan.everything(addressing, "worker-01", EMPTY, "/d")]
    for expected in (
        "/run/netns", "mount /run/netns", "/proc/sys/net/ipv4/ip_forward = 1 (was 0)", "interface flannel.1",
        "interface flannel.2", "/run/flannel/subnet-a.env", "interface docker0", "interface vethc0",
        "network namespace container-1", "nftables table ip containers", "interface cni-a", "interface cni-b",
        "network namespace A-1", "attachment of contmec-B-1", "/run/concorde",
    ):  # fmt: skip
        assert expected in made
    assert not any("container-2" in one or "A-3" in one for one in made)  # they are on worker-02
    assert [str(t) for t in plan.everything(addressing, "master-01", EMPTY, "/d")][-2:] == [
        "interface flannel.1",
        "/run/flannel/subnet-a.env",
    ]


def test_the_uplink_is_in_the_plan_only_if_it_is_shaped() -> None:
    node = [
        f"nodes.{n}={{address: 192.168.56.{i}, uplink: ens5}}" for i, n in enumerate(load(CONTMEC).nodes, 20)
    ]
    shaped = contmec(*node, "enforcement=node", "underlay.rate=9G")
    assert Tree(interface="ens5") in plan.everything(shaped, "worker-01", EMPTY, "/d")
    assert Tree(interface="ens5") not in plan.everything(contmec(*node), "worker-01", EMPTY, "/d")


def test_what_was_there_is_not_taken_away() -> None:
    there = frozenset({"/run/netns", "/run/flannel"})
    seen = Seen((UPLINK,), (), frozenset(), True, frozenset(), {}, there, "1")
    made = plan.everything(contmec(), "worker-01", seen, "/d")
    assert not any(isinstance(thing, (Directory, Mount, Setting)) for thing in made)


def test_obstacles_are_named() -> None:
    vxlan = Interface("vx", 1450, (), vxlan=(1, 8472))
    seen = Seen(
        (UPLINK, Interface("cni-a", 1450, ()), vxlan), (IPv4Network("172.16.0.0/24"),), frozenset({"A-1"}),
        True, frozenset({("ip", "containers")}), {"eth0": "1:"}, frozenset({"/run/concorde"}), "1",
    )  # fmt: skip
    addressing = contmec("enforcement=node", "underlay.rate=9G")
    assert list(plan.obstacles(addressing, "worker-01", EMPTY)) == []
    assert list(plan.obstacles(addressing, "worker-01", seen)) == [
        "there is an nftables table ip containers already",
        "there is /run/concorde already",
        "there is an interface cni-a already",
        "somebody shapes eth0: its root qdisc is 1:",
        "there is a network namespace A-1 already",
        "interface vx is VXLAN 1 at port 8472 already",
        "there is a route to 172.16.0.0/24 already, within 172.16.0.0/16",
    ]


def test_a_link_that_cannot_do_what_is_stated() -> None:
    scenario = load(CONTMEC, ["underlay.rate=9G"])
    slow = Interface("ens5", 1400, ())
    assert [words.partition(",")[0] for words in plan.unfit(scenario, slow, 10**9)] == [
        "ens5 has an MTU of 1400",
        "ens5 says it does 1G",
    ]
    assert list(plan.unfit(scenario, UPLINK, 10**10)) == list(plan.unfit(scenario, UPLINK, None)) == []


def test_undoing_goes_backwards_after_the_processes_and_ends_with_the_ledger() -> None:
    node = Noting()
    assert ledger.undo(node, book(Link(name="a"), Namespace(name="b"))) == []
    assert [words[0] for words in node.commands] == ["sh", "ip", "ip", "sh"]
    assert node.commands[0][-1] == "CONCORDE_TESTBED=r/worker-01"
    assert node.commands[1:3] == [["ip", "netns", "delete", "b"], ["ip", "link", "delete", "dev", "a"]]
    assert node.commands[3][-2:] == [ledger.ROOT, "r"]


def test_what_is_gone_already_is_no_fault() -> None:
    node = Noting(status=lambda argv: int(argv[0] in ("ip", "test")))
    assert ledger.undo(node, book(Link(name="a"), Namespace(name="b"))) == []


def test_what_cannot_be_taken_away_keeps_the_ledger() -> None:
    node = Noting(status=lambda argv: int("delete" in argv))
    faults = ledger.undo(node, book(Link(name="a"), Namespace(name="b")))
    assert [fault.partition(":")[0] for fault in faults] == ["network namespace b", "interface a"]
    assert not any("rm -rf" in word for words in node.commands for word in words)


def test_after_a_restart_only_the_files_are_ours() -> None:
    node = Noting(boot="tomorrow")
    assert ledger.undo(node, book(Link(name="a"))) == []
    assert [words[0] for words in node.commands] == ["sh", "sh"]


def test_a_lost_machine_is_no_fault_of_a_thing() -> None:
    with pytest.raises(CommandError, match="gone"):
        ledger.undo(SilentNode(), book(Link(name="a")))


def test_a_ledger_is_read_back_as_it_was_written() -> None:
    things = plan.everything(contmec(), "worker-01", EMPTY, "/d")
    written = book(*things)
    assert Ledger.model_validate_json(written.model_dump_json()) == written


def test_a_command_line_survives_a_shell() -> None:
    argv = ["printf", "%s\\n", "a b", "$HOME", "'", "`id`", "", "\\"]
    line = command_line(argv, {"X": "1 2"}, ("sudo", "-n", "--"))
    assert line.startswith("sudo -n -- env -i 'X=1 2' printf ")
    alone = command_line(argv, {"PATH": "/usr/bin:/bin"}, ())
    assert shlex.split(alone)[-7:] == argv[1:]
    said = subprocess.run(["sh", "-c", alone], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == argv[2:]
