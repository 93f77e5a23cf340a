"""Every lasting change of every series of a machine's history: from which level, to which, and is it undone?

Pure functions of the history. Nothing of it is kept from night to night: whoever is killed, or goes through
a night again, comes to the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from bench.studies.nightly import changepoints, metrics
from bench.studies.nightly.changepoints import WINDOW, Change, Level
from bench.studies.nightly.night import Night

Kind = Literal["worse", "better", "back", "machine"]


@dataclass(frozen=True)
class Shift:
    """One series that has another level from a night on; levels are means, in the series' unit."""

    metric: str
    first: int  # the index of that night
    last: int  # and of the last one before that has the series
    change: Change  # from the level before to the one from that night on
    now: Change  # from the same level before to the one of tonight
    kind: Kind
    undone: int | None = None  # the index of the first night that was as before again


def of(nights: Sequence[Night]) -> list[Shift]:
    """Return all changes of a history, in the order of their nights."""
    series = metrics.series(nights)
    found = [shift for metric in series for shift in _of(metric, series)]
    return sorted(found, key=lambda shift: shift.first)


def _of(metric: str, series: Mapping[str, Mapping[int, float]]) -> list[Shift]:
    indices = list(series[metric])
    levels = changepoints.levels(list(series[metric].values()))
    found: list[tuple[Level, Shift]] = []  # each with the level before it
    for before, after in pairwise(levels):
        first, change = indices[after.at], _change(before, after)
        undoes = [each.undone is None and _undone(level, after, each.change) for level, each in found]
        restored = any(undo and not _better(each) for undo, (_, each) in zip(undoes, found, strict=True))
        found = [
            (level, replace(each, undone=first) if undo else each)
            for undo, (level, each) in zip(undoes, found, strict=True)
        ]
        shift = Shift(metric, first, indices[after.at - 1], change, _change(before, levels[-1]), "worse")
        found.append((before, replace(shift, kind=_kind(shift, series, restored))))
    return [shift for _, shift in found]


def _change(before: Level, after: Level) -> Change:
    return changepoints.change(after.at, before.values, after.values)


def _undone(before: Level, now: Level, change: Change) -> bool:
    """Tell whether a level is no longer seen to differ, in a change's direction, from the one before it."""
    left = changepoints.differ(before.values[-WINDOW:], now.values[:WINDOW])
    return left is None or (left > 0) != (change.difference > 0)


def _kind(shift: Shift, series: Mapping[str, Mapping[int, float]], restored: bool) -> Kind:
    if _better(shift) and restored:
        return "back"
    if _machine(shift, series):
        return "machine"
    return "better" if _better(shift) else "worse"


def _better(shift: Shift) -> bool:
    return (shift.change.difference > 0) == metrics.kind_of(shift.metric).bigger_is_better


def _machine(shift: Shift, series: Mapping[str, Mapping[int, float]]) -> bool:
    """Tell whether what the unshaped paths of a series' scenario carry changed as the series did."""
    calibration = metrics.calibration_of(shift.metric)
    if shift.metric == calibration:
        return True
    carried = series.get(calibration, {})
    before = [value for index, value in carried.items() if index < shift.first][-WINDOW:]
    after = [value for index, value in carried.items() if index >= shift.first][:WINDOW]
    found = changepoints.differ(before, after)
    return found is not None and (found > 0) == _better(shift)
