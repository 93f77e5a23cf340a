"""A node with many attachments, whose leases and promises lie as the version before kept them, is taken over.

CONCORDE_MIGRATED_PODS says how many there are, CONCORDE_MIGRATION_KILLS how many calls are killed.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import cases
from tests.paths import ROOT
from tests.system.plugin import former, test_attacks
from tests.system.plugin.conftest import Node
from tests.system.plugin.overlapped import Overlapped
from tests.system.plugin.runtimes import attach
from tests.system.plugin.uplinks import Pair, on_uplink

RUNTIME = str(Path(__file__).with_name("crowd.py"))
STATE = "/run/concorde"
PODS = cases.count("CONCORDE_MIGRATED_PODS", 20, 250)
KILLS = cases.count("CONCORDE_MIGRATION_KILLS", 6, 200)
AT_ONCE = 3  # calls, of which all are killed
LONGEST = 0.06  # seconds until then at first; alone, a call takes about 30 ms, and taking over 250 pods, 50
KEYS = {"capacity": "100M"}
TOLD = """\
import json, sqlite3, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/plugin"]
from concorde.node.ledger import Ledger
version, = sqlite3.connect(sys.argv[2] + "/node/ledger.sqlite").execute("PRAGMA user_version").fetchone()
book = Ledger(sys.argv[2] + "/node", reading=True)
leases = {str(key): [str(one.terms), one.link and one.link.address] for key, one in book.leases().items()}
print(json.dumps([version, vars(book.trees()[0]), [vars(entry) for entry in book.entries()], leases]))
"""


def named(count: int) -> list[str]:
    """Pods of both clusters by turns."""
    return [f"{'AB'[number % 2]}-{number + 10}" for number in range(count)]


def calls(
    node: Node, verb: str, pods: list[str], killed: float = 0, longest: float = LONGEST, seed: int = 0
) -> dict[str, str | None]:
    """Several calls at once; of a killed one nothing is told."""
    work = {
        "plugin": str(node.plugin),
        "verb": verb,
        "pods": [(pod, on_uplink("100k", cluster=pod[0].lower(), **KEYS)) for pod in pods],
        "killed": killed,
        "longest": longest,
        "at_once": AT_ONCE,
        "seed": seed,
    }
    answers: dict[str, str | None] = json.loads(node.run("/usr/bin/python3", RUNTIME, stdin=json.dumps(work)))
    return answers


def told(node: Node) -> tuple[int, Any]:
    """The ledger's version, and what it says of the tree, attachments and leases."""
    version, *content = node.show("/usr/bin/python3", "-c", TOLD, str(ROOT), STATE)
    return version, content


def gc(node: Node, living: list[str]) -> None:
    for cluster in "AB":
        valid = [{"containerID": pod, "ifname": "eth0"} for pod in living if pod[0] == cluster]
        configuration = on_uplink(cluster=cluster.lower(), **KEYS)
        assert node.call("GC", "", {**configuration, "cni.dev/valid-attachments": valid}) == {}


@pytest.mark.long
def test_nothing_is_lost_whoever_is_killed_on_the_way(node: Node) -> None:
    Pair(node)
    living, new = named(PODS), ["A-1", "B-1", "A-2"]
    node.add_pod_namespace(*living, *new)
    calls(node, "ADD", living)
    latest, wanted = told(node)
    assert len(wanted[-1]) == PODS
    killed, found, turn, longest = 0, Counter[str](), 0, LONGEST
    while killed < KILLS or len(found) < 2:  # and both ends were there
        former.keep(node)
        seed = cases.seed() + turn
        answers = calls(node, ("ADD", "DEL")[turn % 2], new, killed=1, longest=longest, seed=seed)
        killed += sum(answer is None for answer in answers.values())
        turn += 1
        over = told_version(node) == latest
        found["taken over" if over else "not yet"] += 1
        longest *= 0.7 if over else 1.4  # how long it takes is the machine's affair: half are to get there
        gc(node, living)
        assert told(node) == (latest, wanted)
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


def told_version(node: Node) -> int:
    """The version in the file's header, whatever is half written (sqlite.org/fileformat2.html)."""
    return int(node.run("sh", "-c", f"od -An -j63 -N1 -tu1 {STATE}/node/ledger.sqlite").strip() or 0)


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_promise_on_a_full_link_holds_in_the_second_in_which_files_are_taken_over(node: Node) -> None:
    """A pod promised 40 of 100 Mbit/s beside four flows that want all, by what its peer's kernel counts."""
    pair = Overlapped(node, **KEYS)
    node.add_pod_namespace("A-1", "A-2", *named(PODS - 1))
    configuration = on_uplink("40M", **KEYS)
    result = attach(node, "A-1", configuration)
    calls(node, "ADD", named(PODS - 1))
    pair.plug_in()
    _, wanted = told(node)
    firsts: tuple[Callable[[], object], ...] = (
        lambda: node.call("CHECK", "A-1", {**configuration, "prevResult": result}),
        lambda: node.call("STATUS", "", configuration),
        lambda: attach(node, "A-2", on_uplink("100k", **KEYS)),
        lambda: node.call("DEL", "A-2", on_uplink("100k", **KEYS)),
        lambda: gc(node, ["A-1", *named(PODS - 1)]),
        lambda: node.run(node.plugin, "reconcile"),
    )

    def judge(factor: int) -> None:
        found: list[float] = []
        with test_attacks.everybody_else(pair), test_attacks.victim(pair) as seconds:
            next(seconds)
            for first in firsts * factor:
                former.keep(node)
                found.append(in_a_second(pair, first))
        assert min(found) >= test_attacks.LEAST, found

    cases.with_more_samples(judge)
    assert told(node)[1] == wanted


def in_a_second(pair: Pair, action: Callable[[], object]) -> float:
    """Bits per second that get to A-3 in the second that begins with an action, or as long as that takes."""
    begun, before = time.monotonic(), pair.received("eth0", "A-3")
    action()
    time.sleep(max(0, begun + 1 - time.monotonic()))
    return 8 * (pair.received("eth0", "A-3") - before) / (time.monotonic() - begun)
