"""A pod's port carries the pod's own traffic and nothing else, whatever frames a pod makes.

CONCORDE_FRAMES says how many distinct frames to send.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from bench.studies.promise.attacks import questions
from bench.studies.promise.frames import arp
from tests import cases
from tests.system.plugin.conftest import Node
from tests.system.plugin.covering import complete, first
from tests.system.plugin.floods import SCENE
from tests.system.plugin.frame_kinds import DIMENSIONS, KNOWN, Position, Who, chosen, link_local, people
from tests.system.plugin.frames import Frames, build
from tests.system.plugin.judge import ATTACKER, PATIENCE, Judge
from tests.system.plugin.overhear import mark
from tests.system.plugin.overlapped import Overlapped

COUNT = cases.count("CONCORDE_FRAMES", 150, 5000)
AT_ONCE = 150  # rows; what is seen of more at once outgrows the listeners' queues
PART = 12  # of so many rows one, where all of them have been sent elsewhere
APART = 100_000  # serial numbers from here on are none of the rows'
SEND = str(Path(__file__).with_name("send.py"))
ARRIVALS = {
    "A-1": "neighbour",
    "B-1": "other cluster",
    "A-3": "remote pod",
    "B-2": "remote other cluster",
    "bridge": "gateway",
    "wire": "remote node",
}

pytestmark = pytest.mark.long


@cache
def made(position: Position) -> tuple[list[Frames], dict[str, Frames]]:
    """The frames, and an ordinary one for every place."""
    rows = chosen(COUNT, cases.seed())
    places = [place for place in ARRIVALS if position == "bridged" or place != "bridge"]
    last = [complete(DIMENSIONS, {"destination": ARRIVALS[place]}, first) for place in places]
    frames = build([*rows, *[row for row in last if row is not None]], position)
    return frames[: len(rows)], dict(zip(places, frames[len(rows) :], strict=True))


def a_part(frames: list[Frames]) -> list[Frames]:
    return frames[: len(KNOWN)] + frames[len(KNOWN) :: PART]


def acquaint(pair: Overlapped, who: Who) -> None:
    """Let the node and its pods know each other, in IPv6 too: so there are entries to change.

    For a second after it was learned the kernel defends an entry (locktime); here it does not.
    """
    for pod, device in (("", "cni-a"), ("A-1", "eth0")):
        give_in = ("sh", "-c", f"echo 0 > /proc/sys/net/ipv4/neigh/{device}/locktime")
        _ = pair.node.in_pod(pod, *give_in) if pod else pair.node.run(*give_in)
    gateway = link_local(who["gateway"][0])
    pair.node.run("ip", "addr", "add", f"{gateway}/64", "dev", "cni-a", "nodad")
    pair.node.in_pod("A-1", *f"ip addr add {link_local(who['neighbour'][0])}/64 dev eth0 nodad".split())
    for pod, to in (("A-1", "172.16.1.1"), ("A-1", f"{gateway}%eth0"), ("B-1", "172.17.1.1")):
        pair.node.in_pod(pod, "/usr/bin/python3", SEND, json.dumps({"to": to, "port": 9, "count": 1}))


def attacked(node: Node, guarantee: str, enforcement: str) -> Overlapped:
    """A node with a neighbour, a pod of the other cluster, and the attacker."""
    pair = Overlapped(node)
    for pod, promised in (("A-1", "40M"), ("B-1", "40M"), (ATTACKER, guarantee)):
        pair.attach(pod, promised, enforcement)
    pair.plug_in()
    acquaint(pair, people("bridged"))
    return pair


def complain(faults: list[str]) -> None:
    assert not faults, "\n".join([f"{len(faults)} faults:", *faults])


def test_no_frame_gets_a_pod_anothers_class_address_or_place(node: Node) -> None:
    pair = attacked(node, "60M", "node")
    frames, last = made("bridged")
    classes = {"c0de:10": "A-1", "c0de:11": "B-1", "c0de:fffe": "nobody", "c0de:fffd": "nobody"}
    with Judge(pair, "bridged", last, classes=classes) as judge:
        complain(judge.verdict(frames, AT_ONCE))
        assert len(judge.refused) < len(frames) / 20, "the attacker's own kernel did not send them"


@pytest.mark.parametrize(("enforcement", "guarantee"), [("node", ""), ("pod", "60M"), ("none", "")])
@pytest.mark.long(one_in=0)
def test_nor_with_another_enforcement_or_without_a_guarantee(
    node: Node, enforcement: str, guarantee: str
) -> None:
    pair = attacked(node, guarantee, enforcement)
    pair.unguard_far()
    frames, last = made("bridged")
    classes = {"c0de:10": "A-1", "c0de:11": "B-1"} if enforcement == "node" else {}
    with Judge(pair, "bridged", last, classes=classes) as judge:
        complain(judge.verdict(a_part(frames), AT_ONCE))


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("position", ["routed", "container"])
def test_nor_from_behind_a_routed_veth_or_beside_kubernetes(node: Node, position: Position) -> None:
    pair, who = Overlapped(node), people(position)
    for pod in ("A-1", "B-1"):
        pair.attach(pod, "40M")
    if position == "routed":
        pair.attach_routed(ATTACKER, "60M", who["own"], who["gateway"])
    else:
        pair.attach_container(ATTACKER, who["own"], who["gateway"])
    pair.plug_in()
    acquaint(pair, people("bridged"))
    pair.unguard_far()
    frames, last = made(position)
    classes = {"c0de:10": "A-1", "c0de:11": "B-1"} | ({"c0de:fffe": "nobody"} if position == "routed" else {})
    with Judge(pair, position, last, classes=classes) as judge:
        complain(judge.verdict(a_part(frames), AT_ONCE))


def question() -> list[bytes]:
    return questions(SCENE)[:1]


def answer() -> list[bytes]:
    return [arp(1, SCENE.own[0], SCENE.own, SCENE.neighbour)]


@pytest.mark.parametrize(("frames", "least", "most"), [(question, 100, 200), (answer, 600, 600)])
@pytest.mark.long(one_in=2)
def test_of_what_a_pod_sends_to_many_only_some_gets_there(
    node: Node, frames: Callable[[], list[bytes]], least: int, most: int
) -> None:
    """A hundred a second, and two hundred at once; of what goes to one, all."""
    pair = attacked(node, "", "node")
    _, last = made("bridged")
    sent = marked(frames(), times=600)
    start, got = time.monotonic(), 0
    with Judge(pair, "bridged", last) as judge:
        for at in range(0, len(sent), AT_ONCE):
            heard = judge.exchange(sent[at : at + AT_ONCE], PATIENCE)
            got += sum(place == "A-1" and (serial or 0) >= APART for place, serial, _ in heard)
    assert least <= got <= most + 100 * (time.monotonic() - start)


def marked(frames: list[bytes], times: int) -> list[Frames]:
    """Some frames again and again, each to be known by its place."""
    copies = enumerate(frames * times, APART)
    return [Frames(at, {}, [[bytes(10).hex(), (frame + mark(at)).hex()]]) for at, frame in copies]
