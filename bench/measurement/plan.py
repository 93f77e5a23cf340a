"""Who sends what to whom, from where and by which commands: decided before anything is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bench.generators import Tool, exchanger_of, generator_of
from bench.observations import observation
from bench.observations.observation import Observation
from bench.observations.procfs import received_bytes, sent_bytes
from testbed.access.place import Place, PodPlace, in_parallel
from testbed.scenario import Requests, Traffic, Transfer
from testbed.scenario.addressing import Addressing
from testbed.testbed import Testbed

# Says which of its arguments, names or paths of programs, are none where it runs.
LACKING = 'for program; do command -v "$program" >/dev/null || echo "$program"; done'


class Counter(NamedTuple):
    """One of an interface's two counters, by what reads either of every interface from ``/proc/net/dev``."""

    interface: str
    read: Callable[[str], Mapping[str, int]]


@dataclass(frozen=True)
class Receiving:
    """A side of a transfer that listens."""

    end: str  # the pod, container or device
    place: PodPlace
    network: Place  # from where its network is looked at
    node: Place
    counter: Counter | None = None  # of its node: what comes to it; None where nobody counts that (macvlan)


@dataclass(frozen=True)
class Planned:
    """One transfer, with all that it takes to make it."""

    traffic: Transfer
    generator: Tool
    source: PodPlace
    source_network: Place  # from where the sender's network is looked at
    receivers: tuple[Receiving, ...]  # at least one; several of what is sent to a service
    address: str  # by which the sender finds them
    receiver: list[str]  # commands: of a side that listens,
    ready: list[str]  # of what says something in its network once it does,
    sender: list[str]  # of the side that sends
    told_to_end: bool = False  # the receivers end with their input: no sender is known to all of them


@dataclass(frozen=True)
class Plan:
    """Transfers that are made together."""

    transfers: Sequence[Planned]
    hosts: Sequence[Place]  # what nodes run on, if they do not see how busy it is
    way: Sequence[Place] = ()  # where packets pass queues, as far as it is within reach
    queues: float | None = None  # seconds between two readings of these; None: before and after only
    observations: Mapping[str, Observation] = field(default_factory=dict)  # that look on meanwhile, by name
    # What nodes' agents wrote down so far, by node, where there are any.
    rounds: Callable[[], Mapping[str, Sequence[str]]] | None = None


def plan(
    testbed: Testbed, transfers: Sequence[Transfer], interval: float, queues: float | None = None
) -> Plan:
    """Plan transfers of a testbed that is up, with samples of ``interval`` seconds.

    They must be transfers of the testbed's scenario, which gives each its port. Raises RuntimeError if an end
    of one lacks a program that its generator needs, or cannot be entered where that runs.
    """
    planned = [_planned(testbed, one, interval) for one in transfers]
    if found := _lacking(planned):
        raise RuntimeError("\n".join(found))
    return Plan(
        planned,
        testbed.provider.hosts,
        way(testbed, transfers),
        queues,
        observation.configured(testbed.scenario.settings),
        testbed.agents.rounds if testbed.agents else None,
    )


def way(testbed: Testbed, transfers: Sequence[Transfer]) -> list[Place]:
    """Return the senders, the nodes at both ends, and what is between these."""
    senders = [testbed.network(name) for name in dict.fromkeys(one.source for one in transfers)]
    paths = (path for one in transfers for path in testbed.scenario.paths_of(one))
    nodes = dict.fromkeys(node for path in paths for node in path)
    return [*senders, *(testbed.nodes[name] for name in nodes), *testbed.provider.hops]


def _planned(testbed: Testbed, transfer: Transfer, interval: float) -> Planned:
    addressing, address = testbed.addressing, testbed.address_for(transfer)
    tool, receiver, sender = _commands(addressing, transfer, address, interval)
    return Planned(
        traffic=transfer,
        generator=tool,
        source=place(testbed, transfer.source, tool),
        source_network=testbed.network(transfer.source),
        receivers=tuple(_receiving(testbed, end, tool) for end in addressing.scenario.receivers_of(transfer)),
        address=address,
        receiver=receiver,
        ready=tool.ready(addressing, transfer),
        sender=sender,
        told_to_end=isinstance(transfer, Requests) and transfer.destination in addressing.scenario.services,
    )


def _receiving(testbed: Testbed, end: str, tool: Tool) -> Receiving:
    if device := testbed.provider.devices.get(end):
        counter = Counter(device.place.interface, received_bytes)
        return Receiving(end, device.place, device.place, device.node, counter)
    node = testbed.nodes[testbed.scenario.node_of(end)]
    pod = place(testbed, end, tool)
    veth = pod.host_interface
    return Receiving(end, pod, testbed.network(end), node, Counter(veth, sent_bytes) if veth else None)


def _commands(
    addressing: Addressing, transfer: Transfer, address: str, interval: float
) -> tuple[Tool, list[str], list[str]]:
    """Return the tool of a transfer, and its commands at both ends: of the receiver, of the sender."""
    if isinstance(transfer, Requests):
        exchanger = exchanger_of(addressing.scenario, transfer)
        answering = exchanger.receiver(addressing, transfer)
        return exchanger, answering, exchanger.sender(addressing, transfer, address)
    assert isinstance(transfer, Traffic), f"nothing makes a transfer of kind {type(transfer).__name__}"
    generator = generator_of(addressing.scenario, transfer)
    return (
        generator,
        generator.receiver(addressing, transfer, interval),
        generator.sender(addressing, transfer, address, interval),
    )


def place(testbed: Testbed, end: str, tool: Tool) -> PodPlace:
    """Return where a tool runs: in a pod, or in its network. Raises RuntimeError where nobody gets there."""
    if tool.in_pods:
        return testbed.place(end)
    if end not in testbed.networks:
        text = f"generator {tool.name!r} runs in a pod's network, and its node's runtime does not say which"
        raise RuntimeError(f"{end}: {text} that is")
    return testbed.networks[end]


def _lacking(planned: Sequence[Planned]) -> list[str]:
    """Return, in words, every program that an end of a transfer lacks."""
    ends: dict[str, PodPlace] = {}
    needed: dict[str, dict[str, str]] = {}  # by end and program, the generator
    for one in planned:
        for end in (one.source, *(each.place for each in one.receivers)):
            ends[end.name] = end
            needed.setdefault(end.name, {}).update(dict.fromkeys(one.generator.programs, one.generator.name))

    def missing(end: PodPlace) -> list[str]:
        wanted = needed[end.name]
        lacking = end.run(["sh", "-c", LACKING, "sh", *wanted]).stdout.split("\n")
        return [
            f"{end.name}: no program {program}, which generator {wanted[program]!r} needs"
            for program in lacking
            if program
        ]

    return [text for end in in_parallel(missing, ends.values()) for text in end]
