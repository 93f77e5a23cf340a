"""In which order nodes come to a cluster that gives them their blocks: the scenario's, whoever looks when."""

from __future__ import annotations

import random

from edge.addresses.allocation import Allocator, Node
from edge.addresses.arrivals import Arrivals
from testbed.kubernetes.addresses import in_turn
from tests.unit.edge.addresses.builders import config


def test_those_that_come_together_are_in_the_order_of_their_names() -> None:
    assert in_turn([]) == []
    assert in_turn(["master-01", "worker-01", "worker-02"]) == [["master-01", "worker-01", "worker-02"]]
    assert in_turn(["m", "W-3", "w-2", "w-4", "A"]) == [["m", "W-3"], ["w-2", "w-4"], ["A"]]


def test_a_controller_that_lists_them_at_any_time_gives_what_the_scenario_says() -> None:
    chance = random.Random(5)
    for _ in range(50):
        names = chance.sample("abcdefghij", 6)
        allocator, scenario = Allocator(), Allocator()
        for one in (allocator, scenario):
            one.add(config("all", "10.0.0.0/24:27"))
        wanted = {name: scenario.allocate(Node(name, {})).blocks for name in names}
        arrivals = Arrivals(allocator)
        there: dict[str, Node] = {}
        for group in in_turn(names):
            there |= {name: Node(name, {}, created="2026-01-01T00:00:00Z", uid=name) for name in group}
            if chance.random() < 0.5:
                for name in group:
                    arrivals.came(there[name])
            else:
                arrivals.listed(chance.sample(list(there.values()), len(there)))
            there |= {name: there[name]._replace(blocks=allocator.given[name].blocks) for name in group}
        assert {name: one.blocks for name, one in allocator.given.items()} == wanted
