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
from testbed import clocks, places
from testbed.networks import underlay
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
    # What nodes that exist have, the scenario cannot know.
    found = testbed.scenario
    scenario = scenario.model_copy(update={"underlay": found.underlay, "nodes": found.nodes})
    recording.scenario_file.write_text(render_yaml(scenario), encoding="utf-8")
    try:
        with clock.measure("calibration"):
            display.stage("calibration: the same paths without shaping")
            calibrated = calibration.measure(testbed, scenario, recording.raw_directory)
        places.install(testbed)
        before = _unclassed(testbed, scenario)
        with clock.measure("traffic"):
            repetitions = _repeat(testbed, scenario, recording, display)
        display.stage("checking what the kernel has against what was configured")
        compared, interval = testbed.clocks(), scenario.measurement.interval
        faults = [
            *testbed.check(),
            *_unshaped(before, _unclassed(testbed, scenario)),
            *places.check(testbed),
            *clocks.faults(compared, interval),
        ]
        surroundings = environment.describe(testbed, compared) | {"shaping": places.counters(testbed)}
    finally:
        with clock.measure("down"):
            testbed.down()
    recording.environment_file.write_text(json.dumps(surroundings, indent=1) + "\n", encoding="utf-8")
    record = _record(
        recording.run_id,
        started_at,
        provider.partition(":")[0],
        orchestrator,
        clock,
        calibrated,
        repetitions,
        faults,
        clocks.notes(compared, interval),
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


def _shaped(testbed: Testbed, scenario: Scenario) -> dict[str, tuple[Place, str]]:
    """Return every interface that must have classes, with its place, by what people call it."""
    guaranteed = {name: pod for name, pod in scenario.pods.items() if pod.guarantee is not None}
    if scenario.enforcement == "pod":
        return {f"pod {name}": (testbed.place(name), "eth0") for name in guaranteed}
    if scenario.enforcement == "node":
        nodes = {pod.node for pod in guaranteed.values()}
        return {f"node {n}": (testbed.nodes[n], underlay.uplink(testbed.scenario, n)) for n in nodes}
    return {}


def _unclassed(testbed: Testbed, scenario: Scenario) -> dict[str, int | str]:
    """Return how many packets have left each of these interfaces past its classes, or what is wrong."""
    found: dict[str, int | str] = {}
    for name, (place, interface) in _shaped(testbed, scenario).items():
        try:
            count = counters.read(place, interface)
        except CommandError as error:
            found[name] = str(error)
            continue
        without = f"{interface} has no HTB, so nothing kept a guarantee"
        found[name] = without if count.class_bytes is None else count.direct_packets
    return found


def _unshaped(before: dict[str, int | str], after: dict[str, int | str]) -> list[str]:
    """Return a fault for every interface that packets left past its classes, or that had none."""
    faults = []
    for name, count in after.items():
        earlier = before[name]
        if isinstance(count, str) or isinstance(earlier, str):
            faults.append(f"{name}: {count if isinstance(count, str) else earlier}")
        elif count > earlier:
            faults.append(f"{name}: {count - earlier} packets passed by its classes")
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
    notes: list[str],
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
        notes=notes,
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
