"""What ``kubectl apply -k edge/deploy/devices`` brings to a real cluster, does there, and leaves behind.

The cluster is the overlapped pair's first. The thesis' gateway is a name in its API: pods for it wait.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edge.devices.definitions import DIRECTORY
from edge.devices.picture import CONNECTIONS, DEPLOYMENTS, DEVICES, SERVICES
from testbed.resources import version
from testbed.supplies import devices
from testbed.testbed import Testbed
from tests.e2e.conftest import until
from tests.e2e.installed import NEXT, Installed, cluster_wide
from tests.thesis import CONNECTION, DEFINITION, DEVICE

# What an administrator of this cluster says besides: where the API is, to which no kube-proxy leads, and from
# where it is reached.
CLUSTER = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: devices, namespace: concorde-devices}}
spec:
  template:
    spec:
      nodeSelector: {{kubernetes.io/hostname: {worker}}}
      hostNetwork: true
      containers:
        - name: devices
          env:
            - {{name: KUBERNETES_SERVICE_HOST, value: "{host}"}}
            - {{name: KUBERNETES_SERVICE_PORT, value: "{port}"}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: networks, namespace: concorde-devices}}
spec:
  template:
    spec:
      nodeSelector: {{kubernetes.io/hostname: {worker}}}
      containers:
        - name: networks
          env:
            - {{name: KUBERNETES_SERVICE_HOST, value: "{host}"}}
            - {{name: KUBERNETES_SERVICE_PORT, value: "{port}"}}
"""
NAME = "dop-sample-connection"
GATEWAY = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kedge1", "labels": {"edge": "true"}}}


class Cluster(Installed):
    """A cluster in which the operator is installed."""

    def __init__(self, pair: Testbed, directory: Path) -> None:
        super().__init__(pair, directory, "devices", devices.provide(), CLUSTER)

    def applied(self, document: Any, *options: str) -> str:
        """Apply an object; return what is said against it."""
        text = json.dumps(document)
        return self.client.run("apply", "--filename=-", *options, stdin=text, check=False).stderr

    def one(self, kind: str, name: str = NAME) -> Any:
        """An object, or nothing if it is not there."""
        plural = kind.rpartition("/")[2]
        found = self.client.get(plural, f"--field-selector=metadata.name={name}")["items"]
        return found[0] if found else None

    def ports(self) -> list[tuple[str, int]]:
        service = self.one(SERVICES)
        return [(one["protocol"], one["port"]) for one in service["spec"]["ports"]] if service else []

    def files(self) -> str:
        """The definitions that the worker has."""
        return self.node.run(["find", DIRECTORY, "-type", "f"], check=False).stdout


def test_the_thesis_manifests_work_through_an_upgrade_and_nothing_is_left(
    pair: Testbed, tmp_path: Path
) -> None:
    before = cluster_wide(pair)
    cluster = Cluster(pair, tmp_path)
    cluster.apply(version())
    cluster.client.apply([GATEWAY])
    # Who is asked has just begun. What is wrong is refused with the field.
    bad = {**DEVICE, "spec": {**DEVICE["spec"], "nodeName": "kedge9"}}
    until(lambda: cluster.applied(bad, "--dry-run=server"), cluster.words, every=0.2)
    assert 'spec.nodeName: Invalid value: "kedge9": there is no node kedge9' in cluster.applied(bad)
    assert "spec.networkName" in cluster.applied(CONNECTION)
    for one in (DEFINITION, DEVICE, CONNECTION):
        assert cluster.applied(one) == ""
    until(lambda: cluster.one(DEPLOYMENTS), cluster.words, every=0.2)
    until(lambda: cluster.ports() == [("TCP", 443)], cluster.words, every=0.2)
    until(lambda: cluster.files() == f"{DIRECTORY}/default/bridge-conf.json\n", cluster.words, every=0.2)
    address = cluster.one(SERVICES)["spec"]["clusterIP"]

    cluster.apply(NEXT)
    more = json.loads(json.dumps(DEVICE))
    more["spec"]["components"][0]["handlers"].append({"protocol": "UDP", "port": 443})
    assert cluster.applied(more) == ""
    until(lambda: cluster.ports() == [("TCP", 443), ("UDP", 443)], cluster.words, every=0.2)
    assert cluster.one(SERVICES)["spec"]["clusterIP"] == address
    until(lambda: cluster.one(CONNECTIONS, "sample-connection").get("status"), cluster.words, every=0.2)

    # While nobody is there, one goes, and the other with its kind.
    scaled = ["scale", cluster.in_space, "deployment", "devices", "--replicas=0"]
    cluster.client.run(*scaled)
    cluster.client.run("delete", "connections", "sample-connection")
    until(lambda: not cluster.one(DEPLOYMENTS) and not cluster.one(SERVICES), every=0.2)
    assert cluster.one(DEVICES, "device01-01")
    cluster.delete()
    until(lambda: cluster_wide(pair) == before, every=0.2)
    assert cluster.client.run("get", "pods", "--output=name").stdout.count("dop-") == 0
    assert cluster.files() == ""
    cluster.client.run("delete", "node", "kedge1")
