"""Joins clusters' nodes: starts their pod networks' daemons, waits for what they make, looks after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed.access.batch import Step, take, writing
from testbed.access.components import Component, ComponentError
from testbed.access.place import Node, in_parallel, path_on
from testbed.overlays.pod_network import Daemon, PodNetwork

READY_SECONDS = 60.0
JOINED_SECONDS = 120.0
AGAIN_SECONDS = 0.1

# Returns where a program of one of Debian's packages is. Raises LookupError.
Find = Callable[[str, str], Path]


class Joining:
    """What joins the nodes, of all clusters for which the testbed makes it."""

    def __init__(self, networks: Mapping[str, PodNetwork], nodes: Mapping[str, Node], find: Find) -> None:
        self._networks = networks
        self._nodes = nodes
        self._find = find
        self._started: dict[str, list[Component]] = {name: [] for name in networks}

    @property
    def components(self) -> list[Component]:
        """What must be running."""
        return [one for started in self._started.values() for one in started]

    @property
    def programs(self) -> Mapping[str, Path]:
        """The daemons' programs that come from packages, by name."""
        every = (
            daemon
            for network in self._networks.values()
            for node in network.nodes
            for daemon in network.daemons(node)
        )
        return {one.argv[0]: self._find(one.package, one.argv[0]) for one in every if one.package}

    def up(self) -> None:
        """Start the daemons, and wait until they have joined all nodes.

        Where there are none, what was made is there. Raises ComponentError or CommandError.
        """
        members = [(name, node) for name, network in self._networks.items() for node in network.nodes]
        begun = in_parallel(lambda one: self._start(*one), members)
        for (name, _), started in zip(members, begun, strict=True):
            self._started[name] += started
        in_parallel(self._wait, [name for name, started in self._started.items() if started])

    def faults(self) -> list[str]:
        """Return, in words, which daemons have ended, and what is not there any more."""
        ended = [fault for fault in in_parallel(lambda one: one.fault(), self.components) if fault]
        lacking = in_parallel(lambda name: self._networks[name].lacking(self._nodes), self._networks)
        return ended + [
            f"the network of cluster {name} lacks, on {text}"
            for name, lacks in zip(self._networks, lacking, strict=True)
            for text in lacks
        ]

    def _start(self, cluster: str, node: str) -> list[Component]:
        return [self._run(daemon, self._nodes[node]) for daemon in self._networks[cluster].daemons(node)]

    def _run(self, daemon: Daemon, node: Node) -> Component:
        take(node, [Step(["mkdir", "-p", daemon.directory]), *writing(daemon.files)])
        component = component_of(daemon, node, self._find)
        component.start()
        if daemon.ready:
            component.wait_until_it_says(located(daemon, daemon.ready, node, self._find), READY_SECONDS)
        return component

    def _wait(self, cluster: str) -> None:
        wait_until_joined(lambda: self._networks[cluster].lacking(self._nodes), self._started[cluster])


def component_of(daemon: Daemon, node: Node, find: Find) -> Component:
    """Return a node's daemon as what can be started there, and killed. Raises LookupError."""
    return Component(
        daemon.name, node, daemon.directory, located(daemon, daemon.argv, node, find), daemon.env
    )


def located(daemon: Daemon, argv: Sequence[str], node: Node, find: Find) -> list[str]:
    """Return a daemon's command with the paths of its program, and of what it brings. Raises LookupError."""
    program, *arguments = argv
    command = [str(find(daemon.package, program)) if daemon.package else program, *arguments]
    if daemon.brings is None:
        return command
    there = path_on(node, daemon.brings)
    return [there if word == str(daemon.brings) else word for word in command]


def wait_until_joined(lacking: Callable[[], list[str]], components: Sequence[Component]) -> None:
    """Wait until nothing is lacking that components are to make.

    Raises ComponentError when one of them ends before, or time is over.
    """
    deadline = time.monotonic() + JOINED_SECONDS
    while absent := lacking():
        if fault := next((text for one in components if (text := one.fault())), None):
            raise ComponentError(fault)
        if time.monotonic() > deadline:
            raise ComponentError(_unmade(absent[0], components))
        time.sleep(AGAIN_SECONDS)


def _unmade(absent: str, components: Sequence[Component]) -> str:
    """Say what is lacking, and the last words of who should have made it."""
    late = f"not there after {JOINED_SECONDS:g} s, on {absent}"
    here = (one for one in components if one.place.name == absent.partition(":")[0])
    said = [f"last words of {one.name}: {one.last_words()}" for one in here]
    return "; ".join([late, *said])
