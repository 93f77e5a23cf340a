"""Pods and nodes of a scenario, as an API is given them."""

from __future__ import annotations

from testbed.enforcements import registry
from testbed.enforcements.enforcement import RESOURCE
from testbed.kubernetes import manifests
from testbed.kubernetes.manifests import Manifest
from testbed.scenario.addressing import Addressing
from testbed.supplies import versions
from tests.unit.testbed.builders import addressed


def pod(addressing: Addressing, name: str) -> Manifest:
    return manifests.pod(addressing.scenario, registry.of(addressing), name)


def node(addressing: Addressing, cluster: str, name: str) -> Manifest:
    return manifests.node(addressing, registry.of(addressing), cluster, name)


def test_a_pod_states_its_bandwidth_by_annotations_and_goes_through_the_scheduler(
    contmec: Addressing,
) -> None:
    made = pod(contmec, "A-1")
    assert made["metadata"]["name"] == "a-1"
    assert made["metadata"]["annotations"] == {"concorde.contmec.dev/egress-guarantee": "1G"}
    assert "nodeName" not in made["spec"]
    assert made["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "worker-01"}
    assert made["spec"]["containers"][0]["imagePullPolicy"] == "Never"
    assert "resources" not in made["spec"]["containers"][0]  # nobody knows how fast the link is


def test_for_the_reference_plugin_a_guarantee_is_written_as_a_limit() -> None:
    annotations = pod(addressed("contmec", "enforcement=bandwidth"), "A-1")["metadata"]["annotations"]
    assert annotations == {"kubernetes.io/egress-bandwidth": "1G"}


def test_where_the_link_is_known_a_pod_takes_what_it_is_promised_of_it(congested: Addressing) -> None:
    container = pod(congested, "A-2")["spec"]["containers"][0]
    assert container["resources"] == {"limits": {RESOURCE: "3000000000"}}
    made = node(congested, "a", "worker-01")
    assert made["status"]["allocatable"][RESOURCE] == str(registry.of(congested).capacity("a", "worker-01"))


def test_a_node_comes_with_the_scenarios_subnet(contmec: Addressing) -> None:
    assert node(contmec, "b", "worker-02")["spec"]["podCIDR"] == "172.17.2.0/24"


def test_kubelets_of_versions_that_leave_it_need_not_be_told_again_what_a_node_has(
    contmec: Addressing, congested: Addressing
) -> None:
    old, new = versions.parse("1.20.2"), versions.parse("1.30.0")
    published = manifests.publication(registry.of(congested), "a", "worker-01", new)
    assert published["status"]["capacity"] == published["status"]["allocatable"]
    assert list(published["status"]["capacity"]) == [RESOURCE]
    assert manifests.publication(registry.of(congested), "a", "worker-01", old) == {}
    # Nobody knows how fast the link is.
    assert manifests.publication(registry.of(contmec), "a", "worker-01", new) == {}


def test_no_pod_is_placed_on_a_master(contmec: Addressing) -> None:
    master = manifests.master(contmec, "b")
    assert master["metadata"]["name"] == "master-02"
    assert master["spec"]["unschedulable"] is True
