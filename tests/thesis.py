"""The thesis' Device and Connection as they are parsed from YAML, and others like them."""

from __future__ import annotations

import copy
from typing import Any

from edge.devices import kinds

DEVICE: dict[str, Any] = {
    "apiVersion": kinds.API,
    "kind": kinds.DEVICE,
    "metadata": {"name": "device01-01"},
    "spec": {
        "nodeName": "kedge1",
        "up": True,
        "ipAddress": "172.17.16.120",
        "components": [
            {
                "name": "backend",
                "up": True,
                "handlers": [
                    {
                        "name": "api server",
                        "protocol": "HTTP",
                        "port": 443,
                        "endPoints": ["https://<path>/api/*", "https://<path>/version"],
                    }
                ],
            }
        ],
    },
}
CONNECTION: dict[str, Any] = {
    "apiVersion": kinds.API,
    "kind": kinds.CONNECTION,
    "metadata": {"name": "sample-connection", "namespace": "default"},
    "spec": {"deviceName": "device01-01", "networkName": "bridge-conf", "componentNames": ["backend"]},
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "k8s.cni.cncf.io/v1",
    "kind": "NetworkAttachmentDefinition",
    "metadata": {"name": "bridge-conf", "namespace": "default"},
    "spec": {
        "config": '{"cniVersion": "0.3.1", "type": "bridge", "name": "bridge-conf", "isGateway": true, '
        '"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.10.0.0/24"}]], '
        '"routes": [{"dst": "0.0.0.0/0"}]}}'
    },
}
GONE = object()


def changed(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a document with other fields in its spec; GONE: without them."""
    found = copy.deepcopy(document)
    found["spec"].update(fields)
    found["spec"] = {key: value for key, value in found["spec"].items() if value is not GONE}
    return found


def components(*asked: tuple[str, list[tuple[str, int]]]) -> list[dict[str, Any]]:
    """Return components of handlers given by protocol and port."""
    return [
        {"name": name, "handlers": [{"protocol": protocol, "port": port} for protocol, port in handlers]}
        for name, handlers in asked
    ]
