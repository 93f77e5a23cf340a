"""The network of containers beside Kubernetes, on each node as Docker makes it.

A bridge with the same private network on every node, masquerading for what leaves the node, and published
ports: a container on another node is reached at its node's address (Docker's documentation, "Packet filtering
and firewalls").
"""

from __future__ import annotations

from testbed.links import without_link_local
from testbed.scenario import networks
from testbed.scenario.addressing import Addressing

BRIDGE = "docker0"
TABLE = "containers"


def host_interface(index: int) -> str:
    """Return the node's end of the veth pair of the node's container of this index."""
    return f"vethc{index}"


def render_links(addressing: Addressing, node: str) -> str:
    """Return the ``ip -batch`` text for the node's side, the containers' namespaces included."""
    mtu = addressing.scenario.underlay.mtu
    network = addressing.scenario.container_cidr
    lines = [
        f"link add {BRIDGE} type bridge",
        f"link set {BRIDGE} mtu {mtu}",
        *without_link_local(BRIDGE),
        f"link set {BRIDGE} up",
        f"address add {network.network_address + 1}/{network.prefixlen} broadcast + dev {BRIDGE}",
    ]
    for index, name in enumerate(addressing.containers_on(node)):
        veth = host_interface(index)
        lines += [
            f"netns add {name}",
            f"link add {veth} mtu {mtu} type veth peer name eth0 mtu {mtu} netns {name}",
            f"link set {veth} master {BRIDGE}",
            *without_link_local(veth),
            f"link set {veth} up",
        ]
    return "\n".join(lines) + "\n"


def render_inside(addressing: Addressing, container: str) -> str:
    """Return the ``ip -batch`` text for a container's own side."""
    return (
        "link set lo up\n"
        f"address add {addressing.container(container)} broadcast + dev eth0\n"
        "link set eth0 up\n"
        f"route add default via {addressing.scenario.container_cidr.network_address + 1} dev eth0\n"
    )


def _published(addressing: Addressing, node: str) -> str:
    """Return the rules that lead to a node's containers what comes to their ports."""
    own = set(addressing.containers_on(node))
    return "".join(
        f"    fib daddr type local {traffic.protocol} dport {port} "
        f"dnat to {addressing.container(traffic.destination).ip}:{port}\n"
        for traffic in addressing.scenario.traffic
        if traffic.destination in own
        for port in [addressing.port_of(traffic)]
    )


def render_translation(addressing: Addressing, node: str) -> str:
    """Return the ``nft -f`` text: published ports in, masquerading out."""
    scenario = addressing.scenario
    return (
        f"{render_untracked(addressing)}"
        f"table ip {TABLE} {{\n"
        "  chain prerouting {\n"
        "    type nat hook prerouting priority dstnat;\n"
        f"{_published(addressing, node)}"
        "  }\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat;\n"
        f'    ip saddr {scenario.container_cidr} oifname != "{BRIDGE}" masquerade\n'
        "  }\n"
        "}\n"
    )


def render_untracked(addressing: Addressing) -> str:
    """Return the ``nft -f`` text that keeps overlays and pods out of a node's connection tracking.

    They have no use for it, and it would cost their flows 8 % on the way through the node.
    """
    untracked = _untracked(addressing)
    return (
        f"table ip {TABLE} {{\n"
        "  chain raw-prerouting {\n"
        "    type filter hook prerouting priority raw;\n"
        f"{untracked}"
        "  }\n"
        "  chain raw-output {\n"
        "    type filter hook output priority raw;\n"
        f"{untracked}"
        "  }\n"
        "}\n"
    )


def _untracked(addressing: Addressing) -> str:
    clusters = addressing.scenario.clusters
    # A rule each, with an end: cheaper for the kernel than looking anything up in a set.
    pods = (network for cluster in clusters for network in addressing.pod_networks(cluster))
    outside = {match for one in clusters.values() for match in networks.of(one).outside(one)}
    matches = [*(f"ip saddr {network}" for network in pods), *sorted(outside)]
    return "".join(f"    {match} notrack accept\n" for match in matches)
