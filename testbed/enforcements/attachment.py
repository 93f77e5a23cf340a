"""A pod's attachment to the network of its cluster, as a runtime asks for it."""

from __future__ import annotations

from testbed.enforcements import concorde
from testbed.networks.cni import Attachment
from testbed.scenario import Scenario

NAMESPACES = "/run/netns"


def attachment(scenario: Scenario, pod: str) -> Attachment:
    """Return the attachment of a pod to the network of its cluster."""
    return Attachment(
        container_id=f"{scenario.name}-{pod}",
        namespace=f"{NAMESPACES}/{pod}",
        capabilities=concorde.capabilities(scenario, scenario.pods[pod]),
        arguments={"IgnoreUnknown": "1", "K8S_POD_NAMESPACE": "default", "K8S_POD_NAME": pod.lower()},
    )
