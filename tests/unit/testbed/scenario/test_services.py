"""Where services have addresses: in ranges that nobody else has."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

from testbed.scenario import Scenario, services

ROOM = {"pod_cidr": "172.16.0.0/16"}


def ranges(*clusters: dict[str, Any], **more: Any) -> list[str]:
    """Return where clusters' services are, each of which says this; they share their nodes."""
    nodes = {"master": "master-01", "workers": ["worker-01"]}
    scenario = Scenario.model_validate(
        {
            "name": "services",
            "nodes": {"master-01": None, "worker-01": None},
            "clusters": {f"c{number}": {**nodes, **one} for number, one in enumerate(clusters)},
            "pods": {"A-1": {"cluster": "c0", "node": "worker-01"}},
            **more,
        }
    )
    return [str(one) for one in services.ranges(scenario).values()]


@pytest.mark.parametrize(
    ("clusters", "found"),
    [
        ([ROOM], ["10.96.0.0/16"]),
        ([ROOM, {"pod_cidr": "172.17.0.0/16"}], ["10.96.0.0/16", "10.97.0.0/16"]),
        # What another says is left to it, wherever it stands.
        ([ROOM, {"service_cidr": "10.96.128.0/20"}], ["10.97.0.0/16", "10.96.128.0/20"]),
        ([{"pod_cidr": "10.96.0.0/15"}], ["10.98.0.0/16"]),
        ([{"pod_cidrs": [{"name": "all", "cidr": "10.64.0.0/10", "mask": 24}]}], ["10.128.0.0/16"]),
        # Nothing is left: as ever, and nothing there is served.
        ([{"pod_cidr": "10.0.0.0/8"}], ["10.96.0.0/16"]),
    ],
)
def test_each_cluster_has_a_range_in_which_nobody_else_is(
    clusters: list[dict[str, Any]], found: list[str]
) -> None:
    assert ranges(*clusters) == found


def test_it_is_not_where_nodes_or_containers_are() -> None:
    found = ranges(ROOM, underlay={"cidr": "10.96.8.0/24"}, container_cidr="10.97.0.0/16")
    assert found == ["10.98.0.0/16"]


def test_a_hundred_clusters_have_each_its_own() -> None:
    found = ranges(*(ROOM for _ in range(100)))
    assert len(set(found)) == 100
    assert not any(IPv4Network(one).overlaps(IPv4Network("172.16.0.0/12")) for one in found)
