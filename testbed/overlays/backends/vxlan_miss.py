"""A cluster's overlay as the first flannel made it: a node knows of the others what its kernel asked for.

The VTEP's device is told to keep ARP to itself (``proxy``) and to say what it misses (``l2miss``), and its
neighbours are asked for of programs (``app_solicit``). A resolver on each node (edge.overlay.resolver)
answers both from its replica of what the nodes have told each other: in an etcd on the master, or, where
there is a cluster's API, in annotations of its Nodes. The cluster's ``resolve`` says what is made ahead of
any packet instead, and then devices are as flannel's were: with forwarding entries ahead without these flags
(flannel 0.5 to 0.8), with all ahead without the sysctl, too (from 0.9).

Source: flannel 0.3, 0.5 and 0.9, ``backend/vxlan``; the flags: drivers/net/vxlan/vxlan_core.c.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import Any

from edge.overlay import leases
from testbed import resources
from testbed.access import batch
from testbed.access.place import Node, in_parallel
from testbed.overlays import kernel_state
from testbed.overlays.backends.vxlan import Overlay
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import Api, Daemon, etcd_arguments
from testbed.scenario.model import Resolve
from testbed.scenario.networks import etcd_port

AHEAD = "ahead"
# How often the kernel asks programs for an address before it gives up, as flannel set it.
SOLICITATIONS = "3"


@dataclass(frozen=True)
class Resolved(Overlay):
    """One cluster's overlay."""

    api: Api | None = None

    @property
    def resolve(self) -> Resolve:
        """When entries are made."""
        return self.own.resolve or Resolve()

    @property
    def directory(self) -> str:
        """Where a node keeps what the cluster's daemons write."""
        return f"/run/overlay/{self.cluster}"

    def links(self, node: str) -> str:
        """Return the ``ip -batch`` text for a node's VTEP; without routes all pods are its neighbours."""
        return self.device(node)

    def forwarding(self, node: str) -> str:
        """Return nothing: forwarding entries are the resolver's."""
        return ""

    def files(self, node: str) -> Mapping[str, str]:
        """Return what flannel writes of a node's subnet; and that neighbours are asked for of programs."""
        asked = {self._solicit: f"{SOLICITATIONS}\n"} if self._asks else {}
        return {**super().files(node), **asked}

    def daemons(self, node: str) -> Sequence[Daemon]:
        """Return the resolver, and on the master etcd first, unless an API takes its place."""
        etcd = [self._etcd()] if self.api is None and node == self.own.master else []
        return [*etcd, self._resolver(node)]

    def rights(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return that all Nodes are read, and the own one's annotations written, by way of its status."""
        own = {"resources": ["nodes/status"], "resourceNames": [name], "verbs": ["patch"]}
        every = {"resources": ["nodes"], "verbs": ["list", "watch"]}
        return [{"apiGroups": [""], **every}, {"apiGroups": [""], **own}]

    def by_api(self, api: Api) -> Resolved:
        """Return the same overlay, with annotations of Nodes in the place of etcd."""
        return replace(self, api=api)

    def flannel(self) -> Mapping[str, Any] | None:
        """Return nothing: flannel does it no more."""
        return None

    def wanted(self, node: str, found: Mapping[str, KernelState]) -> Iterator[str]:
        """Yield the VTEP, a replica of all leases, and what is made ahead."""
        addressing, vtep = self.addressing, self.addressing.vtep(self.cluster)
        yield from self.wanted_device(node)
        if self._asks:
            yield kernel_state.route(self._network, "", vtep)
        for other in self.nodes:
            mac = found[other].macs.get(vtep, "")
            subnet = addressing.pod_subnet(self.cluster, other)
            yield leases.line(leases.Lease(subnet, addressing.address(other), mac))
        for remote in self.remotes(node):
            mac = found[remote.node].macs.get(vtep, "")
            if self.resolve.l2 == AHEAD:
                yield kernel_state.forwarding(mac, str(remote.address), vtep)
            if self.resolve.l3 == AHEAD:
                yield kernel_state.neighbour(str(remote.vtep), mac, vtep)
                yield kernel_state.route(str(remote.subnet), str(remote.vtep), vtep)

    def lacking(self, nodes: Mapping[str, Node]) -> list[str]:
        """Return what should be on the cluster's nodes and is not; see PodNetwork."""
        own = {name: nodes[name] for name in self.nodes}
        files = [self.addressing.subnet_file(self.cluster), self._report]
        lacking = kernel_state.lacking(self._wanted, own, files)
        return lacking + self._unasked(own) if self._asks else lacking

    def _unasked(self, own: Mapping[str, Node]) -> list[str]:
        """Return on which nodes programs are not asked for neighbours."""
        shown = in_parallel(lambda node: batch.look(node, [["cat", self._solicit]])[0], own.values())
        return [
            f"{name}: {SOLICITATIONS} in {self._solicit}"
            for name, one in zip(own, shown, strict=True)
            if one.stdout != SOLICITATIONS
        ]

    @property
    def _asks(self) -> bool:
        """Whether the kernel asks at which VTEP a pod is."""
        return self.resolve.l3 != AHEAD

    @property
    def flags(self) -> tuple[str, ...]:
        """That it says what it misses, and keeps ARP to itself; see Overlay."""
        if self.resolve.l2 == AHEAD:
            return ()
        return ("proxy", "l2miss") if self._asks else ("l2miss",)

    def interface(self, node: str) -> str:
        """Return the VTEP's address with its prefix: as long as all pods' network if they are neighbours."""
        length = self._network.prefixlen if self._asks else 32
        return f"{self.vtep_address(node)}/{length}"

    @property
    def _network(self) -> IPv4Network:
        """Where all are that are asked for: with several ranges flannel's one network around them."""
        return self.addressing.flannel_network(self.cluster)

    @property
    def _solicit(self) -> str:
        return f"/proc/sys/net/ipv4/neigh/{self.addressing.vtep(self.cluster)}/app_solicit"

    @property
    def _report(self) -> str:
        return f"{self.directory}/leases"

    def _etcd(self) -> Daemon:
        directory = f"{self.directory}/etcd"
        port = etcd_port(self.addressing.scenario, self.cluster)
        # Alone, it waits this long before it takes itself for the leader; ms.
        alone = ["--heartbeat-interval=20", "--election-timeout=200"]
        argv = ["etcd", *etcd_arguments(f"{directory}/data", self._etcd_url, port + 1), *alone]
        return Daemon(f"etcd of cluster {self.cluster}'s overlay", directory, argv, package="etcd-server")

    @property
    def _etcd_url(self) -> str:
        port = etcd_port(self.addressing.scenario, self.cluster)
        return f"http://{self.addressing.address(self.own.master)}:{port}"

    def _resolver(self, node: str) -> Daemon:
        file = f"{self.directory}/resolver.json"
        program = ["/usr/bin/python3", "-IS", str(resources.EDGE)]
        return Daemon(
            f"resolver of cluster {self.cluster}",
            f"{self.directory}/resolver",
            [*program, "resolver", file],
            leave=[*program, "leave", file],
            files={file: json.dumps(self._settings(node), indent=1) + "\n"},
            brings=resources.EDGE,
        )

    def _settings(self, node: str) -> dict[str, Any]:
        """Return what a resolver is told (edge.overlay.settings)."""
        addressing, api = self.addressing, self.api
        where: dict[str, Any] = {"store": self._etcd_url}
        if api is not None:
            where = {"store": api.server, "identity": api.identity, "authority": api.authority}
            where["node"] = api.name_of(node)
        return {
            "device": addressing.vtep(self.cluster),
            "vni": self.own.flannel.vni,
            "network": str(self._network),
            "subnet": str(addressing.pod_subnet(self.cluster, node)),
            "address": str(addressing.address(node)),
            **self.resolve.model_dump(),
            **where,
            "report": self._report,
        }
