"""Nodes join their cluster's pod network when they have their blocks: by edge's program, on each of them.

A cluster with ``pod_cidrs`` gives blocks while it runs, also to workers for which there was no range when it
came up. So each node has a program (edge.addresses.joining) with a plan: what the pod network, its daemons
and the network list say of the node, rendered while no block is known. Blocks stand in these texts as
placeholders; for which other node a line is there, shows what the node has among fewer nodes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from typing import cast

from edge.addresses.batches import LENGTH, SUBNET, Template, placeholder
from testbed import resources
from testbed.access.batch import take, writing
from testbed.access.components import Component
from testbed.access.place import Node, in_parallel
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import manifests, proxies
from testbed.kubernetes.control_plane import ControlPlane, Subject, directory_of, endpoint
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.kubernetes.worker import network_file, render_network
from testbed.overlays.daemons import Find, located
from testbed.overlays.pod_network import Api, Daemon, PodNetwork
from testbed.overlays.registry import of_cluster
from testbed.scenario.addressing import Addressing
from testbed.scenario.blocks import Blocks

RIGHTS = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]
# Becomes a daemon once its first file is there: path, program, arguments.
AWAIT = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class OpenBlock:
    """A block that is not known yet: what is taken of it is a placeholder."""

    node: str  # as the cluster's API calls it

    def __str__(self) -> str:
        return placeholder(self.node, SUBNET)

    def __getitem__(self, position: int) -> OpenAddress:
        return OpenAddress(self.node, position)

    @property
    def network_address(self) -> OpenAddress:
        """Its first address."""
        return self[0]

    @property
    def prefixlen(self) -> str:
        """Its length."""
        return placeholder(self.node, LENGTH)


@dataclass(frozen=True)
class OpenAddress:
    """An address of such a block."""

    node: str
    position: int

    def __str__(self) -> str:
        return placeholder(self.node, self.position)

    def __add__(self, count: int) -> OpenAddress:
        return OpenAddress(self.node, self.position + count)


@dataclass(frozen=True)
class OpenAddressing(Addressing):
    """Of one cluster some nodes have blocks, which are not known; all else is as the scenario says."""

    cluster: str
    having: Collection[str]

    def blocks(self, cluster: str) -> Blocks:
        """Return open blocks of that cluster's nodes; see Addressing."""
        if cluster != self.cluster:
            return super().blocks(cluster)
        nodes = [node for node in self.scenario.clusters[cluster].nodes if node in self.having]
        return Blocks({node: _open(node) for node in nodes}, {}, {})

    def pod_networks(self, cluster: str) -> Sequence[IPv4Network]:
        """Return these; and the blocks of nodes for which there was no range: theirs may be another one."""
        known = super().pod_networks(cluster)
        refused = super().blocks(cluster).refused if cluster == self.cluster else ()
        return [*known, *(_open(node) for node in refused if node in self.having)]


def _open(node: str) -> IPv4Network:
    return cast(IPv4Network, OpenBlock(name_of(node)))


def template(texts: Mapping[str, str], whole: str, alone: str) -> Template:
    """Return a node's text as a template: ``whole`` is what it has among all others, ``alone`` without any.

    ``texts`` has what it has with each single other node, by that one's name at the API.
    """
    own = set(alone.splitlines(keepends=True))
    of = {line: other for other, text in texts.items() for line in text.splitlines(keepends=True)}
    return [("" if line in own else of[line], line) for line in whole.splitlines(keepends=True)]


