"""What the machine can carry: the guaranteed flows' paths without any shaping, all at once, for a second.

Longer between zones: TCP doubles what it sends once in a round trip, finds the limit by losing packets, and
is then some tens of round trips short of it.

A promise near this limit could be missed through the machine's fault alone. The probes are pods of their own,
without a guarantee, on the same nodes and in the same clusters: same veth, bridge, VXLAN and underlay.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from bench.generators import Generator, RawDataError, generator_of, guaranteed
from bench.measurement import transfers
from bench.measurement.plan import plan
from bench.recording.records import Calibration, Transfer
from testbed.scenario import Pod, Scenario, Traffic, links
from testbed.testbed import Testbed

SECONDS = 1
MORE_ROUND_TRIPS = 100  # the time of the longest, where trunks take time
# Before the traffic and after it, in the recording's raw files.
BEFORE, AFTER = "calibration", "calibration-after"


@dataclass(frozen=True)
class Probed:
    """A scenario with its probes."""

    scenario: Scenario  # what a run brings up: with the probes' pods and transfers, after its own
    probes: Mapping[str, Traffic]  # by the label of the guaranteed flow whose path it takes


def with_probes(scenario: Scenario) -> Probed:
    """Return the scenario with probes of guaranteed flows. Raises LookupError for an unknown generator."""
    pods = dict(scenario.pods)
    names: dict[tuple[str, str, str], str] = {}

    def probe(end: str, role: str) -> str:
        pod = scenario.pods[end]
        key = (pod.cluster, pod.node, role)
        if key not in names:
            free = (name for number in range(1, 10_000) if (name := f"probe-{number}") not in pods)
            names[key] = next(free)
            pods[names[key]] = Pod(cluster=pod.cluster, node=pod.node)
        return names[key]

    probes = {
        flow.label: Traffic(
            name=f"calibration {number}",
            source=probe(flow.source, "sender"),
            destination=probe(flow.destination, "receiver"),
            duration=seconds_for(scenario),
            generator=flow.generator,
        )
        for number, flow in enumerate(guaranteed(scenario), start=1)
    }
    disturbances = [*scenario.disturbances, *probes.values()]
    return Probed(scenario.model_copy(update={"pods": pods, "disturbances": disturbances}), probes)


def seconds_for(scenario: Scenario) -> int:
    """Return how long the paths of a scenario are used."""
    return SECONDS + ceil(MORE_ROUND_TRIPS * 2 * links.longest_delay(scenario))


def measure(testbed: Testbed, probes: Mapping[str, Traffic], directory: Path) -> Calibration | None:
    """Run the transfers of a scenario's probes on a testbed that has them; None if there are none.

    Their output lands in ``directory``.
    """
    if not probes:
        return None
    begin = time.monotonic()
    planned = plan(testbed, list(probes.values()), float(seconds_for(testbed.scenario)))
    done = transfers.run(planned, directory, lambda _seconds, _rates: None)
    rates: dict[str, float] = {}
    errors: list[str] = []
    for flow, probe in probes.items():
        label = probe.label
        transfer = done.transfers[label]
        try:
            if transfer.error:
                raise RawDataError(transfer.error)
            rates[flow] = _received(directory, transfer, generator_of(probe))
        except RawDataError as error:
            errors.append(f"{label}: {error}")
    return Calibration(
        seconds=time.monotonic() - begin, bits_per_second=rates, error="; ".join(errors) or None
    )


def _received(directory: Path, transfer: Transfer, generator: Generator) -> float:
    """Return a receiver's mean rate, payload bits per second. Raises RawDataError."""
    records = generator.read_records(directory / f"{transfer.slug}.receiver.{generator.suffix}")
    return sum(record.bytes for record in records) * 8 / records[-1].end_s
