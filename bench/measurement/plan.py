"""Who sends what to whom, from where and by which commands: decided before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.generators import Generator, generator_of
from testbed.access.place import Place, in_parallel
from testbed.access.pods import PodPlace
from testbed.scenario import Traffic
from testbed.testbed import Testbed

# Says which of its arguments, names or paths of programs, are none where it runs.
LACKING = 'for program; do command -v "$program" >/dev/null || echo "$program"; done'


@dataclass(frozen=True)
class Planned:
    """One transfer, with all that it takes to make it."""

    traffic: Traffic
    generator: Generator
    source: PodPlace
    destination: PodPlace
    node: Place  # of the destination
    receiver: list[str]  # commands: of the side that listens,
    ready: list[str]  # of what says something there once it does,
    sender: list[str]  # of the side that sends


@dataclass(frozen=True)
class Plan:
    """Transfers that are made together."""

    transfers: Sequence[Planned]
    hosts: Sequence[Place]  # what nodes run on, if they do not see how busy it is
    way: Sequence[Place] = ()  # where packets pass queues, as far as it is within reach


def plan(testbed: Testbed, transfers: Sequence[Traffic], interval: float) -> Plan:
    """Plan transfers of a testbed that is up, with samples of ``interval`` seconds.

    They must be transfers of the testbed's scenario, which gives each its port. Raises RuntimeError if an end
    of one lacks a program that its generator needs.
    """
    planned = [_planned(testbed, one, interval) for one in transfers]
    if found := _lacking(planned):
        raise RuntimeError("\n".join(found))
    return Plan(planned, testbed.provider.hosts, _way(testbed, transfers))


def _way(testbed: Testbed, transfers: Sequence[Traffic]) -> list[Place]:
    """Return the senders, the nodes at both ends, and what is between these."""
    node_of = testbed.addressing.scenario.node_of
    senders = [testbed.place(name) for name in dict.fromkeys(one.source for one in transfers)]
    nodes = dict.fromkeys(node_of(end) for one in transfers for end in (one.source, one.destination))
    return [*senders, *(testbed.nodes[name] for name in nodes), *testbed.provider.hops]


def _planned(testbed: Testbed, traffic: Traffic, interval: float) -> Planned:
    addressing, generator = testbed.addressing, generator_of(traffic)
    return Planned(
        traffic=traffic,
        generator=generator,
        source=testbed.place(traffic.source),
        destination=testbed.place(traffic.destination),
        node=testbed.nodes[addressing.scenario.node_of(traffic.destination)],
        receiver=generator.receiver(addressing, traffic, interval),
        ready=generator.ready(addressing, traffic),
        sender=generator.sender(addressing, traffic, testbed.address_for(traffic), interval),
    )


def _lacking(planned: Sequence[Planned]) -> list[str]:
    """Return, in words, every program that an end of a transfer lacks."""
    ends: dict[str, PodPlace] = {}
    needed: dict[str, dict[str, str]] = {}  # by end and program, the generator
    for one in planned:
        for end in (one.source, one.destination):
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

    return [words for end in in_parallel(missing, ends.values()) for words in end]
