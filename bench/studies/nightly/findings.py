"""What is told of a machine's history tonight.

What is worse stands every night until the level is back; an acknowledgement says that it may. All else is
told while it is recent. Series that changed together are one finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from bench.studies.nightly import metrics
from bench.studies.nightly.acknowledgements import Acknowledgement, Acknowledgements
from bench.studies.nightly.changepoints import CONFIRMED
from bench.studies.nightly.night import Night
from bench.studies.nightly.shifts import Kind, Shift

# For so many nights that measured something a change is recent, and a series without a number is followed on.
RECENT = 20
ORDER: Sequence[Kind] = ("worse", "machine", "back", "better")


@dataclass(frozen=True)
class Finding:
    """All series that changed together: in one way, and acknowledged by one entry or by none."""

    kind: Kind
    night: Night  # the first one of the new level
    shifts: Sequence[Shift]
    besides: Mapping[str, tuple[str, str]]  # what else changed then: before and after
    nights: int  # how many it lasts, tonight included
    days: int  # from its first night to tonight
    acknowledged: Acknowledgement | None = None

    @property
    def open(self) -> bool:
        """Whether something is worse, and nobody has said that it may be."""
        return self.kind == "worse" and self.acknowledged is None

    @property
    def pattern(self) -> str:
        """A glob of all its series."""
        return metrics.pattern(shift.metric for shift in self.shifts)


def standing(
    nights: Sequence[Night], shifts: Sequence[Shift], acknowledged: Acknowledgements
) -> list[Finding]:
    """Return what is to be told after the last of these nights, the worst first."""
    today = _day(nights[-1])
    groups: list[list[tuple[Shift, Acknowledgement | None]]] = []
    for shift in _to_tell(nights, shifts):
        by = acknowledged.of(shift.metric, shift.first, nights, today) if shift.kind == "worse" else None
        group = next((each for each in groups if _together(each[0], (shift, by))), None)
        if group is None:
            groups.append([(shift, by)])
        else:
            group.append((shift, by))
    found = [_finding(nights, [shift for shift, _ in group], group[0][1]) for group in groups]
    return sorted(found, key=lambda one: (not one.open, ORDER.index(one.kind)))


def _to_tell(nights: Sequence[Night], shifts: Sequence[Shift]) -> list[Shift]:
    spoke = [index for index, night in enumerate(nights) if not night.silent]
    since = spoke[-RECENT] if len(spoke) >= RECENT else 0
    series = metrics.series(nights)
    followed = [one for one in shifts if one.undone is None and max(series[one.metric]) >= since]
    worse = {shift.metric for shift in followed if shift.kind == "worse"}
    return [
        shift
        for shift in followed
        if shift.kind == "worse" or (shift.first >= since and shift.metric not in worse)
    ]


def _together(one: tuple[Shift, Acknowledgement | None], other: tuple[Shift, Acknowledgement | None]) -> bool:
    """Tell whether two shifts are one finding.

    Noise moves a change by a night or two; two changes of one series are never so near.
    """
    near = abs(one[0].first - other[0].first) < CONFIRMED
    return near and one[0].kind == other[0].kind and one[1] == other[1]


def _finding(nights: Sequence[Night], shifts: Sequence[Shift], by: Acknowledgement | None) -> Finding:
    first = min(shift.first for shift in shifts)
    last = max(shift.last for shift in shifts if shift.first == first)
    return Finding(
        kind=shifts[0].kind,
        night=nights[first],
        shifts=shifts,
        besides=_besides(nights[last], nights[first]),
        nights=len(nights) - first,
        days=(_day(nights[-1]) - _day(nights[first])).days,
        acknowledged=by,
    )


def _besides(last: Night, first: Night) -> dict[str, tuple[str, str]]:
    before = last.beside
    return {
        name: (before[name], value)
        for name, value in first.beside.items()
        if name in before and before[name] != value
    }


def _day(night: Night) -> date:
    return date.fromisoformat(night.started_at[:10])
