"""What a master is told where its cluster has services: proxies on all nodes, and who publishes hints.

They are those of ``edge/deploy/services``, as any cluster gets them, and in the proxies' pods who answers
names: kubelets send pods to the range's tenth address by themselves. Where settings are others, so are the
pods.
"""

from __future__ import annotations

import json
from typing import Any

from testbed import resources
from testbed.kubernetes.control_plane import endpoint
from testbed.kubernetes.manifests import Manifest, list_of, name_of
from testbed.provisioning import installation
from testbed.runtime import names
from testbed.scenario import service_hints
from testbed.scenario.addressing import Addressing
from testbed.supplies.bundle import Archive, Bundle

DEPLOY = resources.EDGE / "deploy" / "services" / "manifests"
NAMESPACE, SETTINGS = "concorde-services", "settings"
NAMES = "names"
# Annotations, by which pods are others.
SETTINGS_TEXT, NAMES_DIGEST = "concorde.contmec.dev/settings", "concorde.contmec.dev/names-image"


def images(bundle: Bundle) -> list[Archive]:
    """Return the images that every node of such a cluster needs. Raises LookupError."""
    return [bundle.for_services, *([bundle.for_names] if bundle.for_names else [])]


def tell(addressing: Addressing, cluster: str, bundle: Bundle) -> dict[str, Any]:
    """Return what is applied to an API, and what must be running then. Raises LookupError."""
    settings = _settings(addressing, cluster)
    found = list(installation.read(DEPLOY))
    namespace = next(number for number, one in enumerate(found) if one["kind"] == "Namespace")
    found.insert(namespace + 1, _config_map(settings))
    workloads = [one for one in found if one["kind"] in ("DaemonSet", "Deployment")]
    for one in workloads:
        installation.fit(one, bundle.for_services)
        annotations = one["spec"]["template"]["metadata"]["annotations"]
        annotations[SETTINGS_TEXT] = json.dumps(settings, sort_keys=True)
    if bundle.for_names:
        (proxies,) = [one for one in workloads if one["kind"] == "DaemonSet"]
        _answer_names(proxies["spec"]["template"], bundle.for_names, names.port(addressing, cluster))
        found += names.objects(addressing, cluster, (1, bundle.version.minor), name_of)
    return {
        "manifests": json.dumps(list_of(found)),
        "namespace": NAMESPACE,
        "workloads": [f"{one['kind'].lower()}/{one['metadata']['name']}" for one in workloads],
    }


def _answer_names(template: Manifest, image: Archive, port: int) -> None:
    """Let dnsmasq answer what the proxy in a pod writes, at its node's address."""
    pod, names_there = template["spec"], [{"name": NAMES, "mountPath": f"/{NAMES}"}]
    (proxy,) = pod["containers"]
    proxy["args"].append(f"--names=/{NAMES}")
    proxy["volumeMounts"] = names_there
    pod["volumes"] = [{"name": NAMES, "emptyDir": {}}]
    pod["containers"].append(
        {
            "name": NAMES,
            "image": image.name,
            "imagePullPolicy": "IfNotPresent",
            "args": names.command(names.PROGRAM, f"/{NAMES}", "$(HOST)", port),
            "env": [{"name": "HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
            "volumeMounts": names_there,
            "readinessProbe": {"tcpSocket": {"port": port}},
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    )
    template["metadata"]["annotations"][NAMES_DIGEST] = image.digest


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
