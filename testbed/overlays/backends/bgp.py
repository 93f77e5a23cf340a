"""A cluster's routes between nodes, told by BGP: a BIRD 2 on each node, as Calico configures its own.

Every BIRD announces its node's pod subnet, and writes what it hears of others into the kernel. So packets
go as with host-gw, and the nodes must be neighbours as there. As in Calico (confd's ``bird.cfg``): one AS; a
full mesh of the nodes, or a route reflector; ``next hop self``; the node's own subnet is a blackhole route of
BIRD's, so that it is announced before the first pod; ``persist`` and graceful restart, so that routes outlive
the BIRD that told them; the same timers, but for the hold time, which is BIRD's 240 s there.

Unlike Calico, of which a node has one, there may be several clusters on a node. Each has a routing table of
its own, which is looked up for its pods' addresses, and a TCP port of its own. Two BIRDs on one table would
take each other's routes, which are all ``proto bird``, for their own that are left over, and remove them. The
blackhole stays inside BIRD, for that table comes before the one in which the node's own pods are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.overlays import kernel_state
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import Daemon, PodNetwork
from testbed.scenario import networks
from testbed.scenario.model import Bgp

PACKAGE = "bird2"
AS = 64512  # Calico's default, of those that are for private use (RFC 6996)
RECONNECT_SECONDS = 5  # Calico's "connect retry time"
ERROR_SECONDS = "5,30"  # its "error wait time"
SCAN_SECONDS = 2  # its "scan time": how often BIRD looks whether the kernel still has its routes


@dataclass(frozen=True)
class Bird(PodNetwork):
    """One cluster's BIRDs."""

    def links(self, node: str) -> str:
        """Return the rules by which the cluster's table is looked up; BIRD writes the routes."""
        return "".join(
            f"rule add to {network} lookup {self.table} priority {self.table}\n"
            for network in self.addressing.pod_networks(self.cluster)
        )

    def daemons(self, node: str) -> Sequence[Daemon]:
        """Return BIRD."""
        directory = f"/run/bird/{self.cluster}"
        file, control = f"{directory}/bird.conf", f"{directory}/bird.ctl"
        recovery = ["-R"] if self._bgp.graceful_restart else []
        return [
            Daemon(
                name=f"BIRD of cluster {self.cluster}",
                directory=directory,
                argv=["bird", "-f", *recovery, "-c", file, "-s", control],
                package=PACKAGE,
                files={file: self.configuration(node)},
                ready=["birdc", "-s", control, "show", "status"],
                reload=["birdc", "-s", control, "configure"],
            )
        ]

    def wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        """Yield the rules, and the routes that BIRD writes."""
        table = str(self.table)
        for network in self.addressing.pod_networks(self.cluster):
            yield kernel_state.rule(str(network), table)
        for subnet, via in self.ways(node):
            yield kernel_state.route(subnet, via, self.addressing.uplink(node), table)

    @property
    def table(self) -> int:
        """The number of the cluster's routing table, the same on every node."""
        return networks.bgp_table(self.addressing.scenario, self.cluster)

    @property
    def port(self) -> int:
        """The TCP port of the cluster's BIRDs."""
        return networks.bgp_port(self.addressing.scenario, self.cluster)

    def peers(self, node: str) -> list[str]:
        """Return the nodes with which a node's BIRD has a session: all others, or the route reflector."""
        reflector = self._bgp.route_reflector
        return self.others(node) if reflector in (None, node) else [reflector]

    def configuration(self, node: str) -> str:
        """Return what BIRD is told on a node."""
        subnet = self.addressing.pod_subnet(self.cluster, node)
        graceful = "  graceful restart;\n" if self._bgp.graceful_restart else ""
        return (
            "log stderr all;\n"
            f"router id {self.addressing.address(node)};\n"
            f"protocol device {{ scan time {SCAN_SECONDS}; }}\n"
            f'protocol direct {{ ipv4; interface "{self.addressing.uplink(node)}"; }}\n'
            f"protocol static {{ ipv4; route {subnet} blackhole; }}\n"
            "protocol kernel {\n"
            f"  kernel table {self.table};\n"
            "  persist;\n"
            f"  scan time {SCAN_SECONDS};\n"
            f"{graceful}"
            "  ipv4 { import none; export where source = RTS_BGP; };\n"
            "}\n"
            f"{self._template(node)}{''.join(self._session(node, peer) for peer in self.peers(node))}"
        )

    def _template(self, node: str) -> str:
        """Return what a node's sessions have in common.

        What a reflector passes on it leaves as it is, or all packets would go by way of it. A route into the
        node's own subnet would lead its own pods' packets elsewhere.
        """
        own = self.addressing.pod_subnet(self.cluster, node)
        bgp, reflects = self._bgp, self._bgp.route_reflector == node
        announced = "source ~ [ RTS_STATIC, RTS_BGP ]" if reflects else "source = RTS_STATIC"
        return (
            "template bgp nodes {\n"
            f"  local {self.addressing.address(node)} port {self.port} as {AS};\n"
            "  multihop;\n"
            f"  connect delay time {bgp.connect_delay};\n"
            f"  connect retry time {RECONNECT_SECONDS};\n"
            f"  error wait time {ERROR_SECONDS};\n"
            f"  hold time {bgp.hold_time};\n"
            f"  keepalive time {bgp.hold_time // 3};\n"
            f"  graceful restart {'on' if bgp.graceful_restart else 'off'};\n"
            f"  ipv4 {{ import where net !~ [ {own}+ ];\n    export where {announced}; "
            f"next hop self{' ebgp' if reflects else ''}; gateway recursive; }};\n"
            "}\n"
        )

    def _session(self, node: str, peer: str) -> str:
        own, other = self.addressing.address(node), self.addressing.address(peer)
        lines = [f"neighbor {other} port {self.port} as {AS};"]
        if own > other:
            lines.append("passive;")  # the other one connects
        if self._bgp.route_reflector == node:
            lines.append("rr client;")
        return f"protocol bgp '{peer}' from nodes {{ {' '.join(lines)} }}\n"

    @property
    def _bgp(self) -> Bgp:
        return self.own.bgp or Bgp()
