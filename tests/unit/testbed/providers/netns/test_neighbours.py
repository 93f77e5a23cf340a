"""When nodes are told of each other ahead, and what."""

from __future__ import annotations

import pytest

from testbed.providers.netns import provider
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing


def mesh(count: int) -> Scenario:
    """Return one cluster of so many nodes."""
    names = [f"n{number}" for number in range(count)]
    cluster = {"master": names[0], "workers": names[1:], "pod_cidr": "172.16.0.0/16"}
    pods = {f"p{number}": {"cluster": "a", "node": names[number]} for number in (1, 2)}
    return Scenario.model_validate(
        {
            "name": "mesh",
            "nodes": dict.fromkeys(names),
            "clusters": {"a": cluster},
            "pods": pods,
            "flows": [{"from": "p1", "to": "p2"}],
        }
    )


@pytest.mark.parametrize(("count", "fills"), [(3, False), (23, False), (24, True), (60, True), (201, False)])
def test_a_mesh_fills_half_the_kernels_table_from_24_nodes_on(count: int, fills: bool) -> None:
    assert bool(provider.mates(mesh(count), 1024)) is fills


def test_a_node_is_told_of_those_of_its_clusters_once(contmec: Addressing) -> None:
    others = provider.mates(contmec.scenario, 8)
    assert provider.render_neighbours(contmec, "master-01", others["master-01"]) == (
        "neighbour replace 192.168.56.13 lladdr 02:00:c0:a8:38:0d dev eth0 nud permanent\n"
        "neighbour replace 192.168.56.14 lladdr 02:00:c0:a8:38:0e dev eth0 nud permanent\n"
    )
    text = provider.render_neighbours(contmec, "worker-01", others["worker-01"])
    assert text.count("192.168.56.14 ") == 1
