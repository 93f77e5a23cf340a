"""What is made in clusters that exist."""

from __future__ import annotations

import json

from testbed.clusters import kubeconfigs, namespaces
from testbed.enforcements.enforcement import INGRESS_RESOURCE, RESOURCE
from testbed.kubernetes import manifests
from tests.unit.testbed.clusters.builders import (
    enforcement,
    machine,
    scenario,
)


def test_a_pod_is_the_scenarios_and_ends_by_itself() -> None:
    made = namespaces.pod_manifest(
        scenario(), enforcement(scenario()), "A-1", machine(), "example/iperf3:1", 100
    )
    assert made["metadata"]["namespace"] == kubeconfigs.NAMESPACE
    assert made["metadata"]["labels"] == namespaces.LABEL | {manifests.LABEL: "contmec"}
    assert made["metadata"]["annotations"] == {"concorde.contmec.dev/egress-guarantee": "50M"}
    spec = made["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "ip-10-0-0-7.example"}
    assert spec["activeDeadlineSeconds"] == 100
    assert "hostNetwork" not in spec
    (container,) = spec["containers"]
    assert container["image"] == "example/iperf3:1"
    assert "resources" not in container


def test_a_pod_asks_for_bandwidth_where_that_is_published() -> None:
    made = namespaces.pod_manifest(
        scenario(), enforcement(scenario()), "A-1", machine(allocatable={RESOURCE: "1"}), "image", 100
    )
    assert made["spec"]["containers"][0]["resources"] == {"limits": {RESOURCE: "50000000"}}


def test_of_two_resources_it_asks_for_those_that_are_published() -> None:
    woven = scenario("enforcement=fabric", "pods.A-1.ingress=2G")
    for published in ({RESOURCE}, {RESOURCE, INGRESS_RESOURCE}):
        one = machine(allocatable=dict.fromkeys(published, "1"))
        made = namespaces.pod_manifest(woven, enforcement(woven), "A-1", one, "image", 100)
        limits = made["spec"]["containers"][0]["resources"]["limits"]
        asked = {RESOURCE: "55000000", INGRESS_RESOURCE: "100000000"}  # a twentieth for answers
        assert limits == {name: asked[name] for name in published}
        assert made["metadata"]["annotations"]["concorde.contmec.dev/ingress-guarantee"] == "100M"


def test_what_a_kubelet_has_set_to_zero_is_not_published() -> None:
    made = namespaces.pod_manifest(
        scenario(), enforcement(scenario()), "A-1", machine(allocatable={RESOURCE: "0"}), "image", 100
    )
    assert "resources" not in made["spec"]["containers"][0]


def test_a_container_is_in_its_nodes_network_and_promised_nothing() -> None:
    made = namespaces.container_manifest("container-1", machine(), "image", 100)
    assert made["spec"]["hostNetwork"] is True
    assert made["metadata"]["annotations"] == {}
    assert "privileged" not in json.dumps(made)


def test_only_helpers_are_privileged_and_are_where_they_must_be() -> None:
    made = namespaces.helper_manifest("worker-01", machine(), "image", 100)
    assert made["spec"]["nodeName"] == "ip-10-0-0-7"
    assert made["spec"]["containers"][0]["securityContext"] == {"privileged": True}
