"""From a recording's raw files to everything made of them: samples, summary, figures, report.

The outputs are functions of the scenario, the environment and ``raw/``: analysing them again writes the same
bytes. The one thing that cannot be, the seconds the analysis took, is measured the first time and kept in
``raw/analysis.json``.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.analysis import (
    bottleneck,
    ceilings,
    exchanges,
    flow_phases,
    latency,
    machine,
    samples,
    summary,
    verdict,
)
from bench.analysis.flow_phases import FlowPhase
from bench.analysis.summary import Summary
from bench.observations.causes import Cause
from bench.recording import atomic, directory, queues, rounds
from bench.recording.directory import Recording
from bench.recording.records import Analysed, RunRecord
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

    from bench.presentation.figures.sheet import Sheet


def prepare_to_judge() -> None:
    """Import what ``summarise`` takes."""
    import pandas  # noqa: F401


def prepare() -> None:
    """Import all that an analysis takes. Until then nothing of it is: beside traffic that would disturb."""
    prepare_to_judge()
    import rocrate.rocrate  # type: ignore[import-untyped]  # noqa: F401

    from bench.presentation import report  # noqa: F401


def analyse(recording: Recording, sheet: Sheet | None = None) -> Summary:
    """Make samples, summary, figures, report and crate; with a sheet, figures for that, too.

    Raw output that is missing or broken makes the verdict invalid and is no error. Raises ScenarioError or
    StoredError if the scenario or the run's record cannot be read, OSError if something cannot be written.
    """
    begun = time.perf_counter()
    earlier = _earlier_seconds(recording)
    scenario, record = recording.scenario(), recording.run_record()
    # Only now: with pandas and matplotlib they are what takes long here.
    from bench.presentation import crate

    found = _judged(recording, scenario, record, _changed(recording, record))
    made, beside = _made(recording, scenario, record, found, sheet)
    for file, content in (made | beside).items():
        atomic.write(file, content)
    if earlier is None:
        earlier = round(time.perf_counter() - begun, 3)
    if not os.path.lexists(recording.analysis_file):
        atomic.write_model(recording.analysis_file, Analysed(seconds=earlier))
    described = crate.of_recording(recording, record, scenario.title, [*made, recording.summary_file])
    atomic.write(recording.crate_file, described)
    result = found.summary.analysed(earlier)
    atomic.write(recording.summary_file, summary.render(result).encode())
    return result


def _made(
    recording: Recording, scenario: Scenario, record: RunRecord, found: _Judged, sheet: Sheet | None
) -> tuple[dict[Path, bytes], dict[Path, bytes]]:
    """Return the content of tables, figures and report, and of the figures for a sheet beside them."""
    from bench.presentation import commands, report
    from bench.presentation.figures import registry
    from bench.presentation.figures.sheet import PAGE, Subject

    asked = commands.asked(recording)
    scale = asked.scale if asked else 1.0
    granted = {
        rounds.node_of(file): list(rounds.read(file))
        for file in sorted(recording.repetition_directory(0).glob(rounds.PATTERN))
    }
    subject = Subject(scenario, record, found.summary, found.samples, found.exchanges, scale, granted)

    def files(drawn: Mapping[str, Mapping[str, bytes]], on: Sheet) -> dict[Path, bytes]:
        return {
            recording.figures_directory / on.file(name, kind): content
            for name, kinds in drawn.items()
            for kind, content in kinds.items()
        }

    drawn = registry.draw(subject, PAGE)
    page = report.render(recording, scenario, record, found.summary, found.samples, drawn)
    made = {
        recording.samples_file: parquet(found.samples),
        **({recording.exchanges_file: parquet(found.exchanges)} if scenario.requests else {}),
        **files(drawn, PAGE),
        recording.report_file: page.encode(),
    }
    return made, {} if sheet is None else files(registry.draw(subject, sheet), sheet)


class _Judged(NamedTuple):
    """What follows from the numbers of a recording, and the numbers."""

    summary: Summary
    samples: pd.DataFrame
    exchanges: pd.DataFrame


def summarise(recording: Recording) -> Summary:
    """Return what ``analyse`` does, and write nothing; the seconds of the analysis are 0."""
    scenario, record = recording.scenario(), recording.run_record()
    return _judged(recording, scenario, record, _changed(recording, record)).summary


def judge(recording: Recording, scenario: Scenario, record: RunRecord) -> Summary:
    """Return what a recording shows of which there is no more than the scenario and raw output."""
    return _judged(recording, scenario, record, []).summary


def _changed(recording: Recording, record: RunRecord) -> list[Cause]:
    """Return each file that is no longer as the run left it."""
    return [
        Cause(kind="measurement", text=text, topics=("files",))
        for text in directory.faults(recording, record)
    ]


def _judged(recording: Recording, scenario: Scenario, record: RunRecord, changed: Sequence[Cause]) -> _Judged:
    readings = samples.read(recording, scenario, record)
    tables = samples.parted(readings.samples)
    observed = flow_phases.observe(tables, scenario, record)
    asked = exchanges.read(recording, scenario, record)
    exceeded = list(ceilings.causes(tables, scenario, record))
    latencies = latency.observe(asked.exchanges, scenario, record)
    faults = [*changed, *readings.faults, *asked.faults]
    judged = verdict.judge(scenario, record, observed, faults, latencies, exceeded, readings.totals)
    judged = replace(judged, causes=_located(judged.causes, recording, scenario, record, observed))
    machines = machine.observe(tables, readings.retransmits, scenario, record)
    told = summary.requests_of(scenario, latencies, asked.idle, asked.endpoints)
    result = summary.build(scenario, record, observed, judged, machines, told)
    return _Judged(result, readings.samples, asked.exchanges)


def _located(
    causes: Sequence[Cause],
    recording: Recording,
    scenario: Scenario,
    record: RunRecord,
    observed: Sequence[FlowPhase],
) -> list[Cause]:
    """Return causes with where a flow's bytes were lost, if the counters were recorded that tell it."""
    counted = record.counted
    if not counted:
        return list(causes)
    low = {(one.flow, one.phase): one.low for one in observed}
    places = {number: _places(recording, number) for number in {one.repetition for one in causes}}

    def tell(cause: Cause) -> Cause:
        number, read = cause.repetition, places[cause.repetition]
        if number is None or read is None:
            return cause
        mine = low.get((cause.flow or "", cause.phase or ""), {}).get(number, [])
        return bottleneck.located(cause, scenario, read, counted, mine)

    return [tell(one) for one in causes]


def _places(recording: Recording, repetition: int | None) -> bottleneck.Places | None:
    """Return what was counted in a repetition; None if a file is broken, which is said elsewhere."""
    if repetition is None:
        return None
    try:
        return queues.all_of(recording.repetition_directory(repetition))
    except atomic.StoredError:
        return None


def parquet(table: pd.DataFrame) -> bytes:
    """Return the samples as Apache Parquet; the same bytes for the same samples and library versions."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, engine="pyarrow", compression="zstd", index=False)
    return buffer.getvalue()


def _earlier_seconds(recording: Recording) -> float | None:
    """Return how long the first analysis took; None: this is the first. Raises StoredError."""
    if os.path.lexists(recording.analysis_file):
        return atomic.read(recording.analysis_file, Analysed).seconds
    try:  # recordings were analysed before it was kept apart
        return summary.read(recording.summary_file).seconds.analysis
    except atomic.StoredError:  # none yet, or not one of ours
        return None
