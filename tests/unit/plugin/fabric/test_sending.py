"""What an agent sets of its own classes; the kernel is made up, and remembers what it was told."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from concorde import addresses
from concorde.fabric import kernel, sending
from concorde.node.records import Entry, Fabric, Tree

MINOR, GIGA, NODE = 0x10, 10**9, addresses.parse("192.168.56.12")
TREE = Tree("eth0", GIGA, 20_000_000, (22,), fabric=Fabric(("192.168.56.0/24",), 25_000_000, 7473))


class Kernel:
    """Classes that send nothing; (minor, rate, ceil) in bits per second of the wire, as they were set."""

    def __init__(self, tree: Tree) -> None:
        self.told: list[tuple[int, int, int]] = []

    def read(self, minors: Iterable[int]) -> dict[int, kernel.Sample]:
        return {minor: kernel.Sample(0, 0) for minor in minors}

    def set(self, minor: int, rate: int, ceil: int) -> None:
        self.told.append((minor, rate, ceil))

    def close(self) -> None:
        """Nothing is open."""


class Counters:
    """Of no packet."""

    def look(self, name: str) -> dict[bytes, int]:
        return {}


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


@pytest.mark.parametrize("rate", [50_000_000, 200_000_000])
def test_a_changed_promise_is_set_though_the_agent_believed_to_know_the_class(
    its: sending.Sending, rate: int
) -> None:
    its.obey(NODE, {MINOR: 300_000_000}, 0.4, 1.0)
    its.update(TREE, promised(rate), 1.1)

    wire = TREE.on_wire(rate)
    assert told(its)[-1] == (MINOR, wire, wire // 8 * 8)


def test_a_promise_that_is_as_before_is_left_as_it_is(its: sending.Sending) -> None:
    its.obey(NODE, {MINOR: 300_000_000}, 0.4, 1.0)
    before = list(told(its))
    its.update(TREE, promised(100_000_000), 1.1)

    assert told(its) == before
