"""A cluster's controller keeps the scenario's rules, and nodes come in its order, whoever looks when."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from edge.addresses.allocation import Allocator, Node
from edge.addresses.arrivals import Arrivals
from edge.addresses.books import Rules, agreed, judged
from edge.addresses.controller import parse
from testbed.kubernetes.addresses import in_turn, told
from testbed.scenario import ScenarioError, blocks
from testbed.scenario.model import PodCidr
from tests.unit.edge.addresses.builders import config
from tests.unit.testbed.builders import addressed


def test_a_controller_is_told_what_no_node_gets_and_whether_nodes_wrap_packets() -> None:
    stations = addressed("examples/stations-of-different-sizes")
    services = [f"--reserved={stations.service_range(cluster)}" for cluster in "ab"]
    underlay, containers = "--reserved=192.168.58.0/24", f"--reserved={stations.scenario.container_cidr}"
    others = ["--reserved=172.17.0.0/20", "--reserved=172.17.32.0/24"]
    assert told(stations, "a") == [services[0], underlay, containers, *others, "--island"]
    others = ["--reserved=172.16.0.0/20", "--reserved=172.16.32.0/24", "--reserved=172.16.40.0/26"]
    assert told(stations, "b") == [services[1], underlay, containers, *others, "--island"]
    routed = addressed("examples/stations-of-different-sizes", "clusters.a.backend=host-gw")
    assert told(routed, "a")[-1] == "--reserved=172.17.32.0/24"
    assert parse(["--api=http://x:1", *told(stations, "a")]).rules.island


SINGLE = {"cidr": "172.17.0.0/16", "mask": 24}
BOTH = {**SINGLE, "ipv6": {"cidr": "fd00::/112", "mask": 120}}
SMALLER = {"cidr": "172.17.0.0/20", "mask": 26, "ipv6": {"cidr": "fd01::/112", "mask": 122}}


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ([SINGLE, SINGLE], []),
        ([BOTH, BOTH], []),
        ([SINGLE, BOTH, SMALLER], ["y must have IPv4 alone", "x must have IPv4 alone"]),
        ([BOTH, SINGLE, SMALLER], ["y must have IPv6 too", "x must have IPv4 172.17.0.0/16 by /24"]),
    ],
)
def test_what_a_scenario_is_refused_for_its_controller_says_of_configs_that_came_so(
    asked: list[dict[str, Any]], refused: list[str]
) -> None:
    entries = [{"name": name, **one} for name, one in zip("zyx", asked, strict=False)]
    a = {"master": "master-01", "workers": ["worker-01", "worker-02"], "pod_cidrs": entries}
    b = "clusters.b.pod_cidr=172.16.0.0/16"
    held = []
    for second, entry in enumerate(entries):
        document = blocks.manifest(PodCidr.model_validate(entry))
        document["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{second}Z"
        held.append(judged("kind", document))
    said = [f"{one.name} {one.message}" for one in agreed(held[::-1], Rules(island=True))[::-1] if one.reason]
    assert [words for words, told in zip(refused, said, strict=True) if told.startswith(words)] == refused
    try:
        addressed("contmec", f"clusters.a={json.dumps(a)}", b)
        faults = []
    except ScenarioError as error:
        faults = str(error).splitlines()
    assert [told.partition(" ")[2] for told in said] == [
        fault.partition("]")[2].partition(": ")[2] for fault in faults
    ]


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
