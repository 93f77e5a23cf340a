"""Testbeds that stay up, several side by side by name: to look around in, to try things by hand.

What is needed to find one's way in such a testbed lies inside it, in its sandbox's /run: nothing is written
on the host, and the knowledge ends with what it is about.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

from pydantic import BaseModel

from testbed.access import packets
from testbed.access.local import ENVIRONMENT
from testbed.access.place import CommandError, Place, in_parallel
from testbed.assembly import demand, put_together
from testbed.kubernetes import control_plane, forward
from testbed.kubernetes.certificates import at_server
from testbed.kubernetes.client import Client
from testbed.kubernetes.worker import wait_until_empty
from testbed.providers.netns.provider import NetnsProvider
from testbed.providers.netns.sandbox import Claim, Entrance, Sandbox, valid_name
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing
from testbed.testbed import Progress, Testbed

SHELL = "/bin/bash"
STATE = "/run/testbed/state.json"


class Way(BaseModel):
    """How commands get somewhere: from which node, and by what command."""

    node: str
    command: list[str] = []


class Location(BaseModel):
    """Where a pod or container runs."""

    kind: str  # pod or container
    node: str
    address: str
    entry: Way  # for commands in it
    network: Way  # for the node's programs in its network
    guarantee_bps: int | None = None


class Cluster(BaseModel):
    """A cluster of real Kubernetes."""

    master: str
    workers: list[str]
    kubectl: str
    kubeconfig: str  # on the master
    port: int  # on this machine, of what leads to its API server


class State(BaseModel):
    """What one lasting testbed holds."""

    scenario: str
    enforcement: str
    nodes: list[str]
    places: dict[str, Location]
    clusters: dict[str, Cluster] = {}  # of real Kubernetes


def up(scenario: Scenario, name: str, orchestrator: str, progress: Progress) -> State:
    """Bring up a lasting testbed.

    Raises LookupError for a bad or taken name or an orchestrator there is not, RuntimeError if it fails.
    """
    runner = demand("netns", orchestrator)
    if not valid_name(name):
        raise LookupError(f"--name: {name!r} is no name for a testbed; use letters, digits and dashes")
    with Claim(name):
        if Sandbox.find(name):
            raise LookupError(f"testbed {name!r} is up already; take it down, or choose another --name")
        addressing = Addressing(scenario)
        provider = NetnsProvider(addressing, name)
        testbed = put_together(addressing, provider, runner.make)
        testbed.up(progress)
        try:
            testbed.enforcement.install(testbed)
            assert provider.sandbox is not None
            state = _describe(testbed, provider.sandbox)
            provider.sandbox.switch.run(["tee", STATE], stdin=state.model_dump_json())
            provider.sandbox.keep()
        except BaseException:
            testbed.down()
            raise
    return state


def states() -> dict[str, State]:
    """Return what this user's lasting testbeds hold, by name; one that is coming or going does not count."""
    found = {}
    for box in Sandbox.all():
        if valid_name(box.name):
            with suppress(CommandError):
                found[box.name] = _read(box)
    return found


def state(name: str) -> State:
    """Return what a lasting testbed holds. Raises LookupError if there is none of that name."""
    return _read(_find(name))


def execute(name: str, place: str, argv: list[str]) -> None:
    """Become a command in a pod, container or node of a lasting testbed. Does not return.

    Raises LookupError if there is no such testbed or place.
    """
    node, enter = _find_way(name, place, lambda location: location.entry)
    node.replace_self([*enter, *argv])


def kubeconfig(name: str, cluster: str) -> str:
    """Return a kubeconfig that works on this machine for a cluster of real Kubernetes.

    Raises LookupError if there is no such testbed or cluster.
    """
    box, known = _find(name), state(name)
    if cluster not in known.clusters:
        found = ", ".join(known.clusters) or "none; --orchestrator kubernetes makes some"
        raise LookupError(f"testbed {name!r} has no Kubernetes cluster {cluster!r} (clusters: {found})")
    where = known.clusters[cluster]
    text = box.node(where.master).run(["cat", where.kubeconfig]).stdout
    return at_server(text, f"https://{forward.LOOPBACK}:{where.port}")


