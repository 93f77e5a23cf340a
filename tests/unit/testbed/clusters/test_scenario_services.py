"""A scenario's services in a cluster that exists: what its API is told, and what is waited for."""

from __future__ import annotations

import json

import pytest

from edge.services.catalogue import SERVICE_OF
from edge.services.discovery import VERSION
from edge.services.publication import BUILT_IN, MANAGED_BY
from testbed.access.place import Result
from testbed.clusters import services
from testbed.clusters.kubeconfigs import Outside
from testbed.kubernetes.client import PodError
from testbed.kubernetes.manifests import endpoint_label
from tests.doubles import Asked, RecordingNode, shown
from tests.unit.testbed.builders import addressed

WEB = "services={web: {cluster: a, pods: [A-2, A-3], hints: auto}, data: {cluster: b, pods: [B-1]}}"
PODS = {"A-2": "10.1.0.2", "A-3": "10.1.0.3", "B-1": "10.2.0.1"}


class Cluster:
    """One that learns of an endpoint each time it is asked."""

    def __init__(self, *addresses: str) -> None:
        self._addresses, self._known = addresses, 0
        self.made: list[dict[str, object]] = []
        self.client = Outside("a", RecordingNode("here", self._answer), "kubectl", "/a.conf")

    def _answer(self, asked: Asked) -> Result:
        if "apply" in asked.argv:
            self.made += json.loads(asked.stdin)["items"]
            return shown({})
        if "--raw" in asked.argv:
            group = {"versions": [{"groupVersion": "discovery.k8s.io/v1beta1"}]}
            return shown({"major": "1", "minor": "20"} if VERSION in asked.argv else group)
        self._known += 1
        ends = [{"addresses": [one], "conditions": {"ready": True}} for one in self._addresses[: self._known]]
        labels = {SERVICE_OF: "web", MANAGED_BY: BUILT_IN}
        metadata = {"name": "web-1", "namespace": "concorde-bench", "labels": labels}
        return shown({"items": [{"metadata": metadata, "addressType": "IPv4", "endpoints": ends}]})


def test_its_own_are_made_in_the_runs_namespace_and_their_endpoints_waited_for() -> None:
    cluster = Cluster("10.1.0.2", "10.1.0.3")
    services.serve(addressed("contmec", WEB), cluster.client, PODS, seconds=60)
    (made,) = cluster.made
    assert made["kind"] == "Service"
    assert made["metadata"] == {
        "name": "web",
        "namespace": "concorde-bench",
        "labels": {"concorde.contmec.dev/made-by": "bench"},
        "annotations": {"service.kubernetes.io/topology-aware-hints": "Auto"},
    }
    spec = made["spec"]
    assert isinstance(spec, dict)
    assert (spec["clusterIP"], spec["selector"]) == ("10.96.0.11", endpoint_label("web"))


def test_an_endpoint_that_does_not_come_is_named() -> None:
    cluster = Cluster("10.1.0.2")
    with pytest.raises(PodError, match=r"services of cluster a: web lacks endpoint 10\.1\.0\.3"):
        services.serve(addressed("contmec", WEB), cluster.client, PODS, seconds=0)


def test_a_cluster_without_services_is_not_asked() -> None:
    cluster = Cluster()
    services.serve(addressed("contmec"), cluster.client, PODS, seconds=0)
    assert cluster.made == []
