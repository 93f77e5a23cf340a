"""The node keeps the promise, by one tree of classes on its uplink, which all clusters there share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from testbed.enforcements.concorde import STATE, TABLES, Concorde
from testbed.enforcements.enforcement import Footprint, Guarded, Up
from testbed.networks.cni import Json
from testbed.scenario import links, ports
from testbed.scenario.frames import frame_bytes, payload_bytes

# A node's tree is a little slower than its link, so that packets queue where they are told apart, on the
# node, and not at the switch, which knows no pods.
NODE_SHARE = 0.99
RESERVE = 0.02  # the plugin's default: docs/node-enforcement.md, "Configuration keys"


@dataclass(frozen=True)
class NodeEnforcement(Concorde):
    """See testbed.enforcements.enforcement.Enforcement."""

    installed: ClassVar[bool] = True
    in_plugin: ClassVar[str] = "node"

    def settings(self, cluster: str, node: str) -> Json:
        """Return which interface is the uplink, what the tree may use of it, and what goes before all.

        And by how much the cluster's packets grow there, which is no setting of the tree.
        """
        return {
            "uplink": self.addressing.uplink(node),
            "controlPorts": ports.control(self.addressing, node),
            "capacity": str(self._tree(node)),
            "encapsulation": self.addressing.network(cluster).overhead,
        }

    def capacity(self, cluster: str, node: str) -> int | None:
        """Return what a worker can promise: its tree less the reserve, as the cluster's guarantees count."""
        mtu, overhead = self.addressing.pod_mtu(cluster), self.addressing.network(cluster).overhead
        layer2 = self.addressing.scenario.count == "layer2"
        counted = frame_bytes(mtu) if layer2 else payload_bytes(mtu, "tcp")
        return int(self._tree(node) * (1 - RESERVE) * counted / frame_bytes(mtu, overhead))

    def guarded(self, up: Up) -> dict[str, Guarded]:
        """Return the uplink of each node with a pod that has a guarantee."""
        pods = self.addressing.scenario.pods.values()
        nodes = dict.fromkeys(pod.node for pod in pods if pod.guarantee is not None)
        return {f"node {node}": Guarded(up.nodes[node], self.addressing.uplink(node)) for node in nodes}

    def footprint(self, node: str) -> Footprint:
        """Return the plugin's state and tables, and the tree on the uplink."""
        return Footprint(STATE, TABLES, (self.addressing.uplink(node),))

    def _tree(self, node: str) -> int:
        """Return the rate of a node's tree, bits per second."""
        rate = links.rate_of(self.addressing.scenario, node)
        assert rate is not None, "testbed.scenario.rules"
        return round(rate * NODE_SHARE)
