"""What is made in clusters that exist: one namespace, and in it pods, which end by themselves at last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.clusters.kubeconfigs import NAMESPACE
from testbed.clusters.survey import Machine
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import manifests
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.scenario import Scenario

LABEL = {"concorde.contmec.dev/made-by": "bench"}
OWNER, UNTIL = "concorde.contmec.dev/owner", "concorde.contmec.dev/until"  # annotations of the namespace
TESTBED = "concorde.contmec.dev/testbed"  # another: its name, if it stays up
ACCOUNT = "bench"
STATE = "testbed"  # the ConfigMap that says what stays up
NODE = "/node"  # where a helper sees the node's root directory


def namespace(annotations: Mapping[str, str]) -> Manifest:
    """Return the namespace; whoever owns it and until when is for later runs to read."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            # Helpers enter the node, which only privileged pods may.
            "labels": {**LABEL, "pod-security.kubernetes.io/enforce": "privileged"},
            "annotations": dict(annotations),
        },
    }


def account() -> Manifest:
    """Return the account of all pods, which may do nothing."""
    metadata = {"name": ACCOUNT, "namespace": NAMESPACE, "labels": LABEL}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def state(contents: Mapping[str, str]) -> Manifest:
    """Return what says of a testbed that stays up what it is."""
    metadata = {"name": STATE, "namespace": NAMESPACE, "labels": LABEL}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(contents)}


def helper_name(node: str) -> str:
    """Return the name of a node's helper; no pod of a scenario has a dot in its name."""
    return f"node.{name_of(node)}"


def helper(node: str, machine: Machine, image: str, seconds: int) -> Manifest:
    """Return the pod by which the harness enters a node: its network and its files, with all rights."""
    container = _container(image)
    container["securityContext"] = {"privileged": True}
    # What the runtime mounts later, a pod's network namespace above all, is seen here too.
    container["volumeMounts"] = [
        {"name": "node", "mountPath": NODE, "mountPropagation": "HostToContainer"},
    ]
    return _pod(
        helper_name(node),
        seconds,
        {
            "nodeName": machine.name,
            "hostNetwork": True,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [{"name": "node", "hostPath": {"path": "/"}}],
        },
    )


def pod(
    scenario: Scenario, enforcement: Enforcement, name: str, machine: Machine, image: str, seconds: int
) -> Manifest:
    """Return a scenario's pod; what it says of bandwidth is what it says anywhere."""
    known = manifests.pod(scenario, enforcement, name)
    (container,) = known["spec"]["containers"]
    container |= {"image": image, "imagePullPolicy": "IfNotPresent"}
    if not machine.publishes:
        container.pop("resources", None)
    spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": machine.hostname}}
    return _pod(known["metadata"]["name"], seconds, spec, known["metadata"]["annotations"])


def container(name: str, machine: Machine, image: str, seconds: int) -> Manifest:
    """Return a scenario's container: a pod in the node's own network, which no CNI plugin ever sees."""
    inside = _container(image)
    inside["securityContext"] = {"capabilities": {"add": ["NET_ADMIN"]}}
    return _pod(
        name_of(name),
        seconds,
        {
            "containers": [inside],
            "hostNetwork": True,
            "nodeSelector": {"kubernetes.io/hostname": machine.hostname},
        },
    )


def _container(image: str) -> dict[str, Any]:
    return {"name": "traffic", "image": image, "imagePullPolicy": "IfNotPresent"}


def _pod(
    name: str, seconds: int, spec: dict[str, Any], annotations: Mapping[str, str] | None = None
) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": LABEL,
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "serviceAccountName": ACCOUNT,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            # A harness that was killed removes nothing; the next run does, and this.
            "activeDeadlineSeconds": seconds,
            **spec,
        },
    }
