"""What every transfer got in each phase, over all repetitions and in each.

Only the receiver's samples count, and only phases long enough to be one (``phases.required``): a sample or
two at the edge of a disturbance that lasts as long as the flow is no quiet phase. A flow's warm-up is left
out; a disturbance is not judged, and what it does at its beginning disturbs as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from bench.analysis import excuses, phases, statistics
from bench.analysis.phases import Disturbed, Phase, Span
from bench.analysis.samples import Role, role_of
from bench.analysis.spread import Series
from bench.observations.causes import Fine, Part, Rate, Topic
from bench.recording.records import Repetition, RunRecord
from testbed.scenario import Scenario, Traffic
from testbed.scenario.goodput import expected_goodput_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bench.analysis.samples import Tables

    Samples = NDArray[np.void]  # rows of _SAMPLE

# The first percentile of fewer samples lies between the lowest two of them.
FEWEST_FOR_A_PERCENTILE = 100


class Measured(Part):
    """What some samples of one transfer in one phase amount to."""

    mean_bps: Rate  # weighted by time
    p01_bps: Rate  # first percentile of the samples; of fewer than 100 it is their minimum by another name
    minimum_bps: Rate | None = None  # these three: null in summaries of earlier versions
    attainment: Fine | None  # share of samples that reach the threshold; null without a guarantee
    low: int | None = None  # samples below the threshold; null without a guarantee
    low_doubtful: int | None = None  # of these, those for which the machine may be to blame (``excuses``)
    samples: int
    cpu_busy: Fine | None  # busy share of all processors during these samples, stolen time included
    # Not in the file: how many samples may be low because of the machine, and what the others amount to (None
    # if either are none); and which numbers decided that it did not hold, where ``causes`` have them.
    doubtful: int = Field(0, exclude=True)
    sound: Measured | None = Field(None, exclude=True)
    missed: tuple[Topic, ...] = Field((), exclude=True)

    @property
    def shows_minimum(self) -> bool:
        """Whether there are too few samples for a percentile of its own."""
        return self.samples < FEWEST_FOR_A_PERCENTILE and self.minimum_bps is not None

    @property
    def lowest_bps(self) -> float:
        """What is shown as the low end: the first percentile, or the minimum of few samples."""
        return self.minimum_bps if self.shows_minimum and self.minimum_bps is not None else self.p01_bps


@dataclass(frozen=True)
class FlowPhase:
    """One transfer in one phase."""

    flow: str
    role: Role
    phase: Phase
    expected_bps: float | None  # None: no guarantee
    overall: Measured | None  # None: no sample in any repetition
    repetitions: dict[int, Measured | None]  # by repetition, from 0; None: a phase without samples
    # The samples themselves, of those repetitions that have any.
    series: dict[int, Series] = field(default_factory=dict)
    # When samples did not reach the threshold; all of them where each did.
    low: dict[int, list[Span]] = field(default_factory=dict)

    @property
    def shortfall(self) -> float | None:
        """The share of the expected goodput that the mean misses, 0 if none; None without a guarantee."""
        if self.expected_bps is None or self.overall is None:
            return None
        return max(0.0, 1 - self.overall.mean_bps / self.expected_bps)


def observe(tables: Tables, scenario: Scenario, record: RunRecord) -> list[FlowPhase]:
    """Return an observation for each transfer and each phase it has, in the scenario's order."""
    return [
        observation
        for traffic in scenario.traffic
        for observation in _observe(traffic, tables, scenario, record)
    ]


# Of one sample: bits per second, and how long it lasts; CPU seconds that were busy in it, and that were seen.
_SAMPLE = [
    ("rate", float),
    ("seconds", float),
    ("busy", float),
    ("watched", float),
    ("doubtful", bool),
    ("start", float),
]


