"""Two overlapped workers: two clusters on both, each with a VTEP of its own, and real pods at both ends.

The far node runs the plugin too, so that what arrives there passes what a worker has.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.system.plugin.conftest import Document, Node
from tests.system.plugin.uplinks import HOST, MAC, SIDES, Pair, on_uplink

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

    def __init__(self, node: Node, **keys: str) -> None:
        super().__init__(node)
        self.keys = keys
        self.far = Beyond(node)
        for side, other in (("one", "two"), ("two", "one")):
            self.on(side, "ip", "-batch", "-", stdin=second_overlay(side, other))
            self.on(side, *f"bridge fdb add {VTEP['b'][other]} dev flannel.2 dst {HOST[other]}".split())
        node.add_pod_namespace("A-3", "B-2")
        for pod in ("A-3", "B-2"):
            added(self.far, pod, far_network(pod[0].lower()))

    def attach(self, pods: Mapping[str, str], enforcement: str = "node") -> None:
        """Attach pods, each with its guarantee or none, on the near node."""
        self.node.add_pod_namespace(*pods)
        for pod, guarantee in pods.items():
            keys = {"enforcement": enforcement, **self.keys}
            added(self.node, pod, on_uplink(guarantee, cluster=pod[0].lower(), **keys))


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
        f"link set eth0 address {UPLINK[side]}\n"
        f"link add flannel.2 type vxlan id 2 dev eth0 local {HOST[side]} dstport {PORT['b']} nolearning\n"
        f"link set flannel.2 address {VTEP['b'][side]} mtu 1450 up\n"
        f"route del {theirs}/24\n"
        f"addr del {mine}/32 dev flannel.1\n"
        f"neigh del {theirs} dev flannel.1\n"
        f"addr add {mine}/32 dev flannel.2\n"
        f"route add {theirs}/24 via {theirs} dev flannel.2 onlink\n"
        f"neigh add {theirs} lladdr {VTEP['b'][other]} dev flannel.2 nud permanent\n"
    )
