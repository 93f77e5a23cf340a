"""The cases: zones with processors, endpoints and askers, and what is known of them; pure.

Three zones, each with a trunk of its own to the core. A zone has one node, or several, and a pod that asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from edge.services import selection
from edge.services.hints import AUTO, MODES, OFF, Result
from testbed.runtime import services
from testbed.runtime.services import Told
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing

CLUSTER, SERVICE, MASTER = "a", "web", "master"
NORTH, SOUTH, WEST = ZONES = ("north", "south", "west")
DELAY_S = 0.005  # of a trunk, one way: 20 ms from zone to zone and back
TRUNK_BPS = 100_000_000
REQUESTS_PER_S = 300.0  # of all zones together
REQUEST_BYTES, ANSWER_BYTES = 64, 1000
# A connection for each: its handshake takes a round trip, and the request another.
ROUND_TRIPS = 2

Event = Literal["restart", "switch"]
Shares = Mapping[str, float]  # of all requests, by zone


class Situation(NamedTuple):
    """A case. What is said of zones is in their order."""

    name: str
    about: str  # as people are told it
    endpoints: tuple[int, ...]
    load: tuple[float, ...] = (1, 1, 1)  # how much each asks, of all
    cpus: tuple[float | None, ...] = (1, 1, 1)  # of each of a zone's nodes; None: they do not say
    nodes: int = 1  # of each zone
    delays: tuple[float, ...] = (DELAY_S,) * 3  # of the trunks, one way, seconds
    told: Told = Told()
    modes: tuple[str, ...] = MODES
    event: Event | None = None  # what happens meanwhile

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones that it has."""
        return ZONES[: len(self.endpoints)]

    @property
    def shares(self) -> Shares:
        """Which share of all requests each zone sends."""
        total = sum(self.load)
        return {zone: load / total for zone, load in zip(self.zones, self.load, strict=False)}


def node(zone: str, number: int) -> str:
    """Return the name of one of a zone's nodes, from 1."""
    return f"{zone}-{number}"


def asker(zone: str) -> str:
    """Return the name of the pod that asks, of a zone."""
    return f"ask-{zone}"


def endpoint(zone: str, number: int) -> str:
    """Return the name of one of a zone's endpoints, from 1."""
    return f"web-{zone}-{number}"


def zone_of(pod: str) -> str:
    """Return the zone of an endpoint."""
    return pod.split("-")[1]


_THIRDS = (2, 2, 2)
# In the north two of three nodes, and the endpoints there, are not ready; who asks there asks on.
_MOST_DOWN = Told(
    down=frozenset({node(NORTH, 2), node(NORTH, 3)}),
    unready=frozenset({endpoint(NORTH, 2), endpoint(NORTH, 3)}),
)
_TWO_READY = Told(unready=frozenset(endpoint(zone, 1) for zone in ZONES) | {endpoint(WEST, 2)})

SITUATIONS = (
    Situation("in-proportion", "each zone asks as much as the others", _THIRDS),
    Situation("one-zone", "one zone alone asks", _THIRDS, load=(1, 0, 0)),
    Situation("restart", "a rolling restart, one pod after the other", _THIRDS, event="restart"),
    Situation("switched", "hints go on and off twice a second", _THIRDS, modes=(AUTO,), event="switch"),
    Situation(
        "two-ready", "two endpoints are ready, for three zones", _THIRDS, told=_TWO_READY, modes=(AUTO,)
    ),
    Situation(
        "no-hint-yet",
        "one endpoint has no hint yet",
        _THIRDS,
        told=Told(unhinted=frozenset({endpoint(NORTH, 1)})),
        modes=(AUTO,),
    ),
    Situation("no-cpu", "a node does not say its processors", _THIRDS, cpus=(1, 1, None), modes=(AUTO,)),
    Situation("4-4-3", "4, 4 and 3 endpoints, three equal zones", (4, 4, 3)),
    Situation("2-to-1", "twice the processors, as many endpoints", (3, 3), load=(2, 1), cpus=(2, 1)),
    Situation("1-to-4", "a fifth of the processors, no endpoint there", (0, 7), load=(1, 4), cpus=(1, 4)),
    Situation("1-to-8", "a ninth of the processors, no endpoint there", (0, 4), load=(1, 8), cpus=(1, 8)),
    Situation("most-down", "two of a zone's three nodes are not ready", (3, 3, 3), nodes=3, told=_MOST_DOWN),
    Situation("tainted", "pods are kept from a zone, in which nobody asks", (3, 3, 0), load=(1, 1, 0)),
    Situation(
        "no-endpoint",
        "one zone has no endpoint, and asks",
        (3, 3, 0),
        delays=(DELAY_S, 3 * DELAY_S, DELAY_S),
    ),
)
NAMES = tuple(one.name for one in SITUATIONS)
BY_NAME: Mapping[str, Situation] = MappingProxyType({one.name: one for one in SITUATIONS})