def _observe(traffic: Traffic, tables: Tables, scenario: Scenario, record: RunRecord) -> Iterator[FlowPhase]:
    import numpy as np

    role = role_of(scenario, traffic)
    parts: dict[Phase, dict[int, Samples]] = {}
    expected = expected_goodput_of(scenario, traffic) if role == "guaranteed" else None
    for number, repetition in enumerate(record.repetitions):
        disturbed = phases.disturbances(scenario, traffic, repetition)
        begun, end = phases.span_of(traffic, repetition)
        judged = Span(begun if role == "disturbance" else begun + scenario.measurement.warm_up, end)
        for phase in phases.required(judged, disturbed, scenario.measurement.interval):
            part = _part(traffic, phase, judged, disturbed, expected, number, tables, scenario, repetition)
            parts.setdefault(phase, {})[number] = part
    threshold = None if expected is None else scenario.thresholds.sample * expected
    least = math.inf if threshold is None else threshold
    for phase in sorted(parts, key=lambda phase: phase != phases.QUIET):
        found = parts[phase]
        yield FlowPhase(
            flow=traffic.label,
            role=role,
            phase=phase,
            expected_bps=expected,
            overall=_measure(np.concatenate(list(found.values())), threshold),
            repetitions={number: _measure(part, threshold) for number, part in found.items()},
            series={
                number: Series(part["rate"], part["seconds"], part["rate"] >= least)
                for number, part in found.items()
                if len(part)
            },
            low={number: _low(part, least) for number, part in found.items()},
        )


def _low(part: Samples, least: float) -> list[Span]:
    """Return when samples had less than this, or all if none had."""
    chosen = part[part["rate"] < least]
    chosen = chosen if len(chosen) else part
    return [Span(float(one["start"]), float(one["start"] + one["seconds"])) for one in chosen]


def _part(
    traffic: Traffic,
    phase: Phase,
    judged: Span,
    disturbed: Sequence[Disturbed],
    expected: float | None,
    number: int,
    tables: Tables,
    scenario: Scenario,
    repetition: Repetition,
) -> Samples:
    """Return the samples of one transfer, phase and repetition, if there are any."""
    import numpy as np

    received, sent = (tables.get((traffic.label, number, source)) for source in ("receiver", "sender"))
    if received is None:
        return np.zeros(0, _SAMPLE)
    starts, ends = received["start_s"].to_numpy(), received["end_s"].to_numpy()
    chosen = phases.classify(starts, ends, judged.start, disturbed) == phase
    starts, ends = starts[chosen], ends[chosen]
    found = np.zeros(len(starts), _SAMPLE)
    found["rate"], found["seconds"] = received["bits_per_second"].to_numpy()[chosen], ends - starts
    found["start"] = starts
    for use in repetition.cpu:
        shared = statistics.overlaps(starts, ends, np.array([use.start_s]), np.array([use.end_s]))
        found["busy"] += shared * use.busy
        found["watched"] += shared
    found["doubtful"] = excuses.stalled(starts, ends, repetition, scenario.measurement.interval)
    if expected is not None and len(found):
        spare = excuses.idle(sent, ends, expected)
        spare |= excuses.room(starts, ends, traffic, tables, scenario, number)
        if spare.mean() <= excuses.MOST:
            found["doubtful"] |= spare
    return found


def _measure(samples: Samples, threshold: float | None) -> Measured | None:
    """Return what samples amount to; None if there are none."""
    if not len(samples):
        return None
    rates, doubtful, watched = samples["rate"], samples["doubtful"], float(samples["watched"].sum())
    low = None if threshold is None else rates < threshold
    return Measured(
        samples=len(rates),
        mean_bps=statistics.mean(rates, samples["seconds"]),
        p01_bps=statistics.p01(rates),
        attainment=None if threshold is None else statistics.attainment(rates, threshold),
        cpu_busy=float(samples["busy"].sum()) / watched if watched > 0 else None,
        minimum_bps=float(rates.min()),
        low=None if low is None else int(low.sum()),
        low_doubtful=None if low is None else int((low & doubtful).sum()),
        doubtful=int(doubtful.sum()),
        sound=_measure(samples[~doubtful], threshold) if doubtful.any() else None,
    )
