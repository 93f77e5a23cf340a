"""A testbed that is up, as far as enforcements look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.access.place import InNamespace, PodPlace
from testbed.scenario.addressing import Addressing
from tests.doubles import Answer, RecordingNode, silently


@dataclass(frozen=True)
class Standing:
    """See testbed.enforcements.enforcement.Up."""

    nodes: Mapping[str, RecordingNode]
    pods: Mapping[str, PodPlace]


def standing(addressing: Addressing, answer: Answer = silently) -> Standing:
    """Return a testbed of nodes that answer so; a pod is reached by its node, and numbered on it."""
    nodes = {name: RecordingNode(name, answer) for name in addressing.nodes}
    pods = {}
    for node in nodes:
        for number, pod in enumerate(addressing.pods_on(node), start=2):
            cluster = addressing.scenario.pods[pod].cluster
            address = addressing.pod_subnet(cluster, node).network_address + number
            where = addressing.namespace(pod)
            pods[pod] = InNamespace(pod, nodes[node], where, str(address), f"veth-{pod}")
    return Standing(nodes, pods)
