"""What the machine can carry: the guaranteed flows' paths without any shaping, all at once, for a second.

A promise near this limit could be missed through the machine's fault alone. The probes are pods of their own,
without a guarantee, on the same nodes and in the same clusters: same veth, bridge, VXLAN and underlay.
"""

from __future__ import annotations

import time
from pathlib import Path

from bench.generators.iperf3 import read_records
from bench.generators.parsing import RawDataError
from bench.measurement import transfers
from bench.recording.records import Calibration
from testbed.scenario import Pod, Scenario, Traffic
from testbed.testbed import Testbed

SECONDS = 1
DIRECTORY = "calibration"


def with_probes(scenario: Scenario) -> Scenario:
    """Return the scenario with the probes' pods and, after its own traffic, the probes' transfers.

    There is one transfer for each guaranteed flow, in their order. This is what a run brings up.
    """
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

    transfers = [
        Traffic(
            name=f"calibration {number}",
            source=probe(flow.source, "sender"),
            destination=probe(flow.destination, "receiver"),
            duration=SECONDS,
        )
        for number, flow in enumerate(_guaranteed(scenario), start=1)
    ]
    return scenario.model_copy(update={"pods": pods, "disturbances": [*scenario.disturbances, *transfers]})


def measure(testbed: Testbed, scenario: Scenario, raw: Path) -> Calibration | None:
    """Run the probes' transfers on a testbed of ``with_probes(scenario)``; None if nothing is promised.

    iperf3's output lands in a directory of its own under ``raw``.
    """
    probing = testbed.scenario.traffic[len(scenario.traffic) :]
    if not probing:
        return None
    begin = time.monotonic()
    done = transfers.run(testbed, probing, float(SECONDS), raw / DIRECTORY, lambda _seconds, _rates: None)
    rates: dict[str, float] = {}
    errors: list[str] = []
    for flow, (label, transfer) in zip(_guaranteed(scenario), done.transfers.items(), strict=True):
        try:
            if transfer.error:
                raise RawDataError(transfer.error)
            rates[flow.label] = _received(raw / DIRECTORY / f"{transfer.slug}.receiver.json")
        except RawDataError as error:
            errors.append(f"{label}: {error}")
    return Calibration(
        seconds=time.monotonic() - begin, bits_per_second=rates, error="; ".join(errors) or None
    )


def _guaranteed(scenario: Scenario) -> list[Traffic]:
    return [flow for flow in scenario.flows if scenario.guarantee_of(flow)]


def _received(output: Path) -> float:
    """Return a receiver's mean rate, payload bits per second. Raises RawDataError."""
    records = read_records(output)
    return sum(record.bytes for record in records) * 8 / records[-1].end_s
