"""What is handed to an API: the pods of a scenario, and the nodes they run on.

Of bandwidth a pod's manifest says nothing but the annotations, as any deployment file would, and how much of
the node's published bandwidth it takes. Names are in small letters, as Kubernetes wants them.
"""

from __future__ import annotations

from typing import Any

from testbed.enforcements import bandwidth, concorde
from testbed.scenario import Pod, Scenario
from testbed.supplies.images import TRAFFIC
from testbed.supplies.versions import Version

Manifest = dict[str, Any]
NAMESPACE = "default"
LABEL = "concorde.contmec.dev/scenario"


def name_of(name: str) -> str:
    """Return what Kubernetes calls a pod or node of a scenario."""
    return name.lower()


def account() -> Manifest:
    """Return the service account of all pods, which would else appear only when a controller gets to it."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": NAMESPACE},
    }


def node(scenario: Scenario, cluster: str, name: str) -> Manifest:
    """Return a worker as its kubelet finds it: with the scenario's subnet, and its bandwidth."""
    # A kubelet that finds its node without any resources panics (reconcileHugePageResource, 1.20).
    return _node(scenario, cluster, name) | _status({"pods": "110"} | bandwidth.offer(scenario))


def publication(scenario: Scenario, version: Version) -> Manifest:
    """Return what a worker must be given again once its kubelet has registered; nothing if that leaves it."""
    offered = bandwidth.offer(scenario)
    return _status(offered) if offered and not version.can_forgo_device_plugins else {}


def _status(resources: dict[str, str]) -> Manifest:
    return {"status": {"capacity": resources, "allocatable": resources}}


def master(scenario: Scenario, cluster: str) -> Manifest:
    """Return a cluster's master, which has no kubelet: its subnet is known, and no pod is placed there."""
    node = _node(scenario, cluster, scenario.clusters[cluster].master)
    node["spec"]["unschedulable"] = True
    return node


def _node(scenario: Scenario, cluster: str, name: str) -> Manifest:
    subnet = str(scenario.pod_subnet(cluster, name))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name_of(name), "labels": {"kubernetes.io/hostname": name_of(name)}},
        "spec": {"podCIDR": subnet, "podCIDRs": [subnet]},
    }


def stated(scenario: Scenario, wanted: Pod) -> dict[str, str]:
    """Return what the pod's manifest says about bandwidth.

    The reference plugin knows only limits, so there the guarantee is written as one.
    """
    if scenario.enforcement == "bandwidth":
        wanted = wanted.model_copy(update={"guarantee": None, "ceiling": wanted.guarantee})
    return concorde.pod_annotations(wanted)


def pod(scenario: Scenario, name: str) -> Manifest:
    """Return a scenario's pod. The scheduler places it, on the one node that it selects."""
    wanted = scenario.pods[name]
    container: Manifest = {
        "name": "traffic",
        "image": TRAFFIC,
        "imagePullPolicy": "Never",
        # The scenario says TCP's congestion control, and not every host lets everybody choose every one.
        "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}},
    }
    if resources := bandwidth.request(scenario, wanted.guarantee):
        container["resources"] = {"limits": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(name),
            "namespace": NAMESPACE,
            "labels": {LABEL: name_of(scenario.name)},
            "annotations": stated(scenario, wanted),
        },
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": name_of(wanted.node)},
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        },
    }
