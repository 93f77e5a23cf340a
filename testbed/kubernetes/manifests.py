"""What is handed to an API: the pods of a scenario, and the nodes they run on.

Of bandwidth a pod's manifest says nothing but the annotations, as any deployment file would, and how much of
the node's published bandwidth it takes. Names are in small letters, as Kubernetes wants them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.enforcements.enforcement import Enforcement, offer, request
from testbed.scenario import Scenario, blocks, services
from testbed.scenario.addressing import Addressing
from testbed.supplies.images import TRAFFIC
from testbed.supplies.versions import Version

Manifest = dict[str, Any]
NAMESPACE = "default"
LABEL = "concorde.contmec.dev/scenario"
SERVICE_LABELS = "service.concorde.contmec.dev"  # a pod has one for each service of which it is an endpoint


def name_of(name: str) -> str:
    """Return what Kubernetes calls a pod or node of a scenario."""
    return name.lower()


def endpoint_label(service: str) -> dict[str, str]:
    """Return the label by which a service finds its endpoints."""
    return {f"{SERVICE_LABELS}/{name_of(service)}": "true"}


def labels_of_pod(scenario: Scenario, name: str) -> dict[str, str]:
    """Return a pod's labels: its scenario, and the services of which it is an endpoint."""
    own = [service for service, one in services.every(scenario).items() if name in one.pods]
    return {LABEL: name_of(scenario.name)} | {
        key: value for one in own for key, value in endpoint_label(one).items()
    }


def list_of(items: Sequence[Manifest]) -> Manifest:
    """Return several objects as one, which kubectl applies in their order."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def account() -> Manifest:
    """Return the service account of all pods, which would else appear only when a controller gets to it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": NAMESPACE},
    }


def node(addressing: Addressing, enforcement: Enforcement, cluster: str, name: str) -> Manifest:
    """Return a worker as its kubelet finds it: with its bandwidth, and its subnet unless it waits for one."""
    # A kubelet that finds its node without any resources panics (reconcileHugePageResource, 1.20).
    offered = offer(enforcement, cluster, name)
    return _node(addressing, cluster, name) | _status({"pods": "110"} | offered)


def publication(enforcement: Enforcement, cluster: str, name: str, version: Version) -> Manifest:
    """Return what a worker must be given again once its kubelet has registered; nothing if that leaves it."""
    offered = offer(enforcement, cluster, name)
    return _status(offered) if offered and not version.can_forgo_device_plugins else {}


def _status(resources: dict[str, str]) -> Manifest:
    return {"status": {"capacity": resources, "allocatable": resources}}


def master(addressing: Addressing, cluster: str) -> Manifest:
    """Return a cluster's master, which has no kubelet: its subnet is known, and no pod is placed there."""
    node = _node(addressing, cluster, addressing.scenario.clusters[cluster].master)
    node["spec"]["unschedulable"] = True
    return node


def _node(addressing: Addressing, cluster: str, name: str) -> Manifest:
    found: Manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name_of(name), "labels": blocks.labels_of(addressing.scenario, name)},
        "spec": {},
    }
    if name in addressing.members(cluster):
        subnet = str(addressing.pod_subnet(cluster, name))
        found["spec"] = {"podCIDR": subnet, "podCIDRs": [subnet]}
    return found


def allowed(user: str, rules: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    """Return what lets a user do what RBAC rules say, anywhere in the cluster."""
    group = "rbac.authorization.k8s.io"
    role: Manifest = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": user},
        "rules": list(rules),
    }
    binding: Manifest = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    return [role, binding]


def pod(scenario: Scenario, enforcement: Enforcement, name: str) -> Manifest:
    """Return a scenario's pod. The scheduler places it, on the one node that it selects."""
    wanted = scenario.pods[name]
    container: Manifest = {
        "name": "traffic",
        "image": TRAFFIC,
        "imagePullPolicy": "Never",
        # The scenario says TCP's congestion control, and not every host lets everybody choose every one.
        "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}},
    }
    if resources := request(enforcement, wanted):
        container["resources"] = {"limits": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(name),
            "namespace": NAMESPACE,
            "labels": labels_of_pod(scenario, name),
            "annotations": dict(enforcement.annotations(wanted)),
        },
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": name_of(wanted.node)},
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        },
    }
