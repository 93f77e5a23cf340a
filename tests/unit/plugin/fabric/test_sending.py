"""What an agent sets of its own classes; the kernel is made up, and remembers what it was told."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest
from concorde import addresses
from concorde.fabric import kernel, sending
from concorde.node import htb, peers
from concorde.node.records import Entry, Fabric, Tree

MINOR, GIGA, NODE = 0x10, 10**9, addresses.parse("192.168.56.12")
TREE = Tree("eth0", GIGA, 20_000_000, (22,), fabric=Fabric(("192.168.56.0/24",), 25_000_000, 7473))


class Kernel:
    """Classes that sent what a test says; minor, rate and ceil as they were set, in bits per second."""

    def __init__(self, tree: Tree) -> None:
        self.told: list[tuple[int, int, int]] = []
        self.asked: list[int] = []
        self.samples: dict[int, kernel.Sample] = {}

    def read(self, minors: Iterable[int]) -> dict[int, kernel.Sample]:
        self.asked = list(minors)
        return {minor: self.samples.get(minor, kernel.Sample(0, 0)) for minor in self.asked}

    def set(self, minor: int, rate: int, ceil: int) -> None:
        self.told.append((minor, rate, ceil))

    def close(self) -> None:
        """Nothing is open."""


class Counters:
    """Bytes of IP since the last look, by the set that counts them."""

    def __init__(self) -> None:
        self.counted: dict[str, dict[bytes, int]] = {}

    def look(self, name: str, *, glance: bool = False) -> dict[bytes, int]:
        counted = self.counted.get(name, {})
        if not glance:
            self.counted[name] = {}
        return counted


def promised(rate: int) -> list[Entry]:
    """A pod's promise (bits per second of layer 2) that may use the whole link."""
    return [Entry("a", "1", "eth0", "default/web", None, "veth", "", rate, rate, GIGA, MINOR, uplink="eth0")]


@pytest.fixture
def its(monkeypatch: pytest.MonkeyPatch) -> sending.Sending:
    monkeypatch.setattr(kernel, "Classes", Kernel)
    monkeypatch.setattr(kernel, "Counters", Counters)
    return sending.Sending("/nowhere", TREE, promised(100_000_000))


def told(its: sending.Sending) -> list[tuple[int, int, int]]:
    classes = its._classes
    assert isinstance(classes, Kernel)
    return classes.told


def sends(its: sending.Sending, now: float, *, sent: int = 0, waiting: int = 0, to: int = NODE) -> list[int]:
    """The pod has sent so much in all, of which something is counted if it is more; the classes asked for."""
    classes, counters = its._classes, its._counters
    assert isinstance(classes, Kernel)
    assert isinstance(counters, Counters)
    before = classes.samples.get(MINOR, kernel.Sample(0, 0))
    classes.samples[MINOR] = kernel.Sample(sent, waiting)
    if sent > before.sent:
        counters.counted[peers.SENT] = {to.to_bytes(4, "big") + struct.pack("=I", 0xC0DE0000 | MINOR): 1000}
    claims = its.look(now)
    classes.asked.sort()
    if to in claims:
        assert bool(claims[to].get(MINOR)) == (sent > before.sent or waiting > 0)
    return classes.asked


def test_a_class_is_read_while_it_sends_or_something_waits_there(its: sending.Sending) -> None:
    sends(its, 1.0, sent=1000)
    assert sends(its, 1.02, sent=2000, waiting=500) == [htb.ROOT, MINOR]
    assert sends(its, 1.04, sent=2000) == [htb.ROOT, MINOR]
    assert sends(its, 1.06, sent=2000) == [htb.ROOT]
    assert its.look(1.08) == {NODE: {}}  # the node is known, and hears that there is nothing
    assert sends(its, 1.1, sent=3000) == [htb.ROOT, MINOR]
    claims = its.look(2.2)
    assert claims == {}  # a second later it is forgotten


