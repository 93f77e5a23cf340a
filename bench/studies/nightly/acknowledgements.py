"""``nightly.yaml``: changes that somebody has looked at and takes for right, each with a reason and an end.

One names a glob of series and the first night of the level that is right. It is about the change of that
night: another one of the same series is another, and so is a return (cloud-bulldozer/orion#212).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bench.recording import atomic
from bench.recording.atomic import StoredError
from bench.studies.nightly.night import Night
from bench.studies.nightly.shifts import CONFIRMED
from testbed.scenario.words import Title

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


def read(file: Path, machine: str, must: bool = False) -> Acknowledgements:
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
