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

    from bench.analysis.excuses import Flags, Floats

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


class _Slice(NamedTuple):
    """The exchanges of one phase and repetition."""

    took: Floats
    late: Floats
    round_trips: Floats  # NaN: not known
    doubtful: Flags
    busy: float  # CPU seconds seen meanwhile, and of them busy
    watched: float

    def sound(self) -> _Slice:
        """Return the slice without the doubtful exchanges."""
        kept = ~self.doubtful
        took, late, trips = self.took[kept], self.late[kept], self.round_trips[kept]
        return self._replace(took=took, late=late, round_trips=trips, doubtful=self.doubtful[kept])


def observe(found: pd.DataFrame, scenario: Scenario, record: RunRecord) -> list[Latency]:
    """Return an entry for each kind of requests and each phase it has, in the scenario's order."""
    tables = dict(iter(found.groupby(["requests", "repetition"], sort=False)))
    observed = []
    for requests in scenario.requests:
        slices: dict[Phase, dict[int, _Slice | None]] = {}
        for number, repetition in enumerate(record.repetitions):
            table = tables.get((requests.label, number))
            for phase, slice_ in _slices(requests, table, scenario, repetition):
                slices.setdefault(phase, {})[number] = slice_
        for phase in sorted(slices, key=lambda phase: phase != phases.QUIET):
            filled = [slice_ for slice_ in slices[phase].values() if slice_ is not None]
            observed.append(
                Latency(
                    requests=requests,
                    phase=phase,
                    overall=_measure(filled) if filled else None,
                    repetitions={
                        number: None if slice_ is None else _measure([slice_])
                        for number, slice_ in slices[phase].items()
                    },
                )
            )
    return observed


def _slices(
    requests: Requests, table: pd.DataFrame | None, scenario: Scenario, repetition: Repetition
) -> Iterator[tuple[Phase, _Slice | None]]:
    """Yield each phase that there should be exchanges of, with those there are."""
    disturbed = phases.disturbances(scenario, requests, repetition)
    begun, end = phases.span_of(requests, repetition)
    judged = Span(begun + scenario.measurement.warm_up, end)
    required = phases.required(judged, disturbed, scenario.measurement.interval)
    if table is None:
        yield from ((phase, None) for phase in required)
        return
    due = table["due_s"].to_numpy()
    ended = table["answered_s"].fillna(table["due_s"]).to_numpy()
    doubtful = excuses.stalled(due, ended, repetition, 0.0)
    for phase in required:
        chosen = (table["phase"] == phase).to_numpy()
        slice_ = None
        if chosen.any():
            slice_ = _slice(table[chosen], doubtful[chosen], *_busy(due[chosen], repetition))
        yield phase, slice_


def _slice(rows: pd.DataFrame, doubtful: Flags, busy: float, watched: float) -> _Slice:
    return _Slice(
        took=exchanges.latencies(rows),
        late=(rows["sent_s"] - rows["due_s"]).clip(lower=0).round(exchanges.DIGITS).to_numpy(),
        round_trips=rows["round_trip_s"].to_numpy(),
        doubtful=doubtful,
        busy=busy,
        watched=watched,
    )


def _busy(due: Floats, repetition: Repetition) -> tuple[float, float]:
    """Return how many CPU seconds were busy while exchanges were due, and how many were looked at.

    Every look at the processors counts by the share of the exchanges that were due in it.
    """
    busy = watched = 0.0
    for use in repetition.cpu:
        share = float(((due >= use.start_s) & (due < use.end_s)).mean())
        busy += share * use.busy
        watched += share
    return busy, watched


def _measure(slices: Sequence[_Slice]) -> Took:
    import numpy as np

    took = np.sort(np.concatenate([slice_.took for slice_ in slices]))
    late = np.sort(np.concatenate([slice_.late for slice_ in slices]))
    trips = np.concatenate([slice_.round_trips for slice_ in slices])
    trips = trips[~np.isnan(trips)]
    answered = took[np.isfinite(took)]
    watched = math.fsum(slice_.watched for slice_ in slices)
    busy = math.fsum(slice_.busy for slice_ in slices)
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
        doubtful=int(sum(int(slice_.doubtful.sum()) for slice_ in slices)),
        sound=_without_doubts(slices),
    )


def _without_doubts(slices: Sequence[_Slice]) -> Took | None:
    if not any(slice_.doubtful.any() for slice_ in slices):
        return None
    rest = [sound for slice_ in slices if len((sound := slice_.sound()).took)]
    return _measure(rest) if rest else None
