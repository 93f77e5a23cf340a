"""Nodes of a cluster come, go and move while its testbed is up, and the others get to know.

What is executed is what follows from two scenarios: what a node has in the one, and what it has in the
other. Where entries are the testbed's it writes them on every node, as flanneld does when it hears of a
change; where daemons make them, the daemons get the configuration that they would have been started with, and
are told to read it again.

Entries are texts that pod networks render for ``ip -batch`` and ``bridge -batch``: a line an entry, ``route
add ...``. So whoever can say what a node has among certain nodes has said, too, what changes there when one
of them joins, leaves, or has another address.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from edge.addresses.batches import difference, is_entry, joined, undone
from testbed.access.batch import Step, take, writing
from testbed.access.place import Node, in_parallel
from testbed.overlays import registry
from testbed.overlays.daemons import Find, component_of, located
from testbed.overlays.pod_network import PodNetwork
from testbed.scenario.addressing import Addressing


class Membership:
    """The nodes of one cluster."""

    def __init__(self, cluster: str, nodes: Mapping[str, Node], find: Find) -> None:
        self._cluster, self._nodes, self._find = cluster, nodes, find

    def move(self, node: str, before: Addressing, after: Addressing) -> None:
        """Let one node join, leave or change: from what it is in one scenario to what it is in another.

        All other nodes of the cluster are in both, and are the same there. Raises CommandError.
        """
        members = [one for one in self._members(before) if one in self._members(after)]
        others = [one for one in members if one != node]
        old, new = self._network(before), self._network(after)

        def change(one: str) -> None:
            if one == node:
                self._move(node, before, after)
            else:
                self._take(one, [*following(old, new, one), *self._reloads(old, new, one)])

        in_parallel(change, [node, *others])

    def kill(self, node: str, addressing: Addressing) -> None:
        """Kill the daemons of a node, which have no time to tell anybody."""
        for daemon in reversed(self._network(addressing).daemons(node)):
            component_of(daemon, self._nodes[node], self._find).kill()

    def start(self, node: str, addressing: Addressing) -> None:
        """Start the daemons of a node, with the files that they need; they may not be ready yet after it."""
        for daemon in self._network(addressing).daemons(node):
            self._take(node, writing(daemon.files))
            component_of(daemon, self._nodes[node], self._find).start()

    def _move(self, node: str, before: Addressing, after: Addressing) -> None:
        uplink = before.uplink(node)
        if node in self._members(before):
            self.kill(node, before)
            network = self._network(before)
            if node not in self._members(after):
                self._take(node, self._farewells(network, node))
            text = removal(network.links(node), network.devices(node))
            self._take(node, [Step(["ip", "-batch", "-"], text)] if text else [])
        if before.address(node) != after.address(node):
            text = (
                f"address del {before.nodes[node]} dev {uplink}\n"
                f"address add {after.nodes[node]} broadcast + dev {uplink}\n"
            )
            self._take(node, [Step(["ip", "-batch", "-"], text)])
        if node in self._members(after):
            network = self._network(after)
            batches = [("ip", network.links(node)), ("bridge", network.forwarding(node))]
            steps = [Step([tool, "-batch", "-"], text) for tool, text in batches if text]
            self._take(node, [*steps, *writing(network.files(node))])
            self.start(node, after)

    def _take(self, node: str, steps: Sequence[Step]) -> None:
        if steps:
            take(self._nodes[node], steps)

    def _farewells(self, network: PodNetwork, node: str) -> list[Step]:
        """Return what tells the others that a node leaves, where daemons do not see it by themselves."""
        return [
            Step(located(daemon, daemon.leave, self._nodes[node], self._find))
            for daemon in network.daemons(node)
            if daemon.leave
        ]

    def _reloads(self, old: PodNetwork, new: PodNetwork, node: str) -> list[Step]:
        """Return what tells a node's daemons of a change."""
        former = {daemon.name: daemon.files for daemon in old.daemons(node)}
        steps = []
        for daemon in new.daemons(node):
            if daemon.files != former.get(daemon.name):
                steps += writing(daemon.files)
                if daemon.reload:
                    steps.append(Step(located(daemon, daemon.reload, self._nodes[node], self._find)))
        return steps

    def _network(self, addressing: Addressing) -> PodNetwork:
        return registry.of_cluster(addressing, self._cluster)

    def _members(self, addressing: Addressing) -> Collection[str]:
        return addressing.members(self._cluster)


def following(old: PodNetwork, new: PodNetwork, node: str) -> list[Step]:
    """Return what gives a node that stays the entries of another network for those of the one it has."""
    texts = {
        "ip": difference(old.links(node), new.links(node)),
        "bridge": difference(old.forwarding(node), new.forwarding(node)),
    }
    changed = {path: text for path, text in new.files(node).items() if old.files(node).get(path) != text}
    return [*(Step([tool, "-batch", "-"], text) for tool, text in texts.items() if text), *writing(changed)]


def removal(text: str, devices: Collection[str]) -> str:
    """Return the text that removes all of a node's own; with a device goes what is on it."""
    lines = [line for line in reversed(text.splitlines()) if is_entry(line)]
    elsewhere = [undone(line) for line in lines if not set(line.split()) & set(devices)]
    return joined([*elsewhere, *(f"link del {device}" for device in devices)])
