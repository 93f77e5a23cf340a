"""A cluster of many nodes: what each must know, and what happens when one of them leaves, joins or moves.

The last worker is the one that moves. Probe streams go between its pod and a pod of every other worker, both
ways, all the time; and whatever the other nodes' kernels do with entries that lead to it is taken note of.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Any, Literal

from bench.measurement.probe import SilenceError, Talk, talking
from bench.studies.backends.probes import PROGRAMS, scenarios
from bench.studies.backends.probes.membership import Membership
from bench.studies.backends.probes.scenarios import network_of
from bench.studies.backends.records import DaemonUse, Entries, Event, Nodes, Streams
from testbed.access.place import in_parallel
from testbed.links import underlay
from testbed.overlays import registry
from testbed.overlays.pod_network import Daemon
from testbed.providers import Together
from testbed.scenario.addressing import Addressing
from testbed.supplies import packages
from testbed.testbed import Testbed

# Of all pairs together, in a millisecond: what leaves a machine of two processors time for daemons.
MOST_PACKETS = 30
MILLISECOND = 1_000_000  # nanoseconds
READY_SECONDS = 30.0
# How long is looked at what comes of an event, seconds: before any, of one that takes packets away, and, at
# most, of one that brings them back.
QUIET, LEFT, KILLED, SILENT, MOST = 1.0, 3.0, 2.0, 12.0, 60.0
# Prints the proportional set size of each process whose identifier is in a file (proc(5)), in KiB.
MEMORY = """
for file in "$@"; do
    sed -n 's/^Pss: *\\([0-9]*\\) kB/\\1/p' "/proc/$(cat "$file")/smaps_rollup"
done
"""

Name = Literal["leave", "join", "change", "kill", "restart", "silence", "return"]


@dataclass
class _Moves:
    """What happens to one node, and when."""

    testbed: Testbed
    together: Together
    node: str
    talk: Talk
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        scenario = self.testbed.scenario
        self.there = self.testbed.addressing
        self.gone = Addressing(scenarios.without(scenario, self.node))
        self.moved = Addressing(scenarios.moved(scenario, self.node))
        self._membership = Membership(scenarios.CLUSTER, self.testbed.nodes, packages.find)

    def all(self) -> None:
        """Let everything happen, one after the other."""
        self._event("leave", lambda: self._membership.move(self.node, self.there, self.gone))
        time.sleep(LEFT)
        self._event("join", lambda: self._membership.move(self.node, self.gone, self.there))
        self._arrive()
        self._event("change", lambda: self._membership.move(self.node, self.there, self.moved))
        self._arrive()
        if registry.of_cluster(self.moved, scenarios.CLUSTER).daemons(self.node):
            self._event("kill", lambda: self._membership.kill(self.node, self.moved))
            time.sleep(KILLED)
            self._event("restart", lambda: self._membership.start(self.node, self.moved))
            self._arrive()
        self._event("silence", lambda: self._plug("down"))
        time.sleep(SILENT)
        self._event("return", lambda: self._plug("up"))
        self._arrive()

    def _event(self, name: Name, what: Callable[[], None]) -> None:
        begun = time.monotonic_ns()
        what()
        self.events.append(Event(name=name, begun_ns=begun, done_ns=time.monotonic_ns()))

    def _arrive(self) -> None:
        """Wait until all packets arrive again; that they do not is a result."""
        self.talk.begin()
        with suppress(SilenceError):
            self.talk.expect("arrive", MOST)

    def _plug(self, state: Literal["up", "down"]) -> None:
        """Pull the node's cable out of the switch, or put it in again: nobody is told."""
        port = underlay.port_name(list(self.testbed.scenario.nodes).index(self.node))
        self.together.hub.run(["ip", "link", "set", port, state])


