"""Agents of enforcements that need one on every node, where no cluster's installer brings them.

It is Concorde's own, by its list and its cluster's key. Where two clusters share a node the second one's
waits, as it does on real nodes, and leaves its key to the first.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence

from testbed import resources
from testbed.access.batch import Step, take
from testbed.access.components import Component
from testbed.access.place import Node, in_parallel, path_on
from testbed.enforcements.enforcement import Enforcement
from testbed.scenario.addressing import Addressing

DIRECTORY = "/run/concorde-agents"
READY_SECONDS = 30.0
# Its list is its standard input.
_RUN = 'list=$1; shift; exec "$@" <"$list"'
_READY = 'grep -m 1 -E "takes part in the fabric|another looks after this node" "$1/log"'


class Agents:
    """The agents of all clusters' workers."""

    def __init__(self, addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> None:
        self._enforcement = enforcement
        clusters = addressing.scenario.clusters
        self._members = [(name, nodes[node]) for name, one in clusters.items() for node in one.workers]
        self._keys = {name: secrets.token_hex(32) for name in clusters}
        self.components: Sequence[Component] = ()

    def up(self) -> None:
        """Start them, and wait until each has its place, or waits for it. Raises ComponentError."""
        self._enforcement.prepare()
        self.components = in_parallel(lambda one: self._start(*one), self._members)
        in_parallel(
            lambda one: one.wait_until_it_says(["sh", "-c", _READY, "sh", one.directory], READY_SECONDS),
            self.components,
        )

    def faults(self) -> list[str]:
        """Return, in words, which of them have ended."""
        return [fault for fault in in_parallel(lambda one: one.fault(), self.components) if fault]

    def rounds(self) -> dict[str, list[str]]:
        """Return what each node's agents wrote down of their rounds, a line of JSON each, by node."""
        found: dict[str, list[str]] = {}
        for one in self.components:
            shown = one.place.run(["cat", _rounds(one.directory)], check=False).stdout
            found.setdefault(one.place.name, []).extend(shown.splitlines())
        return found

    def _start(self, cluster: str, node: Node) -> Component:
        directory = f"{DIRECTORY}/{cluster}"
        network = self._enforcement.network_list(cluster, node.name)
        document = {"cniVersion": network.cni_version, "name": network.name, "plugins": list(network.plugins)}
        take(
            node,
            [
                Step(["mkdir", "-p", directory]),
                Step(["tee", f"{directory}/key"], self._keys[cluster]),
                Step(["chmod", "600", f"{directory}/key"]),
                Step(["tee", f"{directory}/list"], json.dumps(document)),
            ],
        )
        program = f"{path_on(node, resources.BUILT_PLUGIN)}/concorde"
        own = ["/usr/bin/python3", "-IS", program, "agent", "--key", f"{directory}/key"]
        argv = ["sh", "-c", _RUN, "sh", f"{directory}/list", *own, "--record", _rounds(directory)]
        component = Component(f"agent of cluster {cluster}", node, directory, argv)
        component.start()
        return component


def _rounds(directory: str) -> str:
    return f"{directory}/rounds.jsonl"
