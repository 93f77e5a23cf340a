"""How long requests took in each phase, and how many were lost, over all repetitions and in each.

Which phase an exchange belongs to is in the table (``exchanges``); left out are the requests' warm-up, and as
much time after each disturbance. One that was lost took longer than any that was answered, so a
percentile may be among the lost, and is infinite then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from bench.analysis import exchanges, excuses, phases, statistics
from bench.analysis.exchanges import Time
from bench.analysis.phases import Phase, Span
from bench.observations.causes import Fine, Part, Topic
from bench.recording.records import Repetition, RunRecord
from testbed.scenario import Requests, Scenario

if TYPE_CHECKING:
    import pandas as pd

    from bench.analysis.excuses import Floats

PERCENTILES = {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99, "p999_s": 0.999}


class Took(Part):
    """What some exchanges amount to: seconds from when they were due. Null is among those that were lost."""

    exchanges: int
    lost: int
    p50_s: Time | None
    p90_s: Time | None
    p99_s: Time | None
    p999_s: Time | None
    max_s: Time | None  # of those that were answered
    lateness_p99_s: Time  # the generator's own, when it sent
    lateness_max_s: Time
    round_trip_s: Time | None  # median of TCP's own, smoothed; null: not known
    doubtful: int = 0  # exchanges that the machine may have held up
    cpu_busy: Fine | None  # busy share of all processors meanwhile, stolen time included
    # Not in the file: what the exchanges amount to that are beyond doubt, None if all or none are; and which
    # numbers decided that they did not hold.
    sound: Took | None = Field(None, exclude=True)
    missed: tuple[Topic, ...] = Field((), exclude=True)

    @property
    def judged_s(self) -> float:
        """The percentile that a threshold is about; infinite among those that were lost."""
        return math.inf if self.p99_s is None else self.p99_s

    @property
    def lost_share(self) -> float:
        """The share of the exchanges that were lost."""
        return self.lost / self.exchanges


@dataclass(frozen=True)
class Latency:
    """The requests of one kind in one phase."""

    requests: Requests
    phase: Phase
    overall: Took | None  # None: no exchange in any repetition
    repetitions: dict[int, Took | None]  # by repetition, from 0; None: a phase without exchanges

    @property
    def flow(self) -> str:
        """Their label."""
        return self.requests.label


class _Part(NamedTuple):
    """The exchanges of one phase and repetition, and which of them the machine may have held up."""

    rows: pd.DataFrame  # with ``doubtful`` beside the columns that all exchanges have
    busy: float  # CPU seconds seen meanwhile, and of them busy
    watched: float


def observe(found: pd.DataFrame, scenario: Scenario, record: RunRecord) -> list[Latency]:
    """Return an entry for each kind of requests and each phase it has, in the scenario's order."""
    tables = dict(iter(found.groupby(["requests", "repetition"], sort=False)))
    observed = []
    for requests in scenario.requests:
        parts: dict[Phase, dict[int, _Part]] = {}
        for number, repetition in enumerate(record.repetitions):
            table = tables.get((requests.label, number), found[:0])
            for phase, part in _parts(requests, table, scenario, repetition):
                parts.setdefault(phase, {})[number] = part
        for phase in sorted(parts, key=lambda phase: phase != phases.QUIET):
            overall = _measure(list(parts[phase].values()))
            repetitions = {number: _measure([part]) for number, part in parts[phase].items()}
            observed.append(Latency(requests, phase, overall, repetitions))
    return observed


def _parts(
    requests: Requests, table: pd.DataFrame, scenario: Scenario, repetition: Repetition
) -> Iterator[tuple[Phase, _Part]]:
    """Yield each phase that there should be exchanges of, with those there are."""
    disturbed = phases.disturbances(scenario, requests, repetition)
    begun, end = phases.span_of(requests, repetition)
    judged = Span(begun + scenario.measurement.warm_up, end)
    due, ended = table["due_s"], table["answered_s"].fillna(table["due_s"])
    stalled = excuses.stalled(due.to_numpy(), ended.to_numpy(), repetition, 0.0)
    marked = table.assign(doubtful=stalled)
    for phase in phases.required(judged, disturbed, scenario.measurement.interval):
        rows = marked[marked["phase"] == phase]
        yield phase, _Part(rows, *_busy(rows["due_s"].to_numpy(), repetition))


def _busy(due: Floats, repetition: Repetition) -> tuple[float, float]:
    """Return how many CPU seconds were busy while exchanges were due, and how many were looked at.

    Every look at the processors counts by the share of the exchanges that were due in it.
    """
    busy = watched = 0.0
    for use in repetition.cpu:
        share = float(((due >= use.start_s) & (due < use.end_s)).mean()) if len(due) else 0.0
        busy += share * use.busy
        watched += share
    return busy, watched


def _measure(parts: Sequence[_Part]) -> Took | None:
    """Return what exchanges amount to; None if there are none."""
    import numpy as np
    import pandas as pd

    rows = pd.concat([part.rows for part in parts])
    if rows.empty:
        return None
    took = np.sort(exchanges.latencies(rows))
    late = np.sort((rows["sent_s"] - rows["due_s"]).clip(lower=0).round(exchanges.DIGITS).to_numpy())
    trips, answered = rows["round_trip_s"].dropna().to_numpy(), took[np.isfinite(took)]
    busy, watched = math.fsum(part.busy for part in parts), math.fsum(part.watched for part in parts)
    doubtful = int(rows["doubtful"].sum())
    sound = [part._replace(rows=part.rows[~part.rows["doubtful"]]) for part in parts]
    return Took(
        exchanges=len(took),
        lost=len(took) - len(answered),
        **{
            name: value if math.isfinite(value := statistics.ranked(took, share)) else None
            for name, share in PERCENTILES.items()
        },
        max_s=float(answered[-1]) if len(answered) else None,
        lateness_p99_s=statistics.ranked(late, 0.99),
        lateness_max_s=float(late[-1]),
        round_trip_s=statistics.percentile(trips, 0.5) if len(trips) else None,
        cpu_busy=busy / watched if watched > 0 else None,
        doubtful=doubtful,
        sound=_measure(sound) if doubtful else None,
    )
