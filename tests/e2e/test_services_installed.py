"""What ``kubectl apply -k edge/deploy/services`` brings to a real cluster, does there, and leaves behind.

The cluster is the overlapped pair's first, on one of its workers. No kube-proxy is there, but rules of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge.services.annotations import OURS, ZONE_HINTS
from edge.services.catalogue import SERVICE_OF
from edge.services.endpoints import ZONE_LABEL
from edge.services.publication import BUILT_IN, MANAGED_BY
from testbed.kubernetes.services import RIGHTS
from testbed.resources import version
from testbed.supplies import services
from testbed.testbed import Testbed
from tests.e2e.conftest import until
from tests.e2e.installed import NEXT, WORKER, Installed, cluster_wide

OWN = {"services' proxy of cluster a", "publisher of hints of cluster a"}
TABLE = ["nft", "-a", "list", "table", "ip", "services-a"]
SETTINGS = """
configMapGenerator:
  - name: settings
    namespace: concorde-services
    behavior: merge
    literals: [cluster=a, "services={services}", "api-host={host}", "api-port={port}"]
"""
CLUSTER = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: proxy, namespace: concorde-services}}
spec:
  template: {{spec: {{nodeSelector: {{kubernetes.io/hostname: {worker}}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: hints, namespace: concorde-services}}
spec:
  template: {{spec: {{nodeSelector: {{kubernetes.io/hostname: {worker}}}}}}}
"""
KUBE_PROXY = """
table ip kube-proxy {{
  map service-ips {{
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = {{ {address} . tcp . 443 : goto kubernetes }}
  }}
  chain kubernetes {{ }}
}}
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 443), timeout=5).close()"
LEFT = {  # by name: what a Service is, and what is said of it
    "affine": ({"sessionAffinity": "ClientIP"}, "NotSupported", "sessionAffinity: ClientIP is not supported"),
    "outside": ({"type": "NodePort"}, "NotSupported", "NodePort is not supported: only the cluster address"),
    "headless": ({"clusterIP": "None"}, "NotSupported", "headless"),
    "named": ({"type": "ExternalName", "externalName": "x.org"}, "NotSupported", "ExternalName"),
    "mistaken": ({}, "HintsIgnored", "not 'aUto': hints are off"),
}
AUTO = {"service.kubernetes.io/topology-aware-hints": "aUto"}


def service(name: str, spec: dict[str, Any], **annotations: str) -> dict[str, Any]:
    ports = [{"name": "web", "port": 80, "protocol": "TCP"}]
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports, **spec}}


def hinted(name: str) -> dict[str, Any]:
    """A slice as the built-in controller makes it, which looks after none of a service without selector."""
    labels = {SERVICE_OF: name, MANAGED_BY: BUILT_IN}
    ends = [
        {"addresses": [f"172.16.9.{at}"], "conditions": {"ready": True}, "topology": {ZONE_LABEL: zone}}
        for at, zone in enumerate("ab", 1)
    ]
    return {
        "apiVersion": "discovery.k8s.io/v1beta1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "labels": labels},
        "addressType": "IPv4",
        "endpoints": ends,
        "ports": [{"name": "web", "port": 8080, "protocol": "TCP"}],
    }


class Cluster(Installed):
    """A cluster in which services are served on one node."""

    def __init__(self, pair: Testbed, directory: Path) -> None:
        super().__init__(pair, directory, "services", services.provide(), CLUSTER, SETTINGS)
        self.api = str(pair.addressing.service_range("a")[1])
        self._pod = pair.networks["A-1"]

    def table(self) -> str:
        """The table, which begins with the number by which the kernel knows it; nothing if there is none."""
        return self.node.run(TABLE, check=False).stdout

    def answers(self) -> bool:
        """Whether the API answers a pod at its Service."""
        return self._pod.run(["python3", "-c", CONNECT, self.api], check=False).status == 0

    def said(self, kind: str, component: str) -> dict[str, list[str]]:
        """What was said of objects of a kind, by their names."""
        found: dict[str, list[str]] = {}
        for one in self.client.get("events", f"--field-selector=involvedObject.kind={kind}")["items"]:
            if one["source"]["component"] == component:
                text = f"{one['count']} {one['reason']}: {one['message']}"
                found.setdefault(one["involvedObject"]["name"], []).append(text)
        return found

    def hints(self) -> str:
        slice_ = self.client.get("endpointslice", "close-by-1")
        return str((slice_["metadata"].get("annotations") or {}).get(ZONE_HINTS, ""))


@pytest.fixture
def cluster(pair: Testbed, tmp_path: Path) -> Iterator[Cluster]:
    """Without the testbed's own proxies and publisher meanwhile: what is installed takes their place."""
    made = Cluster(pair, tmp_path)
    own = [one for one in pair.serving if one.name in OWN]
    assert {one.name for one in own} == OWN
    rights = [f"--filename={file}" for file in RIGHTS]
    try:
        for one in own:
            one.kill()
        for one in own:
            one.place.run(["nft", "delete", "table", "ip", "services-a"], check=False)
        made.client.run("delete", "--ignore-not-found", *rights)
        yield made
    finally:
        made.client.run("delete", "services,endpointslices", "--selector=tests=services", check=False)
        made.client.run("apply", *rights)
        for one in own:
            one.start()
        until(lambda: pair.check() == [])