class Stations:
    """One cluster's nodes, each with its program; and the daemons of those that wait for a block."""

    def __init__(
        self,
        addressing: Addressing,
        enforcement: Enforcement,
        cluster: str,
        nodes: Mapping[str, Node],
        find: Find,
        joined_by_others: bool,
    ) -> None:
        """``joined_by_others``: all but the network list is made by others, such as a real flanneld."""
        self.cluster = cluster
        self._addressing, self._enforcement = addressing, enforcement
        self._find, self._joined_by_others = find, joined_by_others
        own = addressing.scenario.clusters[cluster]
        self._workers = own.workers
        self._nodes = {name: nodes[name] for name in own.nodes}
        self._directory = f"{directory_of(cluster)}/join"
        self._programs = {name: self._program(name) for name in self._nodes}
        self._waiting: list[Component] = []

    @property
    def components(self) -> list[Component]:
        """What must be running."""
        return [*self._programs.values(), *self._waiting]

    @property
    def manifests(self) -> list[Manifest]:
        """What the API must be told first: that each program may see which node has which block."""
        return [one for name in self._nodes for one in manifests.allowed(_user(name), RIGHTS)]

    def up(self, control_plane: ControlPlane) -> None:
        """Start the programs, and what waits with its node for a block. Raises CommandError."""
        in_parallel(lambda name: self._start(name, control_plane), self._nodes)

    def plan(self, name: str) -> dict[str, object]:
        """Return what a node's program is told (edge.addresses.joining.Plan)."""
        others = {name_of(other): other for other in self._nodes if other != name}
        texts = {api_name: self._texts(name, [name, other]) for api_name, other in others.items()}
        whole, alone = self._texts(name, self._nodes), self._texts(name, [name])
        templates = {
            key: template({other: one[key] for other, one in texts.items()}, text, alone[key])
            for key, text in whole.items()
        }
        server = f"https://{':'.join(map(str, endpoint(self._addressing, self.cluster)))}"
        return {
            "node": name_of(name),
            "api": server,
            "identity": f"{self._directory}/identity.pem",
            "authority": f"{self._directory}/authority.crt",
            "batches": {tool: templates.pop(tool) for tool in ("ip", "bridge") if tool in templates},
            "files": templates,
            "reloads": [
                (path, located(daemon, daemon.reload, self._nodes[name], self._find))
                for daemon in self._daemons(name)
                for path in daemon.files
                if daemon.reload
            ],
            "journal": f"{self._directory}/journal.json",
        }

    def _texts(self, name: str, having: Collection[str]) -> dict[str, str]:
        """Return what a node has among certain nodes: batches by tool, files by path, the list's the last."""
        addressing = OpenAddressing(self._addressing.scenario, self.cluster, having)
        texts = {}
        if not self._joined_by_others:
            network = self._network(addressing)
            texts = {"ip": network.links(name), "bridge": network.forwarding(name), **network.files(name)}
            for daemon in network.daemons(name):
                texts.update(daemon.files)
        if name in self._workers:
            enforcement = replace(self._enforcement, addressing=addressing)
            network_list = proxies.network_list(enforcement, self.cluster, name)
            texts[network_file(self.cluster, network_list)] = render_network(network_list)
        return texts

    def _network(self, addressing: Addressing) -> PodNetwork:
        return of_cluster(addressing, self.cluster).by_api(api_of(self._addressing, self.cluster))

    def _daemons(self, name: str) -> Sequence[Daemon]:
        if self._joined_by_others:
            return []
        addressing = OpenAddressing(self._addressing.scenario, self.cluster, [name])
        return self._network(addressing).daemons(name)

    def _program(self, name: str) -> Component:
        return Component(
            f"edge join of cluster {self.cluster}",
            self._nodes[name],
            self._directory,
            ["/usr/bin/python3", "-IS", str(resources.EDGE), "join", f"{self._directory}/plan.json"],
        )

    def _start(self, name: str, control_plane: ControlPlane) -> None:
        plan, authority = self.plan(name), control_plane.authority
        files = {
            str(plan["identity"]): authority.identify(Subject(_user(name))),
            str(plan["authority"]): authority.certificate,
            f"{self._directory}/plan.json": json.dumps(plan, indent=1),
        }
        take(self._nodes[name], writing(files))
        self._programs[name].start()
        if name not in self._addressing.members(self.cluster):
            waiting = [self._await(name, daemon) for daemon in self._daemons(name) if daemon.files]
            for one in waiting:
                one.start()
            self._waiting += waiting

    def _await(self, name: str, daemon: Daemon) -> Component:
        """Return a daemon that starts when its node has a block, and so its file."""
        argv = located(daemon, daemon.argv, self._nodes[name], self._find)
        wait = ["/usr/bin/python3", "-IS", "-c", AWAIT, next(iter(daemon.files))]
        return Component(daemon.name, self._nodes[name], daemon.directory, [*wait, *argv], daemon.env)


def api_of(addressing: Addressing, cluster: str) -> Api:
    """Return a cluster's API as the pod network's daemons on its nodes find it."""
    directory, (address, port) = directory_of(cluster), endpoint(addressing, cluster)
    return Api(f"https://{address}:{port}", f"{directory}/overlay.pem", f"{directory}/overlay.crt", name_of)


def _user(node: str) -> str:
    return f"join:{name_of(node)}"
