"""Two overlapped workers: two clusters on both, each with a VTEP of its own, and real pods at both ends.

The far node runs the plugin too, so that what arrives there passes what a worker has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.system.plugin.conftest import Document, Node
from tests.system.plugin.uplinks import HOST, MAC, NEIGHBOUR, SIDES, Pair, on_uplink

UPLINK = {"one": "0e:00:00:00:01:01", "two": "0e:00:00:00:01:02"}
VTEP = {"a": MAC, "b": {"one": "0e:00:00:00:02:01", "two": "0e:00:00:00:02:02"}}
PORT = {"a": 8472, "b": 8473}
THIRD = {"a": 16, "b": 17}  # of the clusters' pod networks


class Beyond(Node):
    """The far node of a pair, as another node: the same files, another network namespace."""

    def __init__(self, near: Node) -> None:
        self.plugin = near.plugin
        self._near = near

    def argv(self, *command: str | Path) -> list[str]:
        return self._near.argv("nsenter", "--net=/run/netns/two", *command)


class Overlapped(Pair):
    """The pair with a second VTEP at both ends, and a pod of each cluster, A-3 and B-2, on the far node."""

    def __init__(self, node: Node, **keys: Any) -> None:
        super().__init__(node)
        self.keys = keys
        self.ports: dict[str, str] = {}  # pod -> its port of the bridge
        self.far = Beyond(node)
        for side, other in (("one", "two"), ("two", "one")):
            self.on(side, "ip", "-batch", "-", stdin=second_overlay(side, other))
            self.on(side, *f"bridge fdb add {VTEP['b'][other]} dev flannel.2 dst {HOST[other]}".split())
        node.add_pod_namespace("A-3", "B-2")
        for pod in ("A-3", "B-2"):
            added(self.far, pod, far_network(pod[0].lower()))

    def attach(self, pod: str, guarantee: str = "", enforcement: str = "node") -> None:
        """Attach a pod on the near node."""
        self.node.add_pod_namespace(pod)
        keys = {"enforcement": enforcement, **self.keys}
        result = added(self.node, pod, on_uplink(guarantee, cluster=pod[0].lower(), **keys))
        self.ports[pod] = result["interfaces"][1]["name"]

    def attach_routed(
        self, pod: str, guarantee: str, own: tuple[str, str], gateway: tuple[str, str], ipv6: str = ""
    ) -> None:
        """Attach a pod in a chain, behind what the reference plugin ptp makes: a veth with a route to it.

        ``own`` and ``gateway`` are hardware address and IPv4 address of its two ends; ``ipv6`` is a further
        address, of a /64 whose first is the node's.
        """
        self.node.add_pod_namespace(pod)
        self.node.run("ip", "-batch", "-", stdin=routed_node_end(pod, own, gateway))
        inside = ["nsenter", f"--net=/run/netns/{pod}", "ip", "-batch", "-"]
        self.node.run(*inside, stdin=routed_pod_end(own[1], gateway[1]))
        previous: Document = {
            "cniVersion": "1.0.0",
            "interfaces": [
                {"name": f"ptp-{pod}", "mac": gateway[0]},
                {"name": "eth0", "mac": own[0], "sandbox": f"/run/netns/{pod}"},
            ],
            "ips": [{"interface": 1, "address": f"{own[1]}/24", "gateway": gateway[1]}],
        }
        if ipv6:
            previous["ips"].append({"interface": 1, "address": f"{ipv6}/64"})
            first = f"{ipv6.rpartition(':')[0]}:1"
            self.node.run(*f"ip addr add {first}/64 dev ptp-{pod} nodad".split())
            self.node.in_pod(pod, *f"ip addr add {ipv6}/64 dev eth0 nodad".split())
            self.node.in_pod(pod, *f"ip -6 route add default via {first}".split())
        chained = on_uplink(guarantee, subnet=None, prevResult=previous, cniVersion="1.0.0", name="cluster-c")
        added(self.node, pod, {**chained, **self.keys})

    def attach_container(self, name: str, own: tuple[str, str], gateway: tuple[str, str]) -> None:
        """Attach a container of another runtime to that one's own bridge."""
        self.node.add_pod_namespace(name)
        self.node.run("ip", "-batch", "-", stdin=container_node_end(name, own, gateway))
        inside = ["nsenter", f"--net=/run/netns/{name}", "ip", "-batch", "-"]
        self.node.run(*inside, stdin=routed_pod_end(own[1], gateway[1]))

    def unguard_far(self) -> None:
        """Make the far node one that has not the plugin, as a master has not."""
        for family in ("ip", "ip6", "bridge"):
            self.far.run("nft", "delete", "table", family, "concorde")


def container_node_end(name: str, own: tuple[str, str], gateway: tuple[str, str]) -> str:
    """A bridge with the gateway's address, and a port of it."""
    return (
        f"link add docker0 address {gateway[0]} type bridge\n"
        f"addr add {gateway[1]}/24 dev docker0\n"
        "link set docker0 up\n"
        f"link add port-{name} mtu 1450 master docker0 type veth"
        f" peer name eth0 address {own[0]} mtu 1450 netns {name}\n"
        f"link set port-{name} up\n"
    )


def routed_node_end(pod: str, own: tuple[str, str], gateway: tuple[str, str]) -> str:
    """The pair, and the node's half of the way."""
    return (
        f"link add ptp-{pod} address {gateway[0]} mtu 1450 type veth"
        f" peer name eth0 address {own[0]} mtu 1450 netns {pod}\n"
        f"addr add {gateway[1]}/32 dev ptp-{pod}\n"
        f"link set ptp-{pod} up\n"
        f"route add {own[1]}/32 dev ptp-{pod}\n"
    )


def routed_pod_end(own: str, gateway: str) -> str:
    """The pod's half."""
    return (
        f"addr add {own}/32 dev eth0\n"
        "link set eth0 up\n"
        f"route add {gateway}/32 dev eth0\n"
        f"route add default via {gateway}\n"
    )


def added(node: Node, pod: str, network: Document) -> Document:
    """The result of an ADD, which must not fail."""
    result = node.call("ADD", pod, network)
    assert "code" not in result, result
    return result


def far_network(cluster: str) -> Document:
    """A cluster's network on the far node; its ledger is another node's."""
    return on_uplink(cluster=cluster, subnet=f"172.{THIRD[cluster]}.2.0/24", stateDir="/run/far")


def second_overlay(side: str, other: str) -> str:
    """Cluster b's own VTEP at one end, in place of the one that the pair shares."""
    mine, theirs = f"172.17.{SIDES[side]}.0", f"172.17.{SIDES[other]}.0"
    return (
        f"link set eth0 address {UPLINK[side]}\n"  # the kernel then forgets who is there
        f"neigh replace {NEIGHBOUR} lladdr 0e:00:00:00:00:09 dev eth0 nud permanent\n"
        f"link add flannel.2 type vxlan id 2 dev eth0 local {HOST[side]} dstport {PORT['b']} nolearning\n"
        f"link set flannel.2 address {VTEP['b'][side]} mtu 1450 up\n"
        f"route del {theirs}/24\n"
        f"addr del {mine}/32 dev flannel.1\n"
        f"neigh del {theirs} dev flannel.1\n"
        f"addr add {mine}/32 dev flannel.2\n"
        f"route add {theirs}/24 via {theirs} dev flannel.2 onlink\n"
        f"neigh add {theirs} lladdr {VTEP['b'][other]} dev flannel.2 nud permanent\n"
    )