def measure(testbed: Testbed, together: Together, backend: str, up_s: float) -> Nodes:
    """Measure all there is of a cluster that is up. Raises RuntimeError."""
    *others, node = scenarios.workers(testbed.scenario)
    rest = entries(testbed, others[0])
    with (
        _watching(testbed, together, others) as watched,
        probing(testbed, together, others, node) as (talk, streams),
    ):
        time.sleep(QUIET)
        talked = entries(testbed, others[0])
        daemons = _daemons(testbed)
        moves = _Moves(testbed, together, node, talk)
        moves.all()
    subnet = str(moves.there.pod_subnet(scenarios.CLUSTER, node))
    addresses = [str(moves.there.address(node)), str(moves.moved.address(node))]
    return Nodes(
        backend=backend,
        nodes=len(testbed.scenario.nodes),
        up_s=up_s,
        rest=rest,
        talking=talked,
        daemons=daemons,
        node=node,
        subnet=subnet,
        addresses=addresses,
        watched=others,
        events=moves.events,
        streams=Streams.model_validate_json(json.dumps(streams)),
        changes=[tuple(change) for change in watched["changes"] if change[4] in (subnet, *addresses)],
        changes_lost=watched["lost"],
    )


@contextmanager
def _watching(testbed: Testbed, together: Together, nodes: list[str]) -> Iterator[dict[str, Any]]:
    """Take note of what nodes' kernels do with entries; it is there after the block."""
    found: dict[str, Any] = {}
    paths = [together.inside(testbed.nodes[name]) for name in nodes]
    with talking(together.hub, PROGRAMS / "entries.py", paths) as watch:
        yield found
        watch.end()
        found |= watch.data(READY_SECONDS)


@contextmanager
def probing(
    testbed: Testbed, together: Together, others: list[str], node: str
) -> Iterator[tuple[Talk, dict[str, Any]]]:
    """Let packets go to and fro between a node and the others until the end of the block.

    What there was, as Streams has it, is there after it.
    """
    nodes, last = [*others, node], len(others)
    pairs = [pair for place in range(last) for pair in ((place, last), (last, place))]
    interval = -(-len(pairs) // MOST_PACKETS) * MILLISECOND
    pods = [scenarios.pod(name) for name in nodes]
    ends = [
        {"network": network_of(testbed, together, pod), "address": testbed.pods[pod].address} for pod in pods
    ]
    found: dict[str, Any] = {
        "interval_ns": interval,
        "pairs": [(nodes[source], nodes[to]) for source, to in pairs],
    }
    wishes = {"interval": interval, "ends": ends, "pairs": pairs}
    with talking(together.hub, PROGRAMS / "streams.py", wishes) as talk:
        talk.begin()
        yield talk, found
        talk.end()
        found |= talk.data(READY_SECONDS)


def entries(testbed: Testbed, node: str) -> Entries:
    """Return what a node's kernel has for other nodes of the cluster, and for their pods."""
    place, addressing = testbed.nodes[node], testbed.addressing
    own, pods = addressing.pod_subnet(scenarios.CLUSTER, node), scenarios.PODS
    routes = place.run(["ip", "-j", "-4", "route", "show", "table", "all"]).json()
    neighbours = place.run(["ip", "-j", "-4", "neighbour", "show"]).json()
    forwarding = place.run(["bridge", "-j", "fdb", "show"]).json()
    bridge = addressing.bridge(scenarios.CLUSTER)
    return Entries(
        routes=sum(
            network != own and network.subnet_of(pods)
            for route in routes
            if route.get("table") != "local" and route["dst"] != "default"
            for network in [IPv4Network(route["dst"])]
        ),
        neighbours=sum(neighbour["dev"] != bridge for neighbour in neighbours),
        forwarding=sum("dst" in entry for entry in forwarding),
    )


def _daemons(testbed: Testbed) -> list[DaemonUse]:
    """Return what the daemons of all nodes take of memory."""
    network = registry.of_cluster(testbed.addressing, scenarios.CLUSTER)

    def look(node: str) -> list[tuple[Daemon, int]]:
        daemons = network.daemons(node)
        if not daemons:
            return []
        files = [f"{daemon.directory}/pid" for daemon in daemons]
        sizes = testbed.nodes[node].run(["sh", "-c", MEMORY, "sh", *files]).stdout.split()
        return list(zip(daemons, (int(size) * 1024 for size in sizes), strict=True))

    found = [one for each in in_parallel(look, testbed.scenario.nodes) for one in each]
    return [
        DaemonUse(
            name=name,
            processes=sum(daemon.name == name for daemon, _ in found),
            bytes=sum(size for daemon, size in found if daemon.name == name),
        )
        for name in dict.fromkeys(daemon.name for daemon, _ in found)
    ]