def capture(name: str, place: str, interface: str, arguments: list[str]) -> None:
    """Become a tcpdump that shows what passes an interface of a pod, container or node. Does not return.

    Raises LookupError if there is no such testbed or place, or no tcpdump.
    """
    tcpdump = shutil.which("tcpdump", path=ENVIRONMENT["PATH"])
    if tcpdump is None:
        raise LookupError("tcpdump is not installed: apt-get install tcpdump")
    node, enter = _find_way(name, place, lambda location: location.network)
    if os.geteuid() == 0:
        node.replace_self([*enter, tcpdump, "-n", "-l", "-i", interface, *arguments])
    read = [*node.prefix, *enter, sys.executable, "-I", "-S", packets.__file__, interface]
    reader = subprocess.Popen(read, stdout=subprocess.PIPE)
    assert reader.stdout is not None
    os.dup2(reader.stdout.fileno(), 0)
    os.execv(tcpdump, [tcpdump, "-n", "-l", "-r", "-", *arguments])


def _find_way(name: str, place: str, chosen: Callable[[Location], Way]) -> tuple[Entrance, list[str]]:
    """Return a node, and the command that leads from there into the place."""
    box, known = _find(name), state(name)
    if place in known.nodes:
        return box.node(place), []
    if place not in known.places:
        raise LookupError(f"testbed {name!r} has no {place!r}: {', '.join([*known.places, *known.nodes])}")
    way = chosen(known.places[place])
    return box.node(way.node), way.command


def down(name: str) -> None:
    """Take a lasting testbed down. Raises LookupError if there is none of that name."""
    box = _find(name)
    with suppress(CommandError):  # it may be half up only
        in_parallel(lambda item: _empty(box, *item), list(_read(box).clusters.items()))
    box.stop()


def _empty(box: Sandbox, name: str, cluster: Cluster) -> None:
    """Remove the pods of a cluster."""
    Client(name, box.node(cluster.master), cluster.kubectl, cluster.kubeconfig).delete_pods()
    in_parallel(lambda worker: wait_until_empty(box.node(worker), name), cluster.workers)


def _find(name: str) -> Sandbox:
    box = Sandbox.find(name) if valid_name(name) else None
    if box is None:
        raise LookupError(f"no testbed {name!r} is up (testbeds: {', '.join(states()) or 'none'})")
    return box


def _read(box: Sandbox) -> State:
    return State.model_validate_json(box.switch.run(["cat", STATE]).stdout)


def _describe(testbed: Testbed, box: Sandbox) -> State:
    scenario = testbed.scenario
    places: dict[str, Location] = {}
    for kind, group in (("pod", testbed.pods), ("container", testbed.containers)):
        for name, place in group.items():
            pod = scenario.pods.get(name)
            places[name] = Location(
                kind=kind,
                node=scenario.node_of(name),
                address=place.address,
                entry=_way(place),
                network=_way(testbed.networks[name]),
                guarantee_bps=pod.guarantee if pod else None,
            )
    return State(
        scenario=scenario.name,
        enforcement=scenario.enforcement,
        nodes=list(scenario.nodes),
        places=places,
        clusters={client.cluster: _cluster(testbed, client, box) for client in testbed.clients},
    )


def _way(place: Place) -> Way:
    """Return how to get to a place from outside."""
    return Way(node=place.route.node, command=list(place.route.command))


def _cluster(testbed: Testbed, client: Client, box: Sandbox) -> Cluster:
    """Describe a cluster, and let this machine's programs reach it."""
    master, *workers = testbed.scenario.clusters[client.cluster].nodes
    address, port = control_plane.endpoint(testbed.addressing, client.cluster)
    forwarded = box.outside.run(
        ["/usr/bin/python3", "-I", "-S", str(forward.__file__), box.network(master), address, str(port)]
    )
    return Cluster(
        master=master,
        workers=workers,
        kubectl=client.kubectl,
        kubeconfig=client.kubeconfig,
        port=int(forwarded.stdout),
    )
