"""Which changes of a machine's history are to be told tonight: each once, and whose they are.

Series that change in one night are one finding. If what the unshaped paths carry changed in that night too,
it is the machine's, and nobody's failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bench.analysis import changepoints
from bench.analysis.changepoints import CONFIRMED, WINDOW, Change
from bench.studies.nightly import metrics
from bench.studies.nightly.night import Night, Said

Kind = Literal["worse", "better", "machine"]


@dataclass(frozen=True)
class Shift:
    """One metric that has another level from a night on."""

    metric: str
    first: int  # the index of that night
    last: int  # and of the last one before that has the metric
    change: Change
    machine: bool  # the same paths without shaping changed too

    @property
    def rose(self) -> bool:
        """Whether the new level is the higher one."""
        return self.change.difference > 0

    @property
    def kind(self) -> Kind:
        """Whether it is for the better, and whose."""
        if self.machine:
            return "machine"
        return "better" if self.rose == metrics.kind_of(self.metric).bigger_is_better else "worse"


@dataclass(frozen=True)
class Finding:
    """All that changed in one night."""

    night: Night  # the first one of the new level
    shifts: Sequence[Shift]
    besides: Mapping[str, tuple[str, str]]  # what else changed then: before and after

    @property
    def kind(self) -> Kind:
        """Worse if anything is, beside what is the machine's."""
        kinds = {shift.kind for shift in self.shifts}
        order: tuple[Kind, ...] = ("worse", "machine")
        return next((kind for kind in order if kind in kinds), "better")

    def said(self) -> list[Said]:
        """Return what is kept of it, so that it is told once."""
        return [
            Said(metric=shift.metric, first_night=self.night.run_id, rose=shift.rose, kind=self.kind)
            for shift in self.shifts
        ]


def new(nights: Sequence[Night], starts: Mapping[str, int]) -> list[Finding]:
    """Return what is to be told after the last of these nights; ``starts``: see Acknowledgements.starts."""
    told = list(_told(nights))
    found = [finding for finding in _found(nights, starts) if not _known(finding, told)]
    fresh = [_without_told(finding, told) for finding in found]
    return [finding for finding in fresh if finding.shifts]


def _found(nights: Sequence[Night], starts: Mapping[str, int]) -> list[Finding]:
    """Return all changes of a history, those of one night together."""
    by_night: dict[int, list[Shift]] = {}
    series = metrics.series(nights)
    for metric, seen in series.items():
        indices = [index for index in seen if index >= starts.get(metric, 0)]
        for change in changepoints.changes([seen[index] for index in indices]):
            first = indices[change.at]
            machine = _machine(series, metric, first, change)
            shift = Shift(metric, first, indices[change.at - 1], change, machine)
            by_night.setdefault(first, []).append(shift)
    return [
        Finding(nights[first], shifts, _besides(nights[max(shift.last for shift in shifts)], nights[first]))
        for first, shifts in sorted(by_night.items())
    ]


def _machine(series: Mapping[str, Mapping[int, float]], metric: str, first: int, change: Change) -> bool:
    """Tell whether what the unshaped paths of a metric's scenario carry changed as the metric did."""
    calibration = metrics.calibration_of(metric)
    if metric == calibration:
        return True
    carried = series.get(calibration, {})
    before = [value for index, value in carried.items() if index < first][-WINDOW:]
    after = [value for index, value in carried.items() if index >= first][:WINDOW]
    found = changepoints.differ(before, after)
    better = (change.difference > 0) == metrics.kind_of(metric).bigger_is_better
    return found is not None and (found > 0) == better


def _besides(last: Night, first: Night) -> dict[str, tuple[str, str]]:
    before = last.beside
    return {
        name: (before[name], value)
        for name, value in first.beside.items()
        if name in before and before[name] != value
    }


def _told(nights: Sequence[Night]) -> Iterator[tuple[Said, int]]:
    """Yield what was told so far, with the index of its first night."""
    index = {night.run_id: number for number, night in enumerate(nights)}
    for night in nights:
        yield from ((said, index[said.first_night]) for said in night.said if said.first_night in index)


def _known(finding: Finding, told: Sequence[tuple[Said, int]]) -> bool:
    """Tell whether a change of the same night and kind was told, with whichever series had it by then."""
    return any(said.first_night == finding.night.run_id and said.kind == finding.kind for said, _ in told)


def _without_told(finding: Finding, told: Sequence[tuple[Said, int]]) -> Finding:
    """Return a finding without the series of which it was told.

    The more nights there are the better is known which was the first, so it may be the next one by now.
    """
    left = [
        shift
        for shift in finding.shifts
        if not any(
            said.metric == shift.metric and said.rose == shift.rose and abs(first - shift.first) < CONFIRMED
            for said, first in told
        )
    ]
    return Finding(finding.night, left, finding.besides)
