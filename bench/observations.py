"""What every transfer got in each phase, over all repetitions and in each.

Only the receiver's samples count, and only phases long enough to be one (``phases.required``): a sample or
two at the edge of a disturbance that lasts as long as the flow is no quiet phase. A flow's warm-up is left
out; a disturbance is not judged, and what it does at its beginning disturbs as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench import accounting, phases, statistics
from bench.phases import Phase, Span
from bench.recording import Repetition, RunRecord
from bench.samples import Role, role_of
from testbed.scenario import Scenario, Traffic

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Tables = dict[Hashable, pd.DataFrame]  # by flow and repetition


# Busy share of all processors from which they count as saturated. Half-second averages of a machine that is
# the bottleneck are 0.98 to 1; the rest is the sampling clock's.
CPU_SATURATED = 0.97


@dataclass(frozen=True)
class Measured:
    """What some samples amount to: payload bits per second, shares from 0 to 1."""

    samples: int
    mean_bps: float
    p01_bps: float
    attainment: float | None  # None: no guarantee to attain
    cpu_busy: float | None  # of all processors while the samples were taken; None: not recorded
    # The same without the samples in which the machine stood still or its processors were saturated, or it
    # caught up after; None: it never was so.
    running: Measured | None = None


@dataclass(frozen=True)
class Observation:
    """One transfer in one phase."""

    flow: str
    role: Role
    phase: Phase
    expected_bps: float | None  # None: no guarantee
    overall: Measured | None  # None: no sample in any repetition
    repetitions: dict[int, Measured | None]  # by repetition, from 0; None: a phase without samples

    @property
    def shortfall(self) -> float | None:
        """The share of the expected goodput that the mean misses, 0 if none; None without a guarantee."""
        if self.expected_bps is None or self.overall is None:
            return None
        return max(0.0, 1 - self.overall.mean_bps / self.expected_bps)


def observe(samples: pd.DataFrame, scenario: Scenario, record: RunRecord) -> list[Observation]:
    """Return an observation for each transfer and each phase it has, in the scenario's order."""
    received = samples[samples["source"] == "receiver"]
    tables: Tables = dict(iter(received.groupby(["flow", "repetition"], sort=False)))
    return [
        observation
        for traffic in scenario.traffic
        for observation in _observe(traffic, tables, scenario, record)
    ]


@dataclass(frozen=True)
class _Cell:
    """The samples of one transfer, phase and repetition."""

    rates: Floats
    seconds: Floats
    busy: Floats  # CPU seconds seen, and of them busy, by sample
    watched: Floats
    stalled: NDArray[np.bool_]  # the machine had no time to spare in the sample, or just before it

    def running(self) -> _Cell:
        """Return the cell without the stalled samples."""
        kept = ~self.stalled
        return _Cell(
            self.rates[kept], self.seconds[kept], self.busy[kept], self.watched[kept], self.stalled[kept]
        )


def _observe(
    traffic: Traffic, tables: Tables, scenario: Scenario, record: RunRecord
) -> Iterator[Observation]:
    role = role_of(scenario, traffic)
    cells: dict[Phase, dict[int, _Cell | None]] = {}
    for number, repetition in enumerate(record.repetitions):
        disturbed = phases.disturbances(scenario, repetition)
        begun, end = phases.span_of(traffic, repetition)
        judged = Span(begun if role == "disturbance" else begun + scenario.measurement.warm_up, end)
        table = tables.get((traffic.label, number))
        for phase in phases.required(judged, disturbed, scenario.measurement.interval):
            cell = None
            if table is not None:
                cell = _cell(table, phase, judged, disturbed, repetition, scenario.measurement.interval)
            cells.setdefault(phase, {})[number] = cell
    expected = accounting.expected_goodput_of(scenario, traffic) if role == "guaranteed" else None
    threshold = None if expected is None else scenario.thresholds.sample * expected
    for phase in phases.PHASES:
        if phase in cells:
            filled = [cell for cell in cells[phase].values() if cell is not None]
            yield Observation(
                flow=traffic.label,
                role=role,
                phase=phase,
                expected_bps=expected,
                overall=_measure(filled, threshold) if filled else None,
                repetitions={
                    number: None if cell is None else _measure([cell], threshold)
                    for number, cell in cells[phase].items()
                },
            )


def _cell(
    table: pd.DataFrame,
    phase: Phase,
    judged: Span,
    disturbed: list[Span],
    repetition: Repetition,
    interval: float,
) -> _Cell | None:
    import numpy as np

    starts, ends = table["start_s"].to_numpy(), table["end_s"].to_numpy()
    chosen = phases.classify(starts, ends, judged.start, disturbed) == phase
    if not chosen.any():
        return None
    starts, ends = starts[chosen], ends[chosen]
    busy, watched = np.zeros(len(starts)), np.zeros(len(starts))
    for use in repetition.cpu:
        shared = statistics.overlaps(starts, ends, np.array([use.start_s]), np.array([use.end_s]))
        busy += shared * use.busy
        watched += shared
    stalled = np.zeros(len(starts), dtype=np.bool_)
    spans = [Span(stall.start_s, stall.end_s) for stall in repetition.stalls]
    spans += [Span(use.start_s, use.end_s) for use in repetition.cpu if use.busy >= CPU_SATURATED]
    for span in spans:
        # What was held up arrives in the interval after.
        stalled |= (starts < span.end + interval) & (ends > span.start)
    return _Cell(table["bits_per_second"].to_numpy()[chosen], ends - starts, busy, watched, stalled)


def _measure(cells: list[_Cell], threshold: float | None) -> Measured:
    import numpy as np

    rates = np.concatenate([cell.rates for cell in cells])
    watched = sum(float(cell.watched.sum()) for cell in cells)
    busy = sum(float(cell.busy.sum()) for cell in cells)
    return Measured(
        samples=len(rates),
        mean_bps=statistics.mean(rates, np.concatenate([cell.seconds for cell in cells])),
        p01_bps=statistics.p01(rates),
        attainment=None if threshold is None else statistics.attainment(rates, threshold),
        cpu_busy=busy / watched if watched > 0 else None,
        running=_without_stalls(cells, threshold),
    )


def _without_stalls(cells: list[_Cell], threshold: float | None) -> Measured | None:
    if not any(cell.stalled.any() for cell in cells):
        return None
    rest = [running for cell in cells if len((running := cell.running()).rates)]
    return _measure(rest, threshold) if rest else None
