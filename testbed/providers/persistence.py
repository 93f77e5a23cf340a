"""What a provider is that can keep testbeds: they stay up when the command that made them has ended.

What is needed to find one's way in a kept testbed lies in the testbed itself, so that the knowledge ends with
what it is about. ``register_provider`` (testbed.assembly) makes this known, with its provider.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from pydantic import BaseModel

from testbed.access.place import PodPlace, Route
from testbed.providers import Provider
from testbed.scenario import Scenario

DEFAULT = "testbed"  # what a testbed is called if nobody says
SHELL = "/bin/bash"


class Location(BaseModel):
    """Somewhere commands run in a kept testbed."""

    kind: str  # pod, container, device or node
    node: str  # of a device, its gateways
    address: str
    entry: Route  # for commands in it
    network: Route  # for the node's programs in its network
    guarantee_bps: int | None = None


class Cluster(BaseModel):
    """A cluster of real Kubernetes."""

    master: str
    workers: list[str]
    kubectl: str
    kubeconfig: str  # on the master
    port: int = 0  # on this machine, of what leads to its API server


class State(BaseModel):
    """What one kept testbed holds."""

    scenario: str
    enforcement: str | None = None  # without one there are no pods, whose promises it would keep
    places: dict[str, Location]
    clusters: dict[str, Cluster] = {}  # of real Kubernetes
    notes: list[str] = []  # what else is to be known, in words
    definition: str = (
        ""  # the scenario as YAML; empty: there is none, or it was brought up by an earlier version
    )


class CommandLine(NamedTuple):
    """What this process becomes to run a command somewhere, terminal and all."""

    argv: Sequence[str]
    environment: Mapping[str, str] = os.environ
    source: Sequence[str] = ()  # another command, whose output this one reads


class Persisted(Protocol):
    """A testbed that stays up, or machines that are there.

    What a provider does not say is as for machines that were there before, and are no clusters.
    """

    name: str  # what it is called

    def state(self) -> State:
        """Return what it holds. Raises LookupError or RuntimeError with why that cannot be told."""

    def command(self, route: Route, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a command at the end of a route, with the rights of root there."""

    def place(self, name: str, route: Route, address: str) -> PodPlace:
        """Return what is at the end of a route, where a harness can run what it measures by.

        Raises LookupError where there are machines and nothing else.
        """
        raise LookupError(f"{self.name!r} has machines and no pods: bench measures there")

    def login(self, location: Location, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a shell at a location, or to a command, as people use it."""

    def capture(self, location: Location, interface: str, arguments: Sequence[str]) -> CommandLine:
        """Return what leads to its node's tcpdump in a location's network. Raises LookupError for none."""
        return self.command(location.network, tcpdump_on(location.node, interface, arguments))

    def kubeconfig(self, cluster: str) -> str:
        """Return a kubeconfig that works on this machine. Raises LookupError for an unknown cluster."""
        raise unknown_cluster(self.name, cluster, [])

    def down(self) -> str:
        """Take it down, and return in words what has become of it. Raises RuntimeError with what is left."""

    def destroy(self) -> str:
        """Take down for good what would come up again as it was. Raises LookupError if nothing would."""
        raise LookupError("--destroy is for machines that the testbed has made: --provider vagrant")


BringUp = Callable[[Provider], AbstractContextManager[State]]


class Persistence(Protocol):
    """Keeps testbeds on the nodes of one provider."""

    def default_name(self, scenario: Scenario) -> str:
        """Return what a testbed of a scenario is called if nobody says."""
        return DEFAULT

    def up(
        self, scenario: Scenario, source: str, name: str, bring_up: BringUp, progress: Callable[[str], None]
    ) -> Persisted:
        """Bring up a testbed, and keep it.

        ``source`` is what was given with the provider, as in ssh:SOURCE. Given a provider, ``bring_up`` lends
        a testbed on its nodes, with the orchestrator that was asked for; it is taken down if keeping it
        fails. Raises LookupError for what is in the way, RuntimeError if it fails.
        """

    def names(self) -> list[str]:
        """Return what its testbeds are called; some may turn out to be gone."""
        return []

    def find(self, name: str) -> Persisted | None:
        """Return a testbed that is up, by name; None if there is none."""
        return None

    def at(self, source: str, scenario: Scenario | None, name: str | None) -> Persisted | None:
        """Return what is meant by the provider itself, with a source, a scenario, or a name.

        None if that is a testbed and not up. Raises LookupError for what leads nowhere.
        """


# Says what is missing where the command is run; its arguments are the place's name and tcpdump's own.
TCPDUMP = """
where=$1
shift
command -v tcpdump >/dev/null || {
    echo "tcpdump is not installed on $where: apt-get install tcpdump" >&2
    exit 2
}
exec tcpdump "$@"
"""


def tcpdump_on(node: str, interface: str, arguments: Sequence[str]) -> list[str]:
    """Return a node's own tcpdump, as a command to be run there."""
    return ["sh", "-c", TCPDUMP, "sh", node, "-n", "-l", "-i", interface, *arguments]


def nodes(addresses: Mapping[str, str]) -> dict[str, Location]:
    """Return where nodes are that routes begin at, by name, given their addresses."""
    return {
        name: Location(kind="node", node=name, address=address, entry=Route(name), network=Route(name))
        for name, address in addresses.items()
    }


def valid_name(name: str) -> bool:
    """Tell whether a testbed can have this name."""
    return re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9-]{0,30}", name) is not None


def taken(name: str) -> LookupError:
    """Return what to raise for a testbed's name that another has."""
    return LookupError(f"testbed {name!r} is up already; take it down, or choose another --name")


def unknown_cluster(name: str, cluster: str, clusters: Sequence[str]) -> LookupError:
    """Return what to raise for a cluster that a testbed has not."""
    found = ", ".join(clusters) or "none; --orchestrator kubernetes makes some"
    return LookupError(f"testbed {name!r} has no Kubernetes cluster {cluster!r} (clusters: {found})")
