"""Networks whose daemons ask a cluster's API: which they are, and what they need there."""

from __future__ import annotations

from pathlib import Path

from testbed.orchestrators import own
from testbed.orchestrators.own import ByApi
from tests.doubles import RecordingNode
from tests.unit.testbed.builders import addressed

MISS = "clusters.a.backend=vxlan-miss"


def test_only_networks_with_a_use_for_an_api_are_joined_by_one() -> None:
    assert list(own.clusters(addressed("contmec"))) == []
    assert list(own.clusters(addressed("contmec", MISS, "clusters.b.backend=host-gw"))) == ["a"]


def test_each_nodes_daemon_may_write_its_own_node_alone() -> None:
    addressing = addressed("contmec", MISS)
    nodes = {name: RecordingNode(name) for name in addressing.scenario.nodes}
    made = ByApi(addressing, "a", nodes, lambda *_: Path("/nowhere")).manifests
    roles = {one["metadata"]["name"]: one["rules"] for one in made if one["kind"] == "ClusterRole"}
    assert set(roles) == {"overlay:master-01", "overlay:worker-01", "overlay:worker-02"}
    written = [rule["resourceNames"] for rule in roles["overlay:worker-02"] if "patch" in rule["verbs"]]
    assert written == [["worker-02"]]
    bound = [one for one in made if one["kind"] == "ClusterRoleBinding"]
    assert {one["roleRef"]["name"]: one["subjects"][0]["name"] for one in bound} == {
        name: name for name in roles
    }
    (master,) = [one for one in made if one["kind"] == "Node"]
    assert master["spec"]["podCIDR"] == "172.16.0.0/24"
