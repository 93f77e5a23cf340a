"""The devices' operator in a real cluster, and what is asked of the API there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edge.devices.definitions import DIRECTORY as STATE
from edge.devices.picture import SERVICES
from testbed.supplies import devices
from testbed.testbed import Testbed
from tests.e2e.installed import WORKER, Installed

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
      nodeSelector: {{SELECTED}}
      containers:
        - name: networks
          env:
            - {{name: CNI_PLUGIN, value: /run/kubernetes/a/cni/bin/concorde-networks}}
            - {{name: KUBERNETES_SERVICE_HOST, value: "{host}"}}
            - {{name: KUBERNETES_SERVICE_PORT, value: "{port}"}}
"""
DIRECTORY = f"{STATE}/definitions"
NAME = "dop-sample-connection"


class Cluster(Installed):
    """A cluster with the operator in it; gateways have the label ``selected``, or are its worker."""

    def __init__(self, pair: Testbed, directory: Path, worker: str = WORKER, selected: str = "") -> None:
        text = CLUSTER.replace("SELECTED", selected or f"kubernetes.io/hostname: {worker}")
        super().__init__(pair, directory, "devices", devices.provide(), text, worker=worker)

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
