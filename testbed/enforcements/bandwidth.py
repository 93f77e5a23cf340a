"""The reference ``bandwidth`` plugin limits pods to what they were promised: all that others can do."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.enforcements.concorde import Concorde, stated
from testbed.enforcements.enforcement import Footprint
from testbed.networks.cni import Json, NetworkList
from testbed.scenario import Pod

ADDRESSES = "/run/cni-addresses"


@dataclass(frozen=True)
class BandwidthPlugin(Concorde):
    """See testbed.enforcements.enforcement.Enforcement.

    It knows only limits, so the guarantee is written as what it understands.
    """

    def network_list(self, cluster: str, node: str) -> NetworkList:
        """Return the reference plugins as a cluster without Concorde uses them."""
        bridge: Json = {
            "type": "bridge",
            "bridge": self.addressing.bridge(cluster),
            "isGateway": True,
            "mtu": self.addressing.pod_mtu(cluster),
            "ipam": {
                "type": "host-local",
                "dataDir": ADDRESSES,
                "ranges": [[{"subnet": str(self.addressing.pod_subnet(cluster, node))}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        chain = [bridge, {"type": "bandwidth", "capabilities": {"bandwidth": True}}]
        # CHECK of the reference bandwidth plugin crashes for a pod without a limit (release 1.1.1).
        return NetworkList(self.addressing.network_name(cluster), chain, disable_check=True)

    def annotations(self, pod: Pod) -> dict[str, str]:
        """Return the guarantee as a limit."""
        return stated(None, pod.guarantee)

    def limit(self, pod: Pod) -> int | None:
        """Return the guarantee."""
        return pod.guarantee

    def footprint(self, node: str) -> Footprint:
        """Return where host-local keeps addresses."""
        return Footprint(ADDRESSES)