@pytest.mark.by_turns
@pytest.mark.alone  # who is told to end has to be heard, and the API to answer, while a pod's grace lasts
def test_services_are_served_through_an_upgrade_and_nothing_is_left(pair: Testbed, cluster: Cluster) -> None:
    before, client, node = cluster_wide(pair), cluster.client, cluster.node
    rules = node.run(["nft", "list", "tables"]).stdout
    items = [service(name, spec, **(AUTO if not spec else {})) for name, (spec, _, _) in LEFT.items()]
    items += [service("close-by", {}, **{OURS: "close"}), hinted("close-by")]
    for one in items:
        one["metadata"].setdefault("labels", {})["tests"] = "services"
    client.apply(items)
    assert not cluster.answers()

    # Where a kube-proxy serves this cluster, ours does not.
    node.run(["nft", "-f", "-"], stdin=KUBE_PROXY.format(address=cluster.api))
    cluster.apply(version())
    until(lambda: WORKER in cluster.said("Node", "concorde-services"), cluster.words)
    (said,) = cluster.said("Node", "concorde-services")[WORKER]
    assert said.startswith("1 ServicesLeftAlone: kube-proxy, mode nftables serves")
    assert cluster.table() == ""
    node.run(["nft", "delete", "table", "ip", "kube-proxy"])
    until(lambda: cluster.api in cluster.table(), cluster.words)
    assert cluster.answers()

    # What is not built is said once, by one, and the others are served.
    until(lambda: set(LEFT) <= set(cluster.said("Service", "concorde-hints")), cluster.words)
    told = cluster.said("Service", "concorde-hints")
    for name, (_, reason, text) in LEFT.items():
        (only,) = told[name]
        assert only.startswith(f"1 {reason}: ")
        assert text in only
    until(cluster.hints, cluster.words)
    assert json.loads(cluster.hints()) == {"172.16.9.1": ["a"], "172.16.9.2": ["b"]}

    handle = cluster.table().splitlines()[0]
    cluster.apply(NEXT)
    assert cluster.table().splitlines()[0] == handle
    assert cluster.answers()

    cluster.delete()
    until(lambda: cluster.table() == "", every=0.2)
    until(lambda: cluster_wide(pair) == before, every=0.2)
    assert node.run(["nft", "list", "tables"]).stdout == rules
    client.run("annotate", "endpointslices", "--all", f"{ZONE_HINTS}-")
    assert cluster.hints() == ""
