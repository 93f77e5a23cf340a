"""What the machine can carry: the guaranteed flows' paths without any shaping, all at once, for a second.

Before the traffic, what disturbs it is on for the rest of that second, which tells whether the machine can
carry both (``foresight``). All takes longer between zones: TCP doubles what it sends once in a round trip,
finds the limit by losing packets, and is then some tens of round trips short of it.

A promise near this limit could be missed through the machine's fault alone. The probes are pods of their own,
without a guarantee, on the same nodes and in the same clusters: same veth, bridge, VXLAN and underlay.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.generators import Generator, RawDataError, Record, generator_of, guaranteed, promised
from bench.measurement import foresight, transfers
from bench.measurement.foresight import Pauses
from bench.measurement.plan import plan
from bench.recording.records import Calibration, Foreseen, Repetition, Transfer
from testbed.scenario import Pod, Scenario, Traffic, links
from testbed.testbed import Testbed

SECONDS = 1
ALONE_SECONDS = 0.4  # of them without what disturbs
SETTLING_SECONDS = 0.1  # a sample: until what has just begun takes what it can
INTERVAL_SECONDS = 0.1  # of the samples, iperf3's shortest
MORE_ROUND_TRIPS = 100  # the time of the longest, where trunks take time
RECEIVE_BUFFER = "/proc/sys/net/ipv4/tcp_rmem"
# Before the traffic and after it, in the recording's raw files.
BEFORE, AFTER = "calibration", "calibration-after"


@dataclass(frozen=True)
class Probed:
    """A scenario with its probes."""

    scenario: Scenario  # what a run brings up: with the probes' pods and transfers, after its own
    probes: Mapping[str, Traffic]  # by the label of the guaranteed flow whose path it takes
    others: Sequence[Traffic] = ()  # what disturbs them: the most that is without a guarantee at one time


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

    flows = guaranteed(scenario)
    disturbing = _disturbing(scenario, flows) if flows else []
    seconds = seconds_for(scenario, beside=bool(disturbing))
    probes = {
        flow.label: Traffic(
            name=f"calibration {number}",
            source=probe(flow.source, "sender"),
            destination=probe(flow.destination, "receiver"),
            duration=seconds,
            generator=flow.generator,
        )
        for number, flow in enumerate(flows, start=1)
    }
    others = [
        other.model_copy(
            update={
                "name": f"calibration beside {number}",
                "start": alone_for(scenario),
                "duration": seconds,
            }
        )
        for number, other in enumerate(disturbing, start=1)
    ]
    disturbances = [*scenario.disturbances, *probes.values(), *others]
    grown = scenario.model_copy(update={"pods": pods, "disturbances": disturbances})
    return Probed(grown, probes, others)


def _disturbing(scenario: Scenario, flows: Sequence[Traffic]) -> list[Traffic]:
    """Return the traffic without a guarantee of the moment that has most streams of it."""
    others = [one for one in scenario.traffic if one not in flows]
    together = [[one for one in others if one.start <= begun.start < one.end] for begun in others]
    return max(together, key=_streams, default=[])


def _streams(traffic: Sequence[Traffic]) -> int:
    return sum(one.parallel for one in traffic)


def seconds_for(scenario: Scenario, beside: bool = False) -> int:
    """Return how long the paths of a scenario are used, at last with what is ``beside`` them, if it is."""
    settling = _settling(scenario)
    return SECONDS + settling + (SECONDS if settling and beside else 0)


def alone_for(scenario: Scenario) -> float:
    """Return how long the paths are used before anything disturbs them, seconds."""
    settling = _settling(scenario)
    return float(SECONDS + settling) if settling else ALONE_SECONDS


def _settling(scenario: Scenario) -> int:
    """Return how many seconds TCP takes to find out what trunks that take time carry."""
    return math.ceil(MORE_ROUND_TRIPS * 2 * links.longest_delay(scenario))


def measure(testbed: Testbed, probed: Probed, scenario: Scenario, directory: Path) -> Calibration | None:
    """Use the paths of a scenario's flows, alone; None if there are none. Output lands in ``directory``.

    ``testbed`` is of ``probed.scenario``, which is ``scenario`` with its probes.
    """
    return _measure(testbed, probed, scenario, directory, [])


def foresee(testbed: Testbed, probed: Probed, scenario: Scenario, directory: Path) -> Calibration | None:
    """Use them alone at first, then beside what disturbs, and foresee whether the machine can tell."""
    return _measure(testbed, probed, scenario, directory, probed.others, foreseeing=True)


def _measure(
    testbed: Testbed,
    probed: Probed,
    scenario: Scenario,
    directory: Path,
    others: Sequence[Traffic],
    foreseeing: bool = False,
) -> Calibration | None:
    if not probed.probes:
        return None
    begin = time.monotonic()
    planned = plan(testbed, [*probed.probes.values(), *others], INTERVAL_SECONDS)
    done = transfers.run(
        planned, directory, lambda _seconds, _rates: None, beside={other.label for other in others}
    )
    records: dict[str, list[Record]] = {}
    errors: list[str] = []
    for flow, probe in probed.probes.items():
        transfer = done.transfers[probe.label]
        try:
            if transfer.error:
                raise RawDataError(transfer.error)
            records[flow] = _received(directory, transfer, generator_of(scenario, probe))
        except RawDataError as error:
            errors.append(f"{probe.label}: {error}")
    failed = {one.label: done.transfers[one.label].error for one in others}
    errors += [f"{label}: {words}" for label, words in failed.items() if words]
    alone = alone_for(scenario) if others else math.inf
    return Calibration(
        seconds=time.monotonic() - begin,
        bits_per_second={flow: _rate(of, alone) for flow, of in records.items()},
        error="; ".join(errors) or None,
        foreseen=_foreseen(testbed, scenario, probed, records, done) if foreseeing and not errors else None,
    )


def _received(directory: Path, transfer: Transfer, generator: Generator) -> list[Record]:
    """Return a receiver's records. Raises RawDataError."""
    return generator.read_records(directory / f"{transfer.slug}.receiver.{generator.suffix}")


