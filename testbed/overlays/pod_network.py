"""What makes pods of different nodes of a cluster reach each other; one module a kind: ``backends``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from testbed.access.place import Feature, Node
from testbed.overlays import kernel_state
from testbed.overlays.kernel_state import KernelState
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import Cluster


@dataclass(frozen=True)
class Daemon:
    """A program that runs on a node for as long as the pod network is to work there."""

    name: str  # as messages call it: BIRD of cluster a
    directory: str  # on the node: its log, and what is known of its process
    argv: Sequence[str]
    package: str = ""  # of Debian, if the programs of argv and ready are its (testbed.supplies.packages)
    files: Mapping[str, str] = field(default_factory=dict)  # path -> text; written before it starts
    brings: Path | None = None  # a directory of ours in argv, to be there where nodes have files of their own
    env: Mapping[str, str] = field(default_factory=dict)
    ready: Sequence[str] = ()  # a command that says something once the daemon is; tried again until then
    reload: Sequence[str] = ()  # a command that makes it read changed files; none: it need not be told
    leave: Sequence[str] = ()  # one that tells the others, once it has ended, that its node is no more there


def etcd_arguments(data: str, client: str, peer_port: int) -> list[str]:
    """Return etcd's arguments: alone, asked at a URL, and in no fear of a power failure."""
    peer = f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


@dataclass(frozen=True)
class Api:
    """A cluster's API, in which daemons can keep what they tell each other."""

    server: str  # URL
    identity: str  # paths, on each node, of PEM files: who asks, with the key; and who vouches for the server
    authority: str
    name_of: Callable[[str], str]  # what a node of the scenario is called there


@dataclass(frozen=True)
class PodNetwork(ABC):
    """One cluster's pod network, as it is made on the cluster's nodes; each has a subnet of its own.

    A node's subnet may be one that is not known yet (testbed.kubernetes.joining): what is taken of it is its
    text, its prefix length, and addresses by their position.

    What a kind does not say is as with routes alone: by the uplink, made once, without anybody's help.
    """

    addressing: Addressing
    cluster: str

    @abstractmethod
    def links(self, node: str) -> str:
        """Return the ``ip -batch`` text that makes a node's devices, routes and neighbours."""

    @abstractmethod
    def wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        """Yield what a node should have but its subnet's file, in the words of testbed.overlays.kernel_state.

        ``found`` is what all nodes of the cluster have.
        """

    def forwarding(self, node: str) -> str:
        """Return the ``bridge -batch`` text that is run after ``links``; nothing if no frame is wrapped."""
        return ""

    def files(self, node: str) -> Mapping[str, str]:
        """Return the files that a node then needs, by their paths: what flannel writes for CNI plugins."""
        return {self.addressing.subnet_file(self.cluster): self.subnet_env(node)}

    def devices(self, node: str) -> Sequence[str]:
        """Return the names of the devices that it makes on a node; with none, packets leave by the uplink."""
        return []

    def routes(self, node: str) -> Sequence[IPv4Network]:
        """Return the networks that a node then has routes into: those of all the cluster's pods."""
        return self.addressing.pod_networks(self.cluster)

    def daemons(self, node: str) -> Sequence[Daemon]:
        """Return what runs on a node, in the order in which it is started; after all of the above."""
        return []

    def rights(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the RBAC rules that daemons on a node need at a cluster's API, where it is called so.

        Nothing if they have no use for an API.
        """
        return []

    def by_api(self, api: Api) -> PodNetwork:
        """Return the same network with daemons that tell each other what they know by an API."""
        return self

    def flannel(self) -> Mapping[str, Any] | None:
        """Return what the real flanneld is told to make the same; None if it does not know this kind."""
        return None

    def features(self) -> Sequence[Feature]:
        """Return what the kernel must be able to, if not all kernels are."""
        return []

    def lacking(self, nodes: Mapping[str, Node]) -> list[str]:
        """Return, in words, each with its node, what should be on the cluster's nodes and is not.

        It is asked again and again until a testbed is up, and once more after the traffic. Raises
        CommandError for a node that cannot be reached.
        """
        own = {name: nodes[name] for name in self.nodes}
        return kernel_state.lacking(self._wanted, own, [self.addressing.subnet_file(self.cluster)])

    @property
    def own(self) -> Cluster:
        """The cluster, as the scenario has it."""
        return self.addressing.scenario.clusters[self.cluster]

    @property
    def nodes(self) -> Collection[str]:
        """The nodes that it joins; one that still waits for its subnet is none of them."""
        return self.addressing.members(self.cluster)

    def others(self, node: str) -> list[str]:
        """Return the other nodes that it joins."""
        return [other for other in self.nodes if other != node]

    def ways(self, node: str) -> Iterator[tuple[IPv4Network, IPv4Address]]:
        """Yield the pod subnet of every other node, with that node's address on the underlay."""
        for other in self.others(node):
            yield self.addressing.pod_subnet(self.cluster, other), self.addressing.address(other)

    def subnet_env(self, node: str) -> str:
        """Return what flannel writes of a node's subnet for CNI plugins."""
        subnet = self.addressing.pod_subnet(self.cluster, node)
        return (
            f"FLANNEL_NETWORK={self.addressing.flannel_network(self.cluster)}\n"
            f"FLANNEL_SUBNET={subnet.network_address + 1}/{subnet.prefixlen}\n"
            f"FLANNEL_MTU={self.addressing.overlay_mtu(self.cluster)}\n"
            "FLANNEL_IPMASQ=false\n"
        )

    def _wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        yield from self.subnet_env(node).splitlines()
        yield from self.wanted(node, found)
