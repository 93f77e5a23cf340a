"""Testbeds that stay up, several side by side by name: to look around in, to try things by hand.

Whoever supplies their nodes keeps them (testbed.providers.persistence), and here they are all alike.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from testbed import assembly
from testbed.assembly import accept, demand, demand_links, persistences
from testbed.providers import Provider, persistence
from testbed.providers.persistence import CommandLine, Location, Persisted, Persistence, State
from testbed.scenario import Scenario, parse, render_yaml
from testbed.scenario.addressing import Addressing
from testbed.testbed import Progress, Testbed

if TYPE_CHECKING:
    from testbed.kubernetes.client import Client


def called(scenario: Scenario, provider: str, name: str | None) -> str:
    """Return what a testbed is going to be called; ``name`` is what was said, if anything was.

    Raises LookupError for a bad name, an unknown provider, or one that keeps no testbeds.
    """
    if name is not None and not persistence.valid_name(name):
        raise LookupError(f"--name: {name!r} is not a valid name: use letters, digits and dashes")
    return name or _persistence(provider).default_name(scenario)


def up(scenario: Scenario, provider: str, orchestrator: str, name: str, progress: Progress) -> Persisted:
    """Bring up a lasting testbed; ``provider`` may have a source, as in ``existing:FILE``.

    Raises LookupError for a taken name, an unknown part, or a provider that keeps no testbeds; RuntimeError
    if it fails.
    """
    runner, mine = demand(provider, orchestrator), _persistence(provider)
    accept(Addressing(scenario), runner)
    if scenario.segments:  # zones are nothing to machines before something is measured there
        demand_links(provider, scenario)
    make = assembly.orchestrated(orchestrator, runner, scenario)
    kind, _, source = provider.partition(":")
    if any(other.find(name) for of, other in persistences().items() if of != kind):
        raise persistence.taken(name)

    @contextmanager
    def bring_up(nodes: Provider) -> Iterator[State]:
        testbed = Testbed(Addressing(scenario), nodes, make)
        testbed.up(progress)
        try:
            testbed.enforcement.install(testbed)
            yield describe(testbed)
        except BaseException:
            testbed.down()
            raise

    return mine.up(scenario, source, name, bring_up, progress)


def testbeds() -> list[Persisted]:
    """Return all that are up, by name."""
    found = [
        persisted
        for each in persistences().values()
        for name in each.names()
        if (persisted := each.find(name))
    ]
    return sorted(found, key=lambda persisted: persisted.name)


def find(name: str) -> Persisted:
    """Return a testbed by name. Raises LookupError if none is up, or several are."""
    found = {of: persisted for of, each in persistences().items() if (persisted := each.find(name))}
    if len(found) > 1:
        others = " or ".join(found)
        raise LookupError(f"{len(found)} testbeds are called {name!r}; choose by --provider {others}")
    if not found:
        known = ", ".join(persisted.name for persisted in testbeds()) or "none"
        raise LookupError(f"no testbed {name!r} is up (testbeds: {known})")
    return found.popitem()[1]


def only() -> Persisted:
    """Return the testbed that is meant if none is named: the usual one, or the only one that is up.

    Raises LookupError.
    """
    if not any(each.find(persistence.DEFAULT) for each in persistences().values()):
        there = testbeds()
        if len(there) == 1:
            return there[0]
    return find(persistence.DEFAULT)


def at(provider: str, scenario: Scenario | None, name: str | None) -> Persisted:
    """Return what is meant by a provider, which may have a source; machines that are nobody's, too.

    Raises LookupError.
    """
    kind, _, source = provider.partition(":")
    mine = _persistence(provider)
    found = mine.at(source, scenario, name)
    if found is None:
        known = ", ".join(mine.names()) or "none"
        raise LookupError(
            f"no testbed {name or persistence.DEFAULT!r} is up with --provider {kind} (testbeds: {known})"
        )
    return found


def scenario_of(persisted: Persisted) -> Scenario:
    """Return the scenario that a testbed was brought up from. Raises LookupError if that is not known."""
    definition = persisted.state().definition
    if not definition:
        raise LookupError(f"{persisted.name!r} has no scenario: bring a testbed up, ./invokew up")
    return parse(definition)


def location(persisted: Persisted, place: str) -> Location:
    """Return where a pod, container or node is. Raises LookupError if there is no such place."""
    places = persisted.state().places
    if place not in places:
        raise LookupError(f"testbed {persisted.name!r} has no {place!r}: {', '.join(places)}")
    return places[place]


def execute(persisted: Persisted, place: str, argv: Sequence[str]) -> None:
    """Become a command in a pod, container or node. Does not return. Raises LookupError."""
    become(persisted.command(location(persisted, place).entry, argv))


def log_in(persisted: Persisted, place: str, argv: Sequence[str]) -> None:
    """Become a shell, or a command line in one: ssh, too, has a shell there read what its words are together.

    Does not return. Raises LookupError.
    """
    become(persisted.login(location(persisted, place), ["sh", "-c", " ".join(argv)] if argv else []))


def capture(persisted: Persisted, place: str, interface: str, arguments: Sequence[str]) -> None:
    """Become a tcpdump that shows what passes an interface of a pod, container or node. Does not return.

    Raises LookupError if there is no such place, or no tcpdump.
    """
    become(persisted.capture(location(persisted, place), interface, arguments))


def become(command: CommandLine) -> None:
    """Become a command, terminal and all. Does not return."""
    if command.source:
        reader = subprocess.Popen(command.source, stdout=subprocess.PIPE)
        assert reader.stdout is not None
        os.dup2(reader.stdout.fileno(), 0)
    os.execvpe(command.argv[0], list(command.argv), dict(command.environment))


def describe(testbed: Testbed) -> State:
    """Return what a testbed that is up holds, and how to get there."""
    scenario, pods = testbed.scenario, testbed.addressing.pods
    places: dict[str, Location] = {}
    for kind, group in (("pod", testbed.pods), ("container", testbed.containers)):
        for name, place in group.items():
            pod = pods.get(name)
            places[name] = Location(
                kind=kind,
                node=pod.node if pod else scenario.node_of(name),
                address=place.address,
                entry=place.route,
                network=testbed.networks.get(name, place).route,
                guarantee_bps=pod.guarantee if pod else None,
            )
    for name, device in testbed.provider.devices.items():
        route, of = device.node.route, scenario.segments[scenario.devices[name].segment]
        gateways = ", ".join(of.nodes)
        places[name] = Location(
            kind="device", node=gateways, address=device.address, entry=route, network=route
        )
    for name, node in testbed.nodes.items():
        route = node.route
        address = str(testbed.addressing.address(name))
        places[name] = Location(kind="node", node=name, address=address, entry=route, network=route)
    return State(
        scenario=scenario.name,
        enforcement=scenario.kept_by,
        definition=render_yaml(scenario),
        places=places,
        clusters={client.cluster: _cluster(scenario, client) for client in testbed.clients},
    )


def _cluster(scenario: Scenario, client: Client) -> persistence.Cluster:
    cluster = scenario.clusters[client.cluster]
    return persistence.Cluster(
        master=cluster.master,
        workers=list(cluster.workers),
        kubectl=client.kubectl,
        kubeconfig=client.kubeconfig,
    )


def _persistence(provider: str) -> Persistence:
    found = assembly.persistence(provider)
    if found is None:
        raise LookupError(
            f"--provider {provider}: no testbed can stay up there (only with: {', '.join(persistences())})"
        )
    return found
