"""Keeps sandboxes. What one holds is in its own /run: nothing is written on the host."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from testbed.access.local import ENVIRONMENT
from testbed.access.place import CommandError, Entered, PodPlace, Route, in_parallel
from testbed.kubernetes import control_plane
from testbed.kubernetes.client import Client
from testbed.kubernetes.control_plane import at_server
from testbed.kubernetes.worker import wait_until_detached
from testbed.providers import persistence
from testbed.providers.netns import passages
from testbed.providers.netns.processes import STATE
from testbed.providers.netns.provider import NetnsProvider
from testbed.providers.netns.sandbox import Claim, Sandbox
from testbed.providers.persistence import (
    BringUp,
    Cluster,
    CommandLine,
    Location,
    Persisted,
    Persistence,
    State,
    valid_name,
)
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing


class SandboxPersistence(Persistence):
    """Keeps testbeds whose nodes are namespaces."""

    def up(
        self, scenario: Scenario, source: str, name: str, bring_up: BringUp, _progress: Callable[[str], None]
    ) -> PersistedSandbox:
        """Bring up a sandbox that outlives this process."""
        _no(source)
        with Claim(name):
            if Sandbox.find(name):
                raise persistence.taken(name)
            addressing = Addressing(scenario)
            provider = NetnsProvider(addressing, name, transfers=False)
            with bring_up(provider) as state:
                box = provider.sandbox
                assert box is not None
                _let_in(state, addressing, box)
                # Whole or not at all: others may ask meanwhile.
                write = f"cat >{STATE}.new && mv {STATE}.new {STATE}"
                box.switch.run(["sh", "-c", write], stdin=state.model_dump_json())
                box.keep()
        return PersistedSandbox(box)

    def names(self) -> list[str]:
        """Return the names of this user's sandboxes, without those of runs."""
        return [box.name for box in Sandbox.all() if valid_name(box.name)]

    def find(self, name: str) -> PersistedSandbox | None:
        """Return this user's sandbox of a name."""
        box = Sandbox.find(name) if valid_name(name) else None
        return PersistedSandbox(box) if box else None

    def at(self, source: str, _scenario: Scenario | None, name: str | None) -> PersistedSandbox | None:
        """Return the sandbox of a name: there is nothing else by which one is known."""
        _no(source)
        return self.find(name or persistence.DEFAULT)


class PersistedSandbox(Persisted):
    """A sandbox that stays."""

    def __init__(self, box: Sandbox) -> None:
        self.box, self.name = box, box.name

    def state(self) -> State:
        """Return what was written into it."""
        try:
            return State.model_validate_json(self.box.switch.run(["cat", STATE]).stdout)
        except CommandError:
            raise RuntimeError(f"testbed {self.name!r} is coming, or going, or half up only") from None

    def command(self, route: Route, argv: Sequence[str]) -> CommandLine:
        """Return what leads through a node's namespaces."""
        environment = {**ENVIRONMENT, "TERM": os.environ.get("TERM", "dumb")}
        return CommandLine([*self.box.node(route.node).prefix, *route.command, *argv], environment)

    def place(self, name: str, route: Route, address: str) -> PodPlace:
        """Return what a node's own processes get to by a command."""
        return Entered(name, self.box.node(route.node), route.command, address)

    def login(self, location: Location, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a shell there: nobody has to log in."""
        return self.command(location.entry, argv or [persistence.SHELL])

    def capture(self, location: Location, interface: str, arguments: Sequence[str]) -> CommandLine:
        """Return what leads to this machine's tcpdump in a network; it runs outside for who is not root."""
        tcpdump = shutil.which("tcpdump", path=ENVIRONMENT["PATH"])
        if tcpdump is None:
            raise LookupError("tcpdump is not installed: apt-get install tcpdump")
        if os.geteuid() == 0:
            shown = [tcpdump, "-n", "-l", "-i", interface, *arguments]
            return self.command(location.network, shown)
        read = [sys.executable, "-I", "-S", passages.__file__, "packets", interface]
        reader = self.command(location.network, read)
        return CommandLine([tcpdump, "-n", "-l", "-r", "-", *arguments], source=reader.argv)

    def kubeconfig(self, cluster: str) -> str:
        """Return a master's own kubeconfig, but to the port of this machine that leads there."""
        clusters = self.state().clusters
        if cluster not in clusters:
            raise persistence.unknown_cluster(self.name, cluster, list(clusters))
        where = clusters[cluster]
        text = self.box.node(where.master).run(["cat", where.kubeconfig]).stdout
        return at_server(text, f"https://{passages.LOOPBACK}:{where.port}")

    def down(self) -> str:
        """End the sandbox, and before it the pods of real Kubernetes."""
        with suppress(RuntimeError):  # it may be half up only
            in_parallel(lambda item: self._empty(*item), list(self.state().clusters.items()))
        self.box.stop()
        return f"testbed {self.name!r} is down"

    def _empty(self, name: str, cluster: Cluster) -> None:
        """Remove the pods of a cluster."""
        Client(name, self.box.node(cluster.master), cluster.kubectl, cluster.kubeconfig).delete_pods()
        in_parallel(lambda worker: wait_until_detached(self.box.node(worker), name), cluster.workers)


def _no(source: str) -> None:
    if source:
        raise LookupError(f"--provider netns:{source}: namespaces are made from nothing: --provider netns")


def _let_in(state: State, addressing: Addressing, box: Sandbox) -> None:
    """Let this machine's programs reach the API servers of real Kubernetes, and note by which ports."""
    for name, cluster in state.clusters.items():
        address, port = control_plane.endpoint(addressing, name)
        there = [box.network(cluster.master), address, str(port)]
        forwarded = box.outside.run(["/usr/bin/python3", "-I", "-S", passages.__file__, "port", *there])
        cluster.port = int(forwarded.stdout)
