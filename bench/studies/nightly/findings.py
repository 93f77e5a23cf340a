"""What is told of a machine's history tonight.

What is worse stands every night until the level is back; an acknowledgement says that it may. All else is
told while it is recent. Series that changed together are one finding. What all of it amounts to is judged
last: may the job go on, must somebody look, or is there nothing to be said?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bench.recording import atomic
from bench.recording.atomic import StoredError
from bench.studies.nightly import metrics
from bench.studies.nightly.night import Night
from bench.studies.nightly.shifts import CONFIRMED, Kind, Shift
from testbed.scenario.words import Title

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


Gate = Literal["broken", "not up", "worse", "no statement", "advice", "acknowledged", "passed"]
# The worst one first.
SENTENCES: dict[Gate, str] = {
    "broken": "a guarantee was violated, or something was not as configured",
    "not up": "a testbed could not be brought up",
    "worse": "something is worse than it was",
    "no statement": "no statement: the machine, or the measurement, and not the guarantee was the limit",
    "advice": "something may be worse than it was",
    "acknowledged": "what is worse than it was is acknowledged",
    "passed": "every guarantee held",
}

# Below so many nights that measured something a finding is advice, and fails nothing.
ADVISORY = 20
# Of so many nights more than this share without a statement make a machine unfit.
LOOKED_AT, SILENT = 20, 0.2


@dataclass(frozen=True)
class Judgement:
    """What came out of both gates."""

    tonight: Gate  # by the night's own verdict
    history: Gate  # by the nights before
    silent: int  # of the last LOOKED_AT nights

    @property
    def gate(self) -> Gate:
        """The worse of both."""
        return next(gate for gate in SENTENCES if gate in (self.tonight, self.history))

    @property
    def sentence(self) -> str:
        """What both say, the worse first; that nothing got worse goes without saying."""
        both = {self.tonight, self.history if self.history != "passed" else self.tonight}
        text = "; ".join(SENTENCES[gate] for gate in SENTENCES if gate in both)
        return f"{text[0].upper()}{text[1:]}"

    @property
    def unfit(self) -> bool:
        """Whether this machine says nothing too often."""
        return self.silent > SILENT * LOOKED_AT


def judge(nights: Sequence[Night], findings: Sequence[Finding]) -> Judgement:
    """Judge the last of these nights: gate one by its own verdict, gate two by what it shows of others."""
    spoke = sum(not night.silent for night in nights)
    silent = sum(night.silent for night in nights[-LOOKED_AT:])
    return Judgement(_tonight(nights[-1]), _history(findings, advisory=spoke < ADVISORY), silent)


def _tonight(night: Night) -> Gate:
    if night.blocks:
        return "broken"
    if any(one.verdict == "failed" for one in night.scenarios.values()):
        return "not up"
    return "no statement" if night.silent else "passed"


def _history(findings: Sequence[Finding], advisory: bool) -> Gate:
    if any(finding.open for finding in findings):
        return "advice" if advisory else "worse"
    return "acknowledged" if any(finding.kind == "worse" for finding in findings) else "passed"


_TIME = re.compile(r"[0-9]{8}T[0-9]{6}Z")
NEAREST = 3  # nights that are named where one does not exist

Words = Annotated[Title, Field(min_length=1)]


class Acknowledgement(BaseModel):
    """One entry."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    metric: Words  # a glob, as in contmec/*/mean
    first_night: Words  # the run id of the first night of the new level
    reason: Words
    who: Words
    until: date  # the last day on which it holds

    @field_validator("until", mode="before")
    @classmethod
    def _day(cls, value: object) -> object:
        if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            raise ValueError("a day is written as in 2027-01-31")
        return value

    def covers(self, metric: str) -> bool:
        """Tell whether it is about a metric: by name, or as a glob whose ``*`` is anything, slashes too."""
        return metric == self.metric or fnmatchcase(metric, self.metric)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    acknowledgements: list[Acknowledgement] = []


@dataclass(frozen=True)
class Acknowledgements:
    """Those of one machine, in a file."""

    file: Path
    entries: Sequence[Acknowledgement] = ()

    def check(self, nights: Sequence[Night]) -> None:
        """Raise StoredError for a first night that this history should have, and has not.

        A history that was lost, and begun anew since, has it no more; that is no mistake.
        """
        known = [night.run_id for night in nights]
        for number, entry in enumerate(self.entries):
            if entry.first_night in known or _lost(entry, known):
                continue
            nearest = sorted(known, key=lambda one: _distance(one, entry.first_night))[:NEAREST]
            raise StoredError(
                self.file,
                f"acknowledgements[{number}].first_night: there is no night {entry.first_night!r} in the "
                f"history of {entry.machine} (nearest: {', '.join(sorted(nearest)) or 'none'})",
            )

    def of(self, metric: str, first: int, nights: Sequence[Night], today: date) -> Acknowledgement | None:
        """Return the entry for a change of a metric, of which ``first`` is the first night's index.

        The more nights there are the better is known which was the first, so it may be the next one by now;
        CONFIRMED nights later it would be another change.
        """
        index = {night.run_id: number for number, night in enumerate(nights)}
        return next(
            (
                entry
                for entry in self.entries
                if entry.until >= today
                and entry.covers(metric)
                and abs(first - index.get(entry.first_night, -CONFIRMED)) < CONFIRMED
            ),
            None,
        )

    def warnings(self, nights: Sequence[Night], metrics: Iterable[str], today: date) -> Iterator[str]:
        """Yield what is the matter with entries that can be read."""
        names, known = list(metrics), {night.run_id for night in nights}
        for number, entry in enumerate(self.entries):
            where = f"{self.file}: acknowledgements[{number}]"
            if entry.until < today:
                yield f"{where}: it expired on {entry.until}, and holds no more"
            elif not any(entry.covers(name) for name in names):
                nearest = max(names, key=lambda name: _alike(name, entry.metric), default="none")
                yield f"{where}.metric: {entry.metric!r} matches nothing (nearest: {nearest})"
            elif entry.first_night not in known:
                yield f"{where}.first_night: {entry.first_night!r} is from before this history"


def read_acknowledgements(file: Path, machine: str, must: bool = False) -> Acknowledgements:
    """Return the acknowledgements of a machine; one that need not be there is empty. Raises StoredError."""
    if not must and not file.exists():
        return Acknowledgements(file)
    found = atomic.read_yaml(file, _File)
    return Acknowledgements(file, [entry for entry in found.acknowledgements if entry.machine == machine])


def _lost(entry: Acknowledgement, known: Sequence[str]) -> bool:
    """Tell whether a night is from before all that is known: names begin with their time."""
    named = _TIME.match(entry.first_night)
    return named is not None and all(entry.first_night[:16] < one[:16] for one in known)


def _alike(one: str, other: str) -> int:
    """Return with how many characters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _distance(one: str, other: str) -> int:
    return abs(_number(one) - _number(other))


def _number(name: str) -> int:
    return int("".join(filter(str.isdecimal, name[:16])) or 0)
