"""What a node's program is told: with the blocks filled in it is what the pod network itself says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge.addresses import joining
from testbed.enforcements import registry as enforcements
from testbed.kubernetes.joining import RIGHTS, Stations, api_of
from testbed.kubernetes.manifests import name_of
from testbed.kubernetes.worker import render_network
from testbed.overlays import registry
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import Scenario
from tests.doubles import RecordingNode

BACKENDS = ["vxlan", "vxlan-miss", "host-gw", "ipip", "bgp"]
KIOSK = {"name": "kiosk", "cidr": "172.16.40.0/26", "mask": 29, "nodes": {"size": "kiosk"}}
AHEAD = {"resolve": {"l2": "ahead", "l3": "ahead"}}
REFLECTED = {"bgp": {"route_reflector": "master-01"}}


def addressed(backend: str, *more: dict[str, Any], **settings: Any) -> Addressing:
    """Return a cluster whose third worker has a block if there is a range for it."""
    large = {"name": "large", "cidr": "172.16.0.0/23", "mask": 24}
    small = {"name": "small", "cidr": "172.16.32.0/24", "mask": 27, "nodes": {"size": "small"}}
    a = {"master": "master-01", "workers": ["Worker-1", "worker-2", "worker-3"], "backend": backend}
    return Addressing(
        Scenario.model_validate(
            {
                "name": "blocks",
                "nodes": {
                    "master-01": None,
                    "Worker-1": None,
                    "worker-2": {"labels": {"size": "small"}},
                    "worker-3": {"labels": {"size": "kiosk"}, "expect": "unassigned"},
                },
                "clusters": {"a": {**a, "pod_cidrs": [large, small, *more], **settings}},
                "enforcement": "pod",
                "pods": {
                    "A-1": {"cluster": "a", "node": "Worker-1", "guarantee": "10M"},
                    "A-2": {"cluster": "a", "node": "worker-2"},
                },
                "flows": [{"from": "A-1", "to": "A-2"}],
            }
        )
    )


def stations(addressing: Addressing, joined_by_others: bool = False) -> Stations:
    nodes = {name: RecordingNode(name) for name in addressing.scenario.nodes}
    enforcement = enforcements.of(addressing)
    return Stations(addressing, enforcement, "a", nodes, lambda *_: Path("/bin/x"), joined_by_others)


def plan_of(addressing: Addressing, node: str) -> joining.Plan:
    return joining.parse(json.dumps(stations(addressing).plan(node)))


@pytest.mark.parametrize("node", ["master-01", "Worker-1", "worker-3"])
@pytest.mark.parametrize(
    ("backend", "settings"), [*((name, {}) for name in BACKENDS), ("vxlan-miss", AHEAD), ("bgp", REFLECTED)]
)
def test_a_plan_says_what_the_network_says_before_and_after_a_range_came(
    backend: str, settings: dict[str, Any], node: str
) -> None:
    before, after = addressed(backend, **settings), addressed(backend, KIOSK, **settings)
    plan = plan_of(before, node)
    for addressing in (before, after):
        given = {name_of(name): block for name, block in addressing.blocks("a").given.items()}
        wanted = joining.wanted(plan, given)
        if node not in addressing.members("a"):
            assert (set(wanted.batches.values()), wanted.files) == ({""}, {})
            continue
        network = registry.of_cluster(addressing, "a").by_api(api_of(addressing, "a"))
        # A range that was not there at first is not known, but the blocks of it are.
        links = network.links(node).replace("rule add to 172.16.40.0/26", "rule add to 172.16.40.0/29")
        assert wanted.batches == {"ip": links, "bridge": network.forwarding(node)}
        files = dict(network.files(node))
        for daemon in network.daemons(node):
            files |= daemon.files
        if node != "master-01":
            conflist = render_network(enforcements.of(addressing).network_list("a", node))
            files["/run/kubernetes/a/cni/net.d/cluster-a.conflist"] = conflist
        assert list(wanted.files.items()) == list(files.items())


def test_the_network_list_is_written_last_and_alone_where_others_join_nodes() -> None:
    plan = stations(addressed("vxlan"), joined_by_others=True).plan("worker-3")
    assert plan["batches"] == {}
    assert list(plan["files"]) == ["/run/kubernetes/a/cni/net.d/cluster-a.conflist"]  # type: ignore[call-overload]


def test_a_daemon_is_told_when_its_file_is_another() -> None:
    plan = plan_of(addressed("bgp"), "worker-3")
    control = "/run/bird/a/bird.ctl"
    assert plan.reloads == [("/run/bird/a/bird.conf", ["/bin/x", "-s", control, "configure"])]


def test_each_program_may_see_nodes_and_nothing_else() -> None:
    made = stations(addressed("vxlan")).manifests
    roles = {one["metadata"]["name"]: one["rules"] for one in made if one["kind"] == "ClusterRole"}
    assert roles == {
        f"join:{name}": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]
        for name in ("master-01", "worker-1", "worker-2", "worker-3")
    }
    assert RIGHTS[0]["verbs"] == ["list", "watch"]