def _rate(records: Sequence[Record], until: float) -> float:
    """Return the mean rate of the records that end by a moment, payload bits per second."""
    used = [record for record in records if record.end_s <= until + SETTLING_SECONDS / 2] or records[:1]
    return sum(record.bytes for record in used) * 8 / used[-1].end_s


def _foreseen(
    testbed: Testbed,
    scenario: Scenario,
    probed: Probed,
    records: Mapping[str, Sequence[Record]],
    done: Repetition,
) -> list[Foreseen]:
    begun = alone_for(scenario) if probed.others else 0.0
    alone = math.fsum(_rate(of, begun or math.inf) for of in records.values())
    settled = begun + SETTLING_SECONDS * 1.5 + (_settling(scenario) if begun else 0)
    samples = [
        {flow: record.bits_per_second for flow, record in zip(records, row, strict=True)}
        for row in zip(*records.values(), strict=False)
        if row[0].end_s > settled and row[0].end_s - row[0].start_s > INTERVAL_SECONDS / 2
    ]
    return foresight.foresee(
        promised.goodputs(scenario),
        samples,
        _streams(probed.others),
        filled=_filled(scenario, probed, samples, done),
        fits=lambda scale: promised.fit(scale * promised.most(scenario), scenario, alone),
        pauses=_pauses(testbed, probed, done, begun, seconds_for(scenario, beside=bool(probed.others))),
    )


def _pauses(testbed: Testbed, probed: Probed, done: Repetition, since: float, until: float) -> Pauses:
    """Return how the harness's machine stood still between two moments."""
    lengths = [
        end - start
        for stall in done.stalls
        if (end := min(stall.end_s, until)) > (start := max(stall.start_s, since))
    ]
    share = sum(lengths) / (until - since) / len(os.sched_getaffinity(0))
    if share < foresight.STILL:
        return foresight.NONE
    probe = next(iter(probed.probes.values()))
    # Lowest, usual and greatest size, bytes: tcp(7).
    said = testbed.network(probe.destination).run(["cat", RECEIVE_BUFFER]).stdout
    return Pauses(share, sum(lengths) / len(lengths), int(said.split()[-1]))


def _filled(
    scenario: Scenario, probed: Probed, samples: Sequence[Mapping[str, float]], done: Repetition
) -> bool:
    """Tell whether flows and disturbances together filled the links, which are part of the experiment."""
    seconds = seconds_for(scenario, beside=bool(probed.others)) - alone_for(scenario)
    sent = sum(done.transfers[one.label].sender_interface_bytes or 0 for one in probed.others) * 8 / seconds
    carried = sum(sum(sample.values()) for sample in samples) / max(1, len(samples))
    return promised.filled(scenario, [*guaranteed(scenario), *probed.others], carried + sent)
