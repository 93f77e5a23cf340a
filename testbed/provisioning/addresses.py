"""What a master is told where its nodes differ in size: the controller that gives them their blocks.

It is the one of ``edge/deploy/addresses``, as any cluster gets it, and runs beside the control plane: once,
for there is one master. No kube-proxy leads to the API's address as a service here, so it is told the other.
"""

from __future__ import annotations

import json
from typing import Any

from testbed.kubernetes.addresses import DEPLOY, KIND, NAME, NAMESPACE, told
from testbed.kubernetes.control_plane import endpoint
from testbed.kubernetes.manifests import Manifest, list_of, name_of
from testbed.provisioning import installation
from testbed.scenario import blocks
from testbed.scenario.addressing import Addressing
from testbed.supplies.bundle import Archive


def tell(addressing: Addressing, cluster: str, image: Archive) -> dict[str, Any]:
    """Return what is applied to an API before nodes come to it, and the blocks that these must have then."""
    entries = addressing.scenario.clusters[cluster].pod_cidrs or ()
    return {
        "controller": json.dumps(list_of(_installation(addressing, cluster, image))),
        "configs": json.dumps(list_of([blocks.manifest(entry) for entry in entries])),
        "kind": KIND,
        "namespace": NAMESPACE,
        "deployment": NAME,
        "names": [entry.name.lower() for entry in entries],
        "blocks": [
            f"{name_of(node)} {addressing.pod_subnet(cluster, node)}" for node in addressing.members(cluster)
        ],
    }


def _installation(addressing: Addressing, cluster: str, image: Archive) -> list[Manifest]:
    found = list(installation.read(DEPLOY / "kinds", DEPLOY / "manifests"))
    for one in found:
        if one["kind"] == "Deployment":
            _fit(one, addressing, cluster, image)
    return found


def _fit(deployment: Manifest, addressing: Addressing, cluster: str, image: Archive) -> None:
    """Let a Deployment run where the image and the API are."""
    host, port = endpoint(addressing, cluster)
    deployment["spec"]["replicas"] = 1
    container = installation.fit(deployment, image)
    master = addressing.scenario.clusters[cluster].master
    deployment["spec"]["template"]["spec"]["nodeSelector"][blocks.HOSTNAME] = name_of(master)
    container["env"] = [
        {"name": "KUBERNETES_SERVICE_HOST", "value": host},
        {"name": "KUBERNETES_SERVICE_PORT", "value": str(port)},
    ]
    others = [one for one in container["args"] if not one.startswith("--reserved=")]
    container["args"] = [*others, *told(addressing, cluster)]
