"""What a master is told where its cluster has services: proxies on all nodes, and who publishes hints.

They are those of ``edge/deploy/services``, as any cluster gets them. Where their settings are others, so are
the pods.
"""

from __future__ import annotations

import json
from typing import Any

from testbed import resources
from testbed.kubernetes.control_plane import endpoint
from testbed.kubernetes.manifests import Manifest, list_of
from testbed.provisioning import installation
from testbed.scenario import service_hints
from testbed.scenario.addressing import Addressing
from testbed.supplies.bundle import Archive

DEPLOY = resources.EDGE / "deploy" / "services" / "manifests"
NAMESPACE, SETTINGS = "concorde-services", "settings"
SETTINGS_TEXT = "concorde.contmec.dev/settings"  # an annotation, by which pods are others


def tell(addressing: Addressing, cluster: str, image: Archive) -> dict[str, Any]:
    """Return what is applied to an API, and what must be running then."""
    settings = _settings(addressing, cluster)
    found = list(installation.read(DEPLOY))
    namespace = next(number for number, one in enumerate(found) if one["kind"] == "Namespace")
    found.insert(namespace + 1, _config_map(settings))
    workloads = [one for one in found if one["kind"] in ("DaemonSet", "Deployment")]
    for one in workloads:
        installation.fit(one, image)
        annotations = one["spec"]["template"]["metadata"]["annotations"]
        annotations[SETTINGS_TEXT] = json.dumps(settings, sort_keys=True)
    return {
        "manifests": json.dumps(list_of(found)),
        "namespace": NAMESPACE,
        "workloads": [f"{one['kind'].lower()}/{one['metadata']['name']}" for one in workloads],
    }


def _settings(addressing: Addressing, cluster: str) -> dict[str, str]:
    host, port = endpoint(addressing, cluster)
    return {
        "cluster": cluster,
        "services": str(addressing.service_range(cluster)),
        "delays": service_hints.text_of_delays(addressing.scenario),
        "api-host": host,
        "api-port": str(port),
    }


def _config_map(settings: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SETTINGS, "namespace": NAMESPACE},
        "data": settings,
    }
