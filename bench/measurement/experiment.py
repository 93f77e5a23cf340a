"""One run of a scenario: up, calibrate, traffic, check, down; what it leaves is a recording.

Each repetition is complete in itself when it ends. A run that was interrupted can therefore be gone on with:
the testbed is brought up again, and the repetitions that are missing are made.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.measurement import calibration, environment, plan, transfers
from bench.measurement.calibration import Probed
from bench.measurement.display import Display
from bench.measurement.plan import Plan
from bench.observations import observation
from bench.observations.observation import Observed, Scene
from bench.recording import atomic, directory, records
from bench.recording.directory import UNFINISHED, Recording
from bench.recording.records import (
    Beginning,
    Calibration,
    CountedLink,
    Finished,
    Foreseen,
    Request,
    RunRecord,
    Seconds,
    slug,
)
from testbed.access import locks
from testbed.assembly import assemble, on_clusters
from testbed.scenario import Scenario, render_yaml, service_rules
from testbed.testbed import Testbed

CALIBRATING = "calibration: the same paths without shaping, and beside what disturbs"


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
            self.seconds[part] = self.seconds.get(part, 0.0) + time.monotonic() - begin


@dataclass(frozen=True)
class _Begun:
    """A run that was begun, or is gone on with."""

    scenario: Scenario
    beginning: Beginning
    testbed: Testbed  # not yet up
    probed: Probed
    clock: _Clock = field(default_factory=_Clock)


class _Measured(NamedTuple):
    """What is known of a run besides its repetitions."""

    notes: list[str]
    surroundings: environment.Environment
    calibrated: Calibration | None  # after the traffic


def run(
    request: Request,
    scenario: Scenario,
    display: Display,
    study: Path | None = None,
    until: int | None = None,
    retry_of: str | None = None,
) -> Recording:
    """Run what was asked for, which reads as ``scenario``, and return its recording.

    It still is marked as unfinished: it is not analysed yet. A case of a study is recorded in the study's
    directory. With ``until`` it is left when it has so many repetitions, to be gone on with later.
    ``retry_of`` is the run that led to this one, if one did. Raises RuntimeError when the testbed cannot be
    brought up, LookupError for an unknown part.
    """
    begun = _begin(scenario, _beginning(request, retry_of))
    recording = Recording.begin(study or Path(request.reports), scenario)
    recording.raw_directory.mkdir()
    atomic.write(recording.scenario_file, render_yaml(scenario).encode())
    atomic.write_model(recording.request_file, request)
    atomic.write_model(recording.beginning_file, begun.beginning)
    return _go_on(begun, recording, display, study is None, until)


def check(request: Request, scenario: Scenario) -> None:
    """Raise LookupError for a part that is asked for and unknown. Nothing is started."""
    _begin(scenario, _beginning(request))


def resume(
    recording: Recording, display: Display, advice: bool = True, until: int | None = None
) -> Recording:
    """Go on with a run that was interrupted; see ``run``. With ``advice``, say how to go on again.

    Raises LookupError too for a recording that is complete or that somebody is working on; StoredError and
    ScenarioError for one that is not as a run leaves it.
    """
    if not recording.directory.name.endswith(UNFINISHED):
        raise LookupError(f"--resume: {recording.directory} is complete")
    beginning, scenario = recording.beginning(), recording.asked_scenario()
    recording.finished()  # nothing is started if one of them cannot be read
    if recording.run_file.exists():  # all that it lacks is its analysis
        return recording
    return _go_on(_begin(scenario, beginning), recording, display, advice, until)


def foresee(request: Request, scenario: Scenario, display: Display) -> list[Foreseen]:
    """Calibrate without traffic, and return at which scales this machine can tell; nothing is recorded.

    Raises RuntimeError when the testbed cannot be brought up, LookupError for an unknown part.
    """
    begun = _begin(scenario, _beginning(request))
    begun.testbed.up(display.stage)
    try:
        with TemporaryDirectory() as directory:
            display.stage(CALIBRATING)
            raw = Path(directory) / "raw"
            planned = plan.plan(begun.testbed, begun.probed.traffic, calibration.INTERVAL_SECONDS)
            calibrated = calibration.measure(planned, begun.probed, raw, foreseeing=True)
    finally:
        begun.testbed.down()
    return (calibrated.foreseen if calibrated else None) or []


def _beginning(request: Request, retry_of: str | None = None) -> Beginning:
    """Return how the parts that are asked for are named, and when."""
    provider, orchestrator = request.provider, request.orchestrator
    if request.kubeconfigs:
        provider, orchestrator = on_clusters(request.kubeconfigs)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Beginning(started_at=now, provider=provider, orchestrator=orchestrator, retry_of=retry_of)


def _begin(scenario: Scenario, beginning: Beginning) -> _Begun:
    probed = calibration.with_probes(scenario)
    testbed = assemble(probed.scenario, beginning.provider, beginning.orchestrator)
    return _Begun(scenario, beginning, testbed, probed)


def _go_on(
    begun: _Begun, recording: Recording, display: Display, advice: bool, until: int | None
) -> Recording:
    """Make the repetitions that a recording lacks, and complete it; with ``until`` not all at once."""
    with locks.working_on(recording.directory, recording.beginning_file) as locked:
        if not locked:
            display.stage(f"{recording.directory}: {locks.WITHOUT}")
        try:
            measured = _measure(begun, recording, display, until)
            if measured:
                atomic.write_json(recording.environment_file, measured.surroundings)
                atomic.write_model(recording.run_file, _record(recording, begun, measured))
        except BaseException:
            done, total = len(recording.finished()), begun.scenario.measurement.repetitions
            if done and advice:
                display.stage(
                    f"{done} of {total} repetitions are recorded; to go on: "
                    f"./invokew bench --resume {shlex.quote(str(recording.directory))}"
                )
            raise
    return recording


def _measure(begun: _Begun, recording: Recording, display: Display, until: int | None) -> _Measured | None:
    """Bring the testbed up, calibrate, repeat, calibrate again, and take it down.

    None if there are repetitions left after ``until``.
    """
    testbed, clock = begun.testbed, begun.clock
    probed = begun.probed
    measurement = begun.scenario.measurement
    done, repetitions = len(recording.finished()), measurement.repetitions
    last = repetitions if until is None else min(until, repetitions)
    with clock.measure("up"):
        testbed.up(display.stage)
    try:
        if testbed.found:
            atomic.write_model(recording.found_file, testbed.found)
        plans = calibration.Plans(
            plan.plan(testbed, probed.traffic, calibration.INTERVAL_SECONDS),
            plan.plan(testbed, probed.idle, calibration.INTERVAL_SECONDS),
        )
        planned = plan.plan(testbed, begun.scenario.transfers, measurement.interval, measurement.queues)
        with clock.measure("calibration"):
            display.stage(CALIBRATING)
            calibrated = calibration.calibrate(plans, probed, recording.raw_directory, "before")
        if calibrated and calibrated.foreseen:
            display.stage(records.foreseen_text(calibrated.foreseen))
        testbed.enforcement.install(testbed)
        for number in range(done, last):
            _repeat(begun, planned, recording, number, calibrated, display)
        if last < repetitions:
            return None
        surroundings = environment.describe(testbed)
        testbed.enforcement.withdraw(testbed)
        display.settle()
        with clock.measure("calibration"):
            display.stage("calibration once more: is the machine still the same?")
            calibrated = calibration.calibrate(plans, probed, recording.raw_directory, "after")
    finally:
        with clock.measure("down"):
            testbed.down()
    return _Measured(_gone_on(done, repetitions, until), surroundings, calibrated)


def _gone_on(done: int, repetitions: int, until: int | None) -> list[str]:
    """Say if some of the repetitions were made on another testbed."""
    if not done:
        return []
    before = f"{done} of {repetitions} repetitions were made before"
    if until is None:
        return [f"the run was interrupted; {before}, the others on a testbed up again"]
    return [f"{before}, each in its turn with other cases, on a testbed up again"]


def _repeat(
    begun: _Begun,
    planned: Plan,
    recording: Recording,
    number: int,
    calibrated: Calibration | None,
    display: Display,
) -> None:
    """Make one repetition, and write it down when all of it is there."""
    clock = _Clock()
    observed = Observed(Scene(begun.testbed, begun.scenario, planned.way), planned.observations)
    with clock.measure("traffic"), display.traffic(begun.scenario, number) as on_rates:
        repetition = transfers.run(planned, recording.repetition_directory(number), on_rates)
    observed.look(at_once=True)
    display.stage("checking what the kernel has against what was configured")
    if number == begun.scenario.measurement.repetitions - 1:
        display.measured()
    observed.look(at_once=False)
    finished = Finished(
        repetition=observation.recorded(repetition, observed.seen),
        seconds=clock.seconds["traffic"],
        calibration=calibrated,
        notes=observed.notes,
    )
    # At once, so that nobody takes half of it for a repetition.
    atomic.write_model(recording.finished_file(number), finished)


def _record(recording: Recording, begun: _Begun, measured: _Measured) -> RunRecord:
    finished, beginning = recording.finished(), begun.beginning
    made = [*(one.calibration for one in finished), measured.calibrated]
    calibrations = [one for one, _ in groupby(one for one in made if one is not None)]
    faults = [
        text for one in finished for text in (*one.faults, *(fault.text for fault in one.repetition.faults))
    ]
    return RunRecord(
        run_id=recording.run_id,
        started_at=beginning.started_at,
        provider=beginning.provider.partition(":")[0],
        add_s=_added(begun),
        orchestrator=beginning.orchestrator,
        seconds=Seconds(**begun.clock.seconds, traffic=sum(one.seconds for one in finished)),
        calibration=_least(calibrations),
        calibrations=calibrations,
        repetitions=[one.repetition for one in finished],
        faults=list(dict.fromkeys(faults)),
        notes=[
            *measured.notes,
            *dict.fromkeys(note for one in finished for note in one.notes),
            *begun.probed.promise.notes,
            *service_rules.warned(begun.scenario),
        ],
        retry_of=beginning.retry_of,
        counted=_counted(begun),
        files=directory.digests(recording),
    )


def _added(begun: _Begun) -> dict[str, float] | None:
    """Return what the ADD of each of the scenario's own pods took, the last time the testbed was up."""
    took = begun.testbed.add_s
    return {name: round(took[name], 6) for name in begun.scenario.pods if name in took} or None


def _counted(begun: _Begun) -> list[CountedLink] | None:
    """Return which counter that was read is which link's; None where none was, or all are others'."""
    if begun.scenario.measurement.queues is None:
        return None
    return [
        CountedLink(owner=link.owner, trunk=link.trunk, out=link.out, place=slug(place), device=device)
        for link, place, device in begun.testbed.provider.counters()
    ] or None


def _least(made: Sequence[Calibration]) -> Calibration | None:
    """Return the calibration that carried least in all, or one that failed; None if none was made.

    As a whole: paths that share a link share it a little differently each time.
    """
    return min(made, key=lambda one: (one.error is None, sum(one.bits_per_second.values())), default=None)
