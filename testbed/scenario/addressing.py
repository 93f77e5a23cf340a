"""Where everything of a scenario is, and what it is called: addresses, ports, devices, MTUs, computed once.

One object is handed to all who need any of it. Nothing here asks a node: what nodes that exist turned out to
have (``Found``) is part of the scenario by then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any, NamedTuple

from pydantic import Field

from testbed.scenario import connections, enforcements, networks, services
from testbed.scenario.blocks import Blocks, allocate, around, together
from testbed.scenario.model import Pod, Scenario, Service, Transfer
from testbed.scenario.words import Address, Interface, Name, Part

UPLINK = "eth0"
# Leaves .1 to .10 to gateways and hosts, as lab networks do, where the network is large enough.
FIRST_HOST = 11
FIRST_PORT = 5201  # iperf3's own; one server serves one client
SSH_PORT = 22
# Kubernetes'; where a node has several clusters, the later ones' are others.
ETCD_PORT, API_PORT = 2379, 6443
KUBELET_PORT, HEALTH_PORT, NEXT_CLUSTER = 10250, 10248, 10000
NAMESPACES = "/run/netns"  # where iproute2 keeps named network namespaces


class Found(Part):
    """What nodes that were there before turned out to have, which nobody can know before they are up.

    Empty for nodes that a testbed makes.
    """

    addresses: dict[Name, Address] = Field({}, description="on the underlay")
    uplinks: dict[Name, Interface] = Field({}, description="interfaces on the underlay")
    names: dict[Name, str] = Field({}, description="in clusters that exist")
    mtu: int | None = Field(None, description="of the underlay, bytes")

    def __bool__(self) -> bool:
        return self != Found()

    def merged(self, later: Found) -> Found:
        """Return what is known once more has been found."""
        return Found(
            addresses={**self.addresses, **later.addresses},
            uplinks={**self.uplinks, **later.uplinks},
            names={**self.names, **later.names},
            mtu=self.mtu if later.mtu is None else later.mtu,
        )

    def applied(self, scenario: Scenario) -> Scenario:
        """Return a scenario that states what was found."""
        nodes = dict(scenario.nodes)
        stated: Mapping[str, Mapping[str, Any]] = {
            "address": self.addresses,
            "uplink": self.uplinks,
            "name": self.names,
        }
        for field, values in stated.items():
            for name, value in values.items():
                nodes[name] = nodes[name].model_copy(update={field: value})
        underlay = scenario.underlay
        if self.mtu is not None:
            underlay = underlay.model_copy(update={"mtu": self.mtu})
        return scenario.model_copy(update={"nodes": nodes, "underlay": underlay})


@dataclass(frozen=True)
class Addressing:
    """The addressing of one scenario. Every question is answered in constant time."""

    scenario: Scenario

    @cached_property
    def nodes(self) -> Mapping[str, IPv4Interface]:
        """Each node's address on the underlay, in the order of the scenario.

        Nodes that state none are numbered; they all do or none does (testbed.scenario.rules).
        """
        cidr = self.scenario.underlay.cidr
        first = FIRST_HOST if FIRST_HOST + len(self.scenario.nodes) < cidr.num_addresses else 1
        return {
            name: IPv4Interface((node.address or cidr.network_address + first + index, cidr.prefixlen))
            for index, (name, node) in enumerate(self.scenario.nodes.items())
        }

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        """All pods, by name: the scenario's, then its connections' proxies."""
        return {**self.scenario.pods, **connections.pods(self.scenario)}

    @cached_property
    def services(self) -> Mapping[str, Service]:
        """All services, by name: the scenario's, then its connections'."""
        return services.every(self.scenario)

    @cached_property
    def proxies(self) -> Mapping[str, str]:
        """The connection of each proxy pod, by the pod's name."""
        return connections.of_pods(self.scenario)

    def address(self, node: str) -> IPv4Address:
        """Return a node's address on the underlay."""
        return self.nodes[node].ip

    def uplink(self, node: str) -> str:
        """Return the name of a node's interface on the underlay."""
        return self.scenario.nodes[node].uplink or UPLINK

    def clusters_of(self, node: str) -> Sequence[str]:
        """Return the clusters a node belongs to, in the order of the scenario."""
        return self._clusters_of.get(node, ())

    def pods_on(self, node: str) -> Sequence[str]:
        """Return the pods of a node, in the order of the scenario."""
        return self._pods_on.get(node, ())

    def containers_on(self, node: str) -> Sequence[str]:
        """Return the containers of a node, in the order of the scenario."""
        return self._containers_on.get(node, ())

    def container(self, name: str) -> IPv4Interface:
        """Return a container's address on its node: the first after the bridge's is the first container's."""
        return self._containers[name]

    def pod_subnet(self, cluster: str, node: str) -> IPv4Network:
        """Return the pod subnet of a cluster on one of its nodes.

        The master has the first subnet, so that the paper's workers get 172.16.1.0/24 and 172.16.2.0/24
        (figs. 4 to 6).
        """
        return self.blocks(cluster).given[node]

    def blocks(self, cluster: str) -> Blocks:
        """Return which of a cluster's nodes has which subnet, of what, and who has none."""
        return self._blocks[cluster]

    def members(self, cluster: str) -> Collection[str]:
        """Return the nodes that a cluster's pod network joins, in their order: those that have a subnet."""
        return self.blocks(cluster).given.keys()

    def pod_networks(self, cluster: str) -> Sequence[IPv4Network]:
        """Return the networks in which a cluster's pods are, as few as can be."""
        return self._pod_networks[cluster]

    def flannel_network(self, cluster: str) -> IPv4Network:
        """Return the one network that flannel knows of a cluster: the smallest with all subnets."""
        return self._flannel_networks[cluster]

    def service_range(self, cluster: str) -> IPv4Network:
        """Return where a cluster's services have their addresses."""
        return self._service_ranges[cluster]

    def service(self, name: str) -> IPv4Address:
        """Return a service's address."""
        return self._services[name]

    def service_of(self, transfer: Transfer) -> str | None:
        """Return the service to which a transfer is sent; None if it is sent to a pod or container."""
        name = transfer.destination
        if name in self.scenario.connections:
            return connections.service_of(name)
        return name if name in self.scenario.services else None

    def network(self, cluster: str) -> networks.Network:
        """Return what kind a cluster's pod network is."""
        return networks.of(self.scenario.clusters[cluster])

    def pod_range(self, cluster: str, node: str) -> PodRange:
        """Return which addresses a cluster's pods get on a node: of their subnet, or of the underlay."""
        if enforcements.of(self.scenario).on_underlay:
            return of_underlay(self.scenario, cluster, node, self.address(node))
        return of_subnet(self.pod_subnet(cluster, node))

    def overhead(self, cluster: str) -> int:
        """Return by how many bytes a packet of a cluster's pod grows on the underlay."""
        return networks.overhead(self.scenario, cluster)

    def overlay_mtu(self, cluster: str) -> int:
        """Return the MTU of what joins a cluster's nodes, bytes; the pods' own, unless they are elsewhere."""
        return self.scenario.underlay.mtu - self.network(cluster).overhead

    def pod_mtu(self, cluster: str) -> int:
        """Return the MTU of a cluster's pods, bytes: the underlay's, less what its network adds."""
        return networks.pod_mtu(self.scenario, cluster)

    def bridge(self, cluster: str) -> str:
        """Return the name of a cluster's bridge, the same on every node."""
        return f"cni-{cluster}"

    def network_name(self, cluster: str) -> str:
        """Return what CNI calls a cluster's network."""
        return f"cluster-{cluster}"

    def vtep(self, cluster: str) -> str:
        """Return the name of a cluster's VXLAN device, the same on every node (flannel's own)."""
        return f"flannel.{self.scenario.clusters[cluster].flannel.vni}"

    def subnet_file(self, cluster: str) -> str:
        """Return the path of the file in which flannel tells CNI plugins a node's subnet and MTU."""
        return f"/run/flannel/subnet-{cluster}.env"

    def namespace(self, place: str) -> str:
        """Return the path, on its node, of the network namespace of a pod or container."""
        return f"{NAMESPACES}/{place}"

    def port_of(self, transfer: Transfer) -> int:
        """Return the port of a transfer's own receiver: one receiver serves one sender."""
        return self._ports[transfer.label]

    def port_for(self, transfer: Transfer) -> int:
        """Return the port to which a transfer is sent: its receiver's, or the service's."""
        return self._service_ports.get(transfer.label) or self.port_of(transfer)

    def position(self, cluster: str) -> int:
        """Return how many earlier clusters have the same master: those have the usual ports."""
        clusters = self.scenario.clusters
        same = [name for name, one in clusters.items() if one.master == clusters[cluster].master]
        return same.index(cluster)

    def api_port(self, cluster: str) -> int:
        """Return the port of a cluster's API server."""
        return API_PORT + self.position(cluster)

    def kubelet_offset(self, cluster: str, node: str) -> int:
        """Return what is added to the ports of a cluster's kubelet, to keep a node's kubelets apart."""
        return self.clusters_of(node).index(cluster) * NEXT_CLUSTER

    def control_ports(self, node: str) -> list[int]:
        """Return the TCP ports that must be reached if a node is to be repaired, or its pods are to be found.

        They are sshd's, the API servers', its kubelets' and those of its pod networks' daemons.
        """
        clusters = self.clusters_of(node)
        kubelets = [KUBELET_PORT + self.kubelet_offset(cluster, node) for cluster in clusters]
        daemons = {
            port for name in clusters for port in self.network(name).control_ports(self.scenario, name)
        }
        return [SSH_PORT, *sorted(set(map(self.api_port, clusters))), *kubelets, *sorted(daemons)]

    @cached_property
    def _clusters_of(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, cluster in self.scenario.clusters.items():
            for node in cluster.nodes:
                found.setdefault(node, []).append(name)
        return found

    @cached_property
    def _pods_on(self) -> dict[str, list[str]]:
        return _by_node({name: pod.node for name, pod in self.pods.items()})

    @cached_property
    def _containers_on(self) -> dict[str, list[str]]:
        return _by_node({name: one.node for name, one in self.scenario.containers.items()})

    @cached_property
    def _containers(self) -> dict[str, IPv4Interface]:
        network = self.scenario.container_cidr
        return {
            name: IPv4Interface((int(network.network_address) + 2 + index, network.prefixlen))
            for names in self._containers_on.values()
            for index, name in enumerate(names)
        }

    @cached_property
    def _blocks(self) -> dict[str, Blocks]:
        return {name: allocate(self.scenario, one) for name, one in self.scenario.clusters.items()}

    @cached_property
    def _pod_networks(self) -> dict[str, list[IPv4Network]]:
        return {name: together(one.pod_networks) for name, one in self.scenario.clusters.items()}

    @cached_property
    def _service_ranges(self) -> dict[str, IPv4Network]:
        return services.ranges(self.scenario)

    @cached_property
    def _services(self) -> dict[str, IPv4Address]:
        return services.addresses(self.scenario, self._service_ranges)

    @cached_property
    def _service_ports(self) -> dict[str, int]:
        return services.ports(self.scenario)

    @cached_property
    def _flannel_networks(self) -> dict[str, IPv4Network]:
        return {name: around(one.pod_networks) for name, one in self.scenario.clusters.items()}

    @cached_property
    def _ports(self) -> dict[str, int]:
        scenario = self.scenario
        numbered = {one.label: port for port, one in enumerate(scenario.transfers, start=FIRST_PORT)}
        to_devices = (one for one in scenario.transfers if one.destination in scenario.connections)
        return numbered | {one.label: connections.port_of(scenario, one) or 0 for one in to_devices}


def _by_node(nodes: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, node in nodes.items():
        found.setdefault(node, []).append(name)
    return found


class PodRange(NamedTuple):
    """Addresses of pods, from the first to the last, and the network they are in."""

    subnet: IPv4Network
    gateway: IPv4Address
    first: IPv4Address
    last: IPv4Address

    @property
    def room(self) -> int:
        """How many pods it has addresses for."""
        return int(self.last) - int(self.first) + 1


def of_subnet(subnet: IPv4Network) -> PodRange:
    """Return the range of a subnet of a node's own: all but its own address, the gateway's, the broadcast."""
    return PodRange(subnet, subnet[1], subnet[2], subnet[-2])


def of_underlay(scenario: Scenario, cluster: str, node: str, gateway: IPv4Address) -> PodRange:
    """Return the range of the underlay for a cluster's pods on one of its workers."""
    underlay = scenario.underlay.cidr
    pairs = [(name, worker) for name, one in scenario.clusters.items() for worker in one.workers]
    first = first_of_pods(underlay)
    size = (int(underlay.broadcast_address) - int(first)) // len(pairs)
    begin = first + size * pairs.index((cluster, node))
    return PodRange(underlay, gateway, begin, begin + size - 1)


def first_of_pods(underlay: IPv4Network) -> IPv4Address:
    """Return the first address of an underlay's upper half."""
    return underlay[underlay.num_addresses // 2]
