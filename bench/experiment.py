"""One run of a scenario: up, calibrate, traffic, check, down; what it leaves is a recording."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench import calibration, counters, environment, traffic
from bench.live import Display
from bench.recording import Calibration, Recording, Repetition, RunRecord, Seconds
from testbed import places
from testbed.nodes import CommandError, Place
from testbed.scenario import Scenario, render_yaml
from testbed.testbed import Testbed, assemble


def run(
    scenario: Scenario, *, provider: str, orchestrator: str, reports: Path, display: Display
) -> Recording:
    """Run a scenario and return its recording, which still is marked as unfinished: it is not analysed yet.

    Raises RuntimeError when the testbed cannot be brought up, LookupError for a part there is not.
    """
    testbed = assemble(calibration.with_probes(scenario), provider, orchestrator)
    recording = Recording.begin(reports, scenario)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    recording.scenario_file.write_text(render_yaml(scenario), encoding="utf-8")
    clock = _Clock()
    with clock.measure("up"):
        testbed.up(display.stage)
    try:
        with clock.measure("calibration"):
            display.stage("calibration: the same paths without shaping")
            calibrated = calibration.measure(testbed, scenario, recording.raw_directory)
        places.install(testbed)
        with clock.measure("traffic"):
            repetitions = _repeat(testbed, scenario, recording, display)
        display.stage("checking what the kernel has against what was configured")
        faults = [*testbed.check(), *_unshaped(testbed, scenario), *places.check(testbed)]
        surroundings = environment.describe(testbed) | {"shaping": places.counters(testbed)}
    finally:
        with clock.measure("down"):
            testbed.down()
    recording.environment_file.write_text(json.dumps(surroundings, indent=1) + "\n", encoding="utf-8")
    record = _record(
        recording.run_id, started_at, provider, orchestrator, clock, calibrated, repetitions, faults
    )
    recording.run_file.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return recording


def _repeat(testbed: Testbed, scenario: Scenario, recording: Recording, display: Display) -> list[Repetition]:
    repetitions = []
    for number in range(scenario.measurement.repetitions):
        with display.traffic(scenario, number) as on_rates:
            repetitions.append(
                traffic.run(
                    testbed,
                    scenario.traffic,
                    scenario.measurement.interval,
                    recording.repetition_directory(number),
                    on_rates,
                )
            )
    return repetitions


def _unshaped(testbed: Testbed, scenario: Scenario) -> list[str]:
    """Return a fault for every interface with classes that packets left without passing one of them."""
    guaranteed = {name: pod for name, pod in scenario.pods.items() if pod.guarantee is not None}
    shaped: dict[str, Place] = {}
    if scenario.enforcement == "pod":
        shaped = {f"pod {name}": testbed.place(name) for name in guaranteed}
    elif scenario.enforcement == "node":
        shaped = {f"node {pod.node}": testbed.nodes[pod.node] for pod in guaranteed.values()}
    faults = []
    for name, place in shaped.items():
        try:
            count = counters.read(place)
        except CommandError as error:
            faults.append(f"{name}: {error}")
            continue
        if count.class_bytes is None:
            faults.append(f"{name}: eth0 has no HTB, so nothing kept a guarantee")
        elif count.direct_packets:
            faults.append(f"{name}: {count.direct_packets} packets passed by its classes")
    return faults


def _record(
    run_id: str,
    started_at: str,
    provider: str,
    orchestrator: str,
    clock: _Clock,
    calibrated: Calibration | None,
    repetitions: list[Repetition],
    faults: list[str],
) -> RunRecord:
    return RunRecord(
        run_id=run_id,
        started_at=started_at,
        provider=provider,
        orchestrator=orchestrator,
        seconds=Seconds(**clock.seconds),
        calibration=calibrated,
        repetitions=repetitions,
        faults=faults,
    )


class _Clock:
    """How long the named parts of a run took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[part] = time.monotonic() - begin