def scenario(situation: Situation, scale: float = 1.0) -> Scenario:
    """Return the scenario of a case, in which every zone may ask; ``scale`` is of the trunks' rates.

    How much is asked, and for how long, is no part of it.
    """
    zones = situation.zones
    cpus = dict(zip(zones, situation.cpus, strict=False))
    nodes = {node(zone, number): zone for zone in zones for number in range(1, situation.nodes + 1)}
    pods = {asker(zone): {"cluster": CLUSTER, "node": node(zone, 1)} for zone in zones}
    for zone, count in zip(zones, situation.endpoints, strict=True):
        for number in range(count):
            place = node(zone, number % situation.nodes + 1)
            pods[endpoint(zone, number + 1)] = {"cluster": CLUSTER, "node": place}
    read = Scenario.model_validate(
        {
            "name": "services",
            "zones": {
                zone: {"rate": TRUNK_BPS, "delay": delay}
                for zone, delay in zip(zones, situation.delays, strict=False)
            },
            "nodes": {
                MASTER: {"zone": NORTH},
                **{name: {"zone": zone, "cpus": cpus[zone]} for name, zone in nodes.items()},
            },
            "clusters": {CLUSTER: {"master": MASTER, "workers": list(nodes), "pod_cidr": "172.16.0.0/16"}},
            "enforcement": "none",
            "pods": pods,
            "services": {
                SERVICE: {"cluster": CLUSTER, "pods": [one for one in pods if one.startswith("web-")]}
            },
            "requests": [
                {
                    "name": asker(zone),
                    "from": asker(zone),
                    "to": SERVICE,
                    "rate": REQUESTS_PER_S,
                    "size": REQUEST_BYTES,
                    "answer": ANSWER_BYTES,
                    "connections": "new",
                    "duration": 1,
                }
                for zone in zones
            ],
        }
    )
    return read.scaled(scale)


def hinted(addressing: Addressing, pods: Mapping[str, str], told: Told) -> Result:
    """Return the service's endpoints with their hints; ``pods`` are the addresses of the scenario's."""
    return services.hinted(addressing, SERVICE, pods, told)


def led_to(addressing: Addressing, pods: Mapping[str, str], told: Told) -> dict[str, list[str]]:
    """Return the endpoints that each node's proxy uses, by their names; see ``hinted``."""
    found = hinted(addressing, pods, told).slices[0].endpoints
    names = {address: name for name, address in pods.items()}
    nodes = addressing.scenario.nodes
    asks = told.modes.get(SERVICE, OFF) != OFF
    return {
        name: [
            names[one.address]
            for one in selection.choose(found, nodes[name].zone or "", asks, name).endpoints
        ]
        for name in addressing.members(CLUSTER)
    }


def expected(shares: Shares, used: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Return which share of all requests each endpoint gets, where each zone uses these, each as often."""
    found: dict[str, float] = {}
    for zone, share in shares.items():
        own = list(used[zone])
        for pod in own:
            found[pod] = found.get(pod, 0.0) + share / len(own)
    return found
