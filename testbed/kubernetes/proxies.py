"""Proxy pods of connections by the API: made of what the devices' operator makes its own of, one by one.

So a run is of the pods that a user's cluster has, their images, their rights and what they ask of the plugin.
That operator itself does not run: where a scenario says that a pod is, it is, and by that name.
"""

from __future__ import annotations

from pathlib import Path

from edge.devices import rendering
from edge.devices.kinds import RELAY
from edge.devices.rendering import Settings
from testbed import resources
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import manifests
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.runtime import proxies
from testbed.runtime.cni import NetworkList
from testbed.scenario import connections
from testbed.scenario.addressing import Addressing
from testbed.supplies import devices, images

# Of a pod that is asked whether it is ready, a kubelet of 1.20 may say so a minute later.
SETTINGS = Settings(images.PAUSE, devices.RELAY, probe_seconds=0)


def network_list(enforcement: Enforcement, cluster: str, node: str) -> NetworkList:
    """Return the list of a cluster on a worker: the enforcement's, on gateways with what leads to devices."""
    addressing = enforcement.addressing
    plain = enforcement.network_list(cluster, node)
    return proxies.network_list(plain, addressing, cluster, addressing.pods_on(node))


def plugins(enforcement: Enforcement) -> list[Path]:
    """Return the directories of the plugins that such lists name, once they are built."""
    own = [enforcement.programs, resources.BUILT_PLUGIN if enforcement.addressing.proxies else None]
    return list(dict.fromkeys(one for one in own if one is not None))


def provide(addressing: Addressing) -> list[images.Image]:
    """Return what proxy pods run besides what all pods do. Raises LookupError without a program for it."""
    relays = any(one.mode == RELAY for one in addressing.scenario.connections.values())
    return [devices.provide_relay()] if relays else []


def pod(addressing: Addressing, enforcement: Enforcement, name: str) -> Manifest:
    """Return a proxy pod; what it sends its cluster is promised to it as to any pod."""
    scenario, connection = addressing.scenario, addressing.proxies[name]
    own = connections.connection_of(scenario, connection)
    device = connections.device_of(scenario, own.device)
    device = device._replace(nodes=(name_of(addressing.pods[name].node),))
    made = rendering.template(own, device, connections.ports(scenario, connection), SETTINGS)
    # Nodes are at the API before their kubelets say which processors these have, and pods wait for no others.
    containers = [{**one, "resources": {}} for one in made["spec"]["containers"]]
    labels, annotations = made["metadata"]["labels"], made["metadata"]["annotations"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(name),
            "namespace": manifests.NAMESPACE,
            "labels": labels | manifests.labels_of_pod(scenario, name),
            "annotations": annotations | dict(enforcement.annotations(addressing.pods[name])),
        },
        "spec": {**made["spec"], "containers": containers},
    }
