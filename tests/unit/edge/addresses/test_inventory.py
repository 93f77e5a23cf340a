"""What is left of a cluster's ranges, against a count that knows of sets of addresses and of nothing else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from ipaddress import ip_network
from itertools import count

import pytest

from edge.addresses.allocation import Range
from edge.addresses.inventory import Kind, RunsOut, kinds, runs_out_first, savings
from edge.addresses.space import Network
from tests import cases
from tests.unit.edge.addresses.builders import STATION, Told, config, inventory


def test_each_node_is_shown_with_what_it_has() -> None:
    rows = inventory(STATION, {"n0": "", "n1": "size=small"}).rows()
    assert [(row.node, row.config, [str(one) for one in row.blocks]) for row in rows] == [
        ("n0", "large", ["10.0.0.0/24"]),
        ("n1", "small", ["10.1.0.0/27"]),
    ]
    assert [(row.pods, row.room) for row in rows] == [(5, 253), (0, 29)]


def test_a_node_that_waits_has_no_room_and_says_why() -> None:
    (row,) = inventory(STATION[1:], {"n0": ""}).rows()
    assert (row.config, row.blocks, row.room) == ("", (), 0)
    assert "size=small" in row.waits


def test_a_kind_falls_through_to_the_next_best() -> None:
    found = kinds(inventory(STATION, {"n0": "", "n1": "size=small", "n2": "size=small"}))
    assert [(one.configs, one.nodes, one.fits) for one in found] == [
        (("large",), ("n0",), 3),
        (("small", "large"), ("n1", "n2"), 2 + 3),
    ]


def test_a_kind_that_is_not_there_yet_is_what_a_config_asks_for() -> None:
    (there, coming) = kinds(inventory(STATION, {"n0": ""}))
    assert there.nodes == ("n0",)
    assert (coming.configs, coming.nodes, coming.example.labels) == (
        ("small", "large"), (), {"size": "small"},
    )  # fmt: skip
    assert coming.fits == 4 + 3


def test_what_is_large_is_counted_without_trying_each() -> None:
    (kind,) = kinds(inventory([("all", "10.0.0.0/8:30 fd00::/80:96", "")], {"n0": ""}))
    assert kind.fits == 2**16 - 1


def test_a_config_without_a_node_for_it_runs_out_of_nothing() -> None:
    assert runs_out_first(inventory(STATION[1:], {"n0": ""})) is None
    assert runs_out_first(inventory([], {})) is None


def test_the_first_to_run_out_is_told_with_how_many_come_before() -> None:
    three_to_one = {"n0": "", "n1": "size=small", "n2": "size=small", "n3": "size=small"}
    told = [STATION[0], ("small", "10.1.0.0/24:27", "size=small")]
    # small: small, large or small in any order, small: 5 of it are left, and 3 of large.
    assert runs_out_first(inventory(told, three_to_one)) == RunsOut("small", 7)


def test_more_than_anybody_has_is_not_tried() -> None:
    assert runs_out_first(inventory([("all", "10.0.0.0/8:24", "")], {"n0": ""}), 100) == RunsOut("", 100)


def test_a_fleet_with_blocks_of_its_sizes_saves_what_the_largest_would_have_cost() -> None:
    told = [("large", "10.0.0.0/16:24", ""), ("small", "10.1.0.0/18:26", "size=small")]
    fleet = {f"n{number}": "size=small" if number < 90 else "" for number in range(100)}
    (saved,) = savings(inventory(told, fleet))
    assert (saved.mask, saved.nodes) == (24, 100)
    assert (saved.given, saved.alike) == (90 * 64 + 10 * 256, 100 * 256)
    assert saved.share == pytest.approx(0.675)


def test_each_family_saves_by_itself() -> None:
    told = [("two", "10.0.0.0/16:24 fd00::/112:120", "")]
    assert [(one.version, one.share) for one in savings(inventory(told, {"n0": "", "n1": ""}))] == [
        (4, 0), (6, 0),
    ]  # fmt: skip
    assert savings(inventory([], {"n0": ""})) == []


LABELS = ("", "size=small", "size=small,place=north", "place=north")


def drawn(random: random.Random) -> tuple[list[Told], dict[str, str], list[str]]:
    """Return configs in 10.0.0.0/24 that may overlap, nodes, and what is reserved."""
    told = []
    for number in range(random.randint(1, 4)):
        length = random.randint(24, 28)
        network = ip_network((int(ip_network("10.0.0.0/24")[random.randrange(256)]), length), strict=False)
        mask = random.randint(length, 30)
        both = f" fd00::{number:x}00/{length + 96}:{mask + 96}" if random.random() < 0.2 else ""
        told.append((f"c{number}", f"{network}:{mask}{both}", random.choice(LABELS)))
    nodes = {f"n{number}": random.choice(LABELS) for number in range(random.randint(0, 6))}
    return told, nodes, random.choice([[], ["10.0.0.16/28"]])


class Counted:
    """The same allocator, thought of as sets of addresses: slow, and without a tree."""

    def __init__(self, told: Sequence[Told], reserved: Sequence[str]) -> None:
        self.configs = {one[0]: config(*one) for one in told}
        self.taken = {int(address) for network in reserved for address in ip_network(network)}

    def give(self, configs: Sequence[str]) -> str:
        """Give blocks of the first config that has some; return its name, or nothing."""
        for name in configs:
            found = [self.lowest(one) for one in self.configs[name].ranges]
            if all(found):
                self.taken |= {address for block in found for address in block}
                return name
        return ""

    def lowest(self, one: Range) -> range:
        first, last = int(one.network[0]), int(one.network[-1])
        size = 1 << one.host_bits
        for start in range(first, last + 1, size):
            if self.taken.isdisjoint(block := range(start, start + size)):
                return block
        return range(0)

    def take(self, blocks: Sequence[Network]) -> None:
        self.taken |= {address for block in blocks for address in range(int(block[0]), int(block[-1]) + 1)}


def first_out(left: Counted, present: Sequence[Kind]) -> RunsOut | None:
    """Return which config runs out first if nodes come in proportion, each as it is due."""
    if not present:
        return None
    copy = set(left.taken)
    now = []
    for kind in present:
        now.append(left.give(kind.configs))
        left.taken = set(copy)
    due = sorted(
        (Fraction(2 * j + 1, 2 * len(one.nodes)), number)
        for number, one in enumerate(present)
        for j in range(99)
    )
    for came, (_, number) in enumerate(due):
        if left.give(present[number].configs) != now[number]:
            return RunsOut(now[number], came)
    raise AssertionError("these ranges have fewer blocks")


def free_addresses(left: Counted, one: Range) -> set[int]:
    """Return the addresses of a range that are in blocks of which nothing is taken."""
    first, last, size = int(one.network[0]), int(one.network[-1]), 1 << one.host_bits
    blocks = [range(start, start + size) for start in range(first, last + 1, size)]
    return {address for block in blocks if left.taken.isdisjoint(block) for address in block}


@pytest.mark.long
@pytest.mark.parametrize("seed", cases.some_of("CONCORDE_FORECASTS", 100, 3000)(1))
def test_forecasts_are_what_nodes_get_one_by_one(seed: int) -> None:
    told, nodes, reserved = drawn(random.Random(seed))
    one = inventory(told, nodes, reserved)

    def left() -> Counted:
        found = Counted(told, reserved)
        for given in one.allocator.given.values():
            found.take(given.blocks)
        return found

    found, before = kinds(one), dict(one.allocator.given)
    for kind in found:
        alone = left()
        assert kind.fits == next(number for number in count() if not alone.give(kind.configs))
    assert runs_out_first(one) == first_out(left(), [kind for kind in found if kind.nodes and kind.fits])
    for each in (each for one_config in one.allocator.configs.values() for each in one_config.ranges):
        runs = one.allocator.free_in(each)
        assert runs == sorted(runs)
        assert {int(a) for run in runs for a in run} == free_addresses(left(), each)
    assert one.allocator.given == before
