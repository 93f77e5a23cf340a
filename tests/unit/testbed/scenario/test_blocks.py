"""Which blocks the nodes of a scenario have, and that one size for all is one range among others."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from edge.addresses import kinds
from testbed.scenario import Scenario, blocks, load, parse, render_yaml
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import PodCidr
from tests import effort
from tests.paths import ROOT
from tests.unit.testbed.builders import addressed

SIZES = (
    "clusters.a={master: master-01, workers: [worker-01, worker-02], pod_cidrs: ["
    "{name: large, cidr: 172.16.0.0/20, mask: 24},"
    "{name: small, cidr: 172.16.32.0/24, mask: 27, nodes: {size: small}},"
    "{name: one, cidr: 172.16.33.0/24, mask: 29, nodes: {kubernetes.io/hostname: worker-02}}]}"
)


def given(addressing: Addressing, cluster: str) -> dict[str, str]:
    return {node: str(block) for node, block in addressing.blocks(cluster).given.items()}


def test_blocks_are_of_the_range_whose_labels_a_node_has() -> None:
    one = addressed("contmec", SIZES, "nodes.worker-01={labels: {size: small}}")
    assert given(one, "a") == {
        "master-01": "172.16.0.0/24",
        "worker-01": "172.16.32.0/27",
        "worker-02": "172.16.33.0/29",
    }
    assert one.blocks("a").configs == {"master-01": "large", "worker-01": "small", "worker-02": "one"}
    assert given(one, "b") == given(addressed("contmec"), "b")


def test_the_next_best_range_serves_when_one_is_used_up() -> None:
    single = SIZES.replace("172.16.32.0/24", "172.16.32.0/27").replace("hostname: worker-02", "hostname: x")
    labels = [f"nodes.worker-0{number}={{labels: {{size: small}}}}" for number in (1, 2)]
    assert given(addressed("contmec", single, *labels), "a") == {
        "master-01": "172.16.0.0/24",
        "worker-01": "172.16.32.0/27",
        "worker-02": "172.16.1.0/24",
    }


@pytest.mark.parametrize("name", ["contmec", "examples/two-stations", "examples/partial-overlap"])
def test_one_size_for_all_gives_what_a_list_of_it_gives(name: str) -> None:
    old = load(ROOT / "scenarios" / f"{name}.yaml")
    data = old.model_dump(mode="json", by_alias=True, exclude_none=True)
    for cluster in data["clusters"].values():
        cidr, mask = cluster.pop("pod_cidr"), cluster.pop("node_prefix")
        cluster["pod_cidrs"] = [{"name": "all", "cidr": cidr, "mask": mask}]
    new = Scenario.model_validate(data)
    for cluster in old.clusters:
        assert given(Addressing(new), cluster) == given(Addressing(old), cluster)
        assert Addressing(new).flannel_network(cluster) == old.clusters[cluster].pod_cidr


def test_a_subnet_is_the_first_free_one_in_the_order_of_nodes() -> None:
    one = addressed("contmec", "clusters.a.pod_cidr=10.0.0.0/8", "clusters.a.node_prefix=12")
    assert list(given(one, "a").values()) == ["10.0.0.0/12", "10.16.0.0/12", "10.32.0.0/12"]


def test_a_scenario_is_read_back_as_it_was_written() -> None:
    one = addressed("contmec", SIZES, "nodes.worker-01={labels: {size: small}}").scenario
    assert parse(render_yaml(one)) == one
    assert "node_prefix" not in render_yaml(one).partition("\n  b:")[0]
    old = render_yaml(addressed("contmec").scenario)
    assert "    pod_cidr: 172.16.0.0/16\n    node_prefix: 24\n    flannel:\n" in old
    assert "pod_cidrs" not in old
    assert "labels" not in old


def test_name_and_zone_are_labels_by_themselves() -> None:
    stations = addressed("examples/two-stations", "nodes.worker-03.labels={size: small}").scenario
    assert blocks.labels_of(stations, "worker-03") == {
        "size": "small",
        "kubernetes.io/hostname": "worker-03",
        "topology.kubernetes.io/zone": "south",
    }
    assert blocks.labels_of(addressed("contmec").scenario, "worker-01") == {
        "kubernetes.io/hostname": "worker-01"
    }


def test_an_entry_is_a_config_in_fewer_words() -> None:
    entry = PodCidr.model_validate(
        {
            "name": "Small",
            "cidr": "10.0.0.0/16",
            "mask": 24,
            "ipv6": {"cidr": "fd62::/112", "mask": 120},
            "nodes": {"size": "small"},
        }
    )
    said = blocks.manifest(entry)
    assert said["metadata"]["name"] == "small"
    config = kinds.parse(said)
    ranges = [f"{one.network}:{one.mask}" for one in config.ranges]
    assert ranges == ["10.0.0.0/16:24", "fd62::/112:120"]
    assert config.selector.matched({"size": "small"}) == 1
    assert list(blocks.problems(entry)) == []


def test_flannel_knows_the_smallest_network_around_all_ranges() -> None:
    networks = [IPv4Network(text) for text in ("10.0.0.0/24", "10.0.3.0/25")]
    assert str(blocks.around(networks)) == "10.0.0.0/22"
    assert str(blocks.around(networks[:1])) == "10.0.0.0/24"
    assert [str(one) for one in blocks.together([*networks, IPv4Network("10.0.1.0/24")])] == [
        "10.0.0.0/23",
        "10.0.3.0/25",
    ]


def test_an_inventory_has_each_node_with_its_block_and_its_pods() -> None:
    one = addressed("contmec", SIZES, "nodes.worker-01={labels: {size: small}}").scenario
    found = blocks.inventory(one, "a")
    assert [(row.node, row.config, str(row.blocks[0]), row.pods) for row in found.rows()] == [
        ("master-01", "large", "172.16.0.0/24", 0),
        ("worker-01", "small", "172.16.32.0/27", 2),
        ("worker-02", "one", "172.16.33.0/29", 2),
    ]
    assert (found.cluster, dict(found.waiting)) == ("a", {})


@pytest.mark.parametrize("first", [None, "10.0.4.0/24"])
@pytest.mark.parametrize(
    "taken",
    [[], ["10.0.0.0/8"], ["10.0.1.0/28", "10.0.4.0/23"], ["9.0.0.0/8", "10.0.7.255/32"], ["0.0.0.0/0"]],
)
def test_what_is_free_is_all_in_which_nobody_has_addresses(taken: list[str], first: str | None) -> None:
    within, others = IPv4Network("10.0.0.0/21"), [IPv4Network(one) for one in taken]
    begin = IPv4Network(first) if first else None
    subnets = [one for one in within.subnets(new_prefix=24) if begin is None or one >= begin]
    free = [one for one in subnets if not any(map(one.overlaps, others))]
    assert list(blocks.free(within, 24, others, begin)) == free


def test_what_is_free_is_found_behind_half_of_all_addresses_at_once() -> None:
    taken = [IPv4Network("0.0.0.0/1")]
    within = IPv4Network("0.0.0.0/0")
    assert effort.lines(lambda: next(blocks.free(within, 30, taken))) < 1000
