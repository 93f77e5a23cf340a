"""Testbeds that stay up, several side by side by name: to look around in, to try things by hand.

What is needed to find one's way in such a testbed lies inside it, in its sandbox's /run: nothing is written
on the host, and the knowledge ends with what it is about.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress

from pydantic import BaseModel

from testbed import packets, places
from testbed.nodes import CommandError, InNamespace
from testbed.providers.netns import NetnsProvider
from testbed.providers.netns.sandbox import ENVIRONMENT, Claim, Entrance, Sandbox, valid_name
from testbed.scenario import Scenario
from testbed.testbed import Progress, Testbed

STATE = "/run/testbed/state.json"


class Location(BaseModel):
    """Where a pod or container runs."""

    kind: str  # pod or container
    node: str
    namespace: str  # path of its network namespace on the node
    address: str
    guarantee_bps: int | None = None


class State(BaseModel):
    """What one lasting testbed holds."""

    scenario: str
    enforcement: str
    nodes: list[str]
    places: dict[str, Location]


def up(scenario: Scenario, name: str, progress: Progress) -> State:
    """Bring up a lasting testbed. Raises LookupError for a bad or taken name, RuntimeError if it fails."""
    if not valid_name(name):
        raise LookupError(f"--name: {name!r} is no name for a testbed; use letters, digits and dashes")
    with Claim(name):
        if Sandbox.find(name):
            raise LookupError(f"testbed {name!r} is up already; take it down, or choose another --name")
        provider = NetnsProvider(scenario, name)
        testbed = Testbed(scenario, provider)
        testbed.up(progress)
        try:
            places.install(testbed)
            state = _describe(testbed)
            assert provider.sandbox is not None
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
    node, enter = _way(name, place)
    node.replace_self([*enter, *argv])


def capture(name: str, place: str, interface: str, arguments: list[str]) -> None:
    """Become a tcpdump that shows what passes an interface of a pod, container or node. Does not return.

    Raises LookupError if there is no such testbed or place, or no tcpdump.
    """
    tcpdump = shutil.which("tcpdump", path=ENVIRONMENT["PATH"])
    if tcpdump is None:
        raise LookupError("tcpdump is not installed: apt-get install tcpdump")
    node, enter = _way(name, place)
    if os.geteuid() == 0:
        node.replace_self([*enter, tcpdump, "-n", "-l", "-i", interface, *arguments])
    read = [*node.prefix, *enter, sys.executable, "-I", "-S", packets.__file__, interface]
    reader = subprocess.Popen(read, stdout=subprocess.PIPE)
    assert reader.stdout is not None
    os.dup2(reader.stdout.fileno(), 0)
    os.execv(tcpdump, [tcpdump, "-n", "-l", "-r", "-", *arguments])


def _way(name: str, place: str) -> tuple[Entrance, list[str]]:
    """Return the node of a place, and the command that leads from there into the place."""
    box, known = _find(name), state(name)
    if place in known.nodes:
        return box.node(place), []
    if place not in known.places:
        raise LookupError(f"testbed {name!r} has no {place!r}: {', '.join([*known.places, *known.nodes])}")
    location = known.places[place]
    return box.node(location.node), ["nsenter", f"--net={location.namespace}", "--"]


def down(name: str) -> None:
    """Take a lasting testbed down. Raises LookupError if there is none of that name."""
    _find(name).stop()


def _find(name: str) -> Sandbox:
    box = Sandbox.find(name) if valid_name(name) else None
    if box is None:
        raise LookupError(f"no testbed {name!r} is up (testbeds: {', '.join(states()) or 'none'})")
    return box


def _read(box: Sandbox) -> State:
    return State.model_validate_json(box.switch.run(["cat", STATE]).stdout)


def _describe(testbed: Testbed) -> State:
    scenario = testbed.scenario
    places: dict[str, Location] = {}
    for kind, group in (("pod", testbed.pods), ("container", testbed.containers)):
        for name, place in group.items():
            assert isinstance(place, InNamespace)
            pod = scenario.pods.get(name)
            places[name] = Location(
                kind=kind,
                node=place.node.name,
                namespace=place.namespace,
                address=place.address,
                guarantee_bps=pod.guarantee if pod else None,
            )
    return State(
        scenario=scenario.name,
        enforcement=scenario.enforcement,
        nodes=list(scenario.nodes),
        places=places,
    )