def test_a_glance_tells_of_who_began_to_send_and_takes_nothing_from_the_next_look(
    its: sending.Sending,
) -> None:
    counters = its._counters
    assert isinstance(counters, Counters)
    key = NODE.to_bytes(4, "big") + struct.pack("=I", 0xC0DE0000 | MINOR)
    assert not its.wakes(0.99)
    counters.counted[peers.SENT] = {key: 2000}
    assert not its.wakes(1.0)  # a packet or two
    counters.counted[peers.SENT] = {key: 4000}
    assert its.wakes(1.0)
    assert its.wakes(1.0)
    for now, sent in ((1.0, 1000), (1.02, 2000)):
        sends(its, now, sent=sent)
    counters.counted[peers.SENT] = {key: 4000}
    assert not its.wakes(1.03)  # it goes on
    assert its.wakes(1.2)
    its.update(TREE, promised(20_000_000), 1.2)
    assert not its.wakes(1.2)  # there is room for as little as that
    its.update(TREE, [], 1.2)
    assert not its.wakes(1.2)


def test_what_a_class_sends_is_its_rate_after_a_rest_too(its: sending.Sending) -> None:
    for now, sent in ((1.0, 1000), (1.02, 2000), (1.04, 2000), (1.06, 2000)):
        sends(its, now, sent=sent)
    sends(its, 1.08, sent=4500)
    assert its._seen[MINOR].rate == pytest.approx(2500 * 8 / 0.02)


def test_a_promise_has_more_once_it_needs_that(its: sending.Sending) -> None:
    for now, sent in ((1.0, 1000), (1.02, 2000)):
        sends(its, now, sent=sent)
    its.obey(NODE, {MINOR: 300_000_000}, 0.4, 1.03)
    assert not told(its)
    sends(its, 1.04, sent=3000, waiting=500)
    assert told(its)[-1][2] == 300_000_000
    its.obey(NODE, {MINOR: 200_000_000}, 0.4, 1.05)
    assert told(its)[-1][2] == 200_000_000


def test_who_sends_about_as_much_as_it_may_needs_more(its: sending.Sending) -> None:
    its.obey(NODE, {MINOR: 300_000_000}, 0.4, 1.0)
    for now, sent in ((1.0, 1000), (1.02, 1000 + 90_000_000 // 8 // 50)):
        sends(its, now, sent=sent)
    assert told(its)[-1][2] == 300_000_000


def test_what_a_node_grants_next_takes_the_place_of_all_that_it_granted(its: sending.Sending) -> None:
    granted(its)
    its.obey(NODE, {}, 0.4, 1.05)
    wire = TREE.on_wire(100_000_000)
    assert told(its)[-1] == (MINOR, wire, wire // 8 * 8)


def test_who_sends_to_a_node_that_grants_nothing_has_its_guarantee_at_once(its: sending.Sending) -> None:
    granted(its)
    sends(its, 1.04, sent=3000, to=NODE + 1)
    wire = TREE.on_wire(100_000_000)
    assert told(its)[-1] == (MINOR, wire, wire // 8 * 8)


def granted(its: sending.Sending) -> None:
    """The pod waits, and has been given more than its promise."""
    for now, sent in ((1.0, 1000), (1.02, 2000)):
        sends(its, now, sent=sent, waiting=500)
    its.obey(NODE, {MINOR: 300_000_000}, 0.4, 1.03)
    assert told(its)[-1][2] == 300_000_000


def test_the_same_grant_again_lasts_longer_and_changes_nothing(its: sending.Sending) -> None:
    granted(its)
    before = list(told(its))
    its.obey(NODE, {MINOR: 300_000_000}, 0.4, 1.3)
    its.expire(1.5)
    assert told(its) == before
    its.expire(1.8)
    assert told(its)[-1][2] < 300_000_000


@pytest.mark.parametrize("rate", [50_000_000, 200_000_000])
def test_a_changed_promise_is_set_though_the_agent_believed_to_know_the_class(
    its: sending.Sending, rate: int
) -> None:
    granted(its)
    its.obey(NODE, {}, 0.4, 1.05)
    its.update(TREE, promised(rate), 1.1)

    wire = TREE.on_wire(rate)
    assert told(its)[-1] == (MINOR, wire, wire // 8 * 8)


def test_a_promise_that_is_as_before_is_left_as_it_is(its: sending.Sending) -> None:
    granted(its)
    before = list(told(its))
    its.update(TREE, promised(100_000_000), 1.1)

    assert told(its) == before
