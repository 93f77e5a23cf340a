"""How many programs began on this machine while traffic flowed? An observation in one file, from outside.

CONCORDE_EXTENSIONS=docs/examples/forks_observation.py ./invokew bench

Each takes a processor for a moment, and a busy shell script begins a thousand a second: so many, and it was
not the neighbours that took the time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from bench.observations.causes import Cause
from bench.observations.observation import NOT_RECORDED, Column, Evidence, Observation, Scene, Seen, register
from bench.recording.records import Repetition
from testbed.scenario.words import Part


class Limit(Part):
    """A scenario's settings.observation.forks."""

    # The harness itself begins a few before and after the traffic.
    most: float = Field(500.0, gt=0, description="programs a second; with more a run proves nothing")


class Count(NamedTuple):
    """What there was at one moment."""

    forks: int  # since the machine started: proc(5), ``processes`` in /proc/stat
    moment: float  # seconds, of the monotonic clock


class Forks(Observation):
    """Looks right before the traffic and right after it."""

    name = "forks"
    settings = Limit()

    def before(self, scene: Scene) -> Count:
        """Return how many there were."""
        fields = dict(line.split(maxsplit=1) for line in Path("/proc/stat").read_text("ascii").splitlines())
        return Count(int(fields["processes"]), time.monotonic())

    def after(self, scene: Scene, before: Count) -> Seen:
        """Return how many there were meanwhile, and how many a second."""
        now = self.before(scene)
        forks = now.forks - before.forks
        return Seen(record={"forks": forks, "per_second": round(forks / (now.moment - before.moment), 1)})

    def causes(self, evidence: Evidence) -> Iterator[Cause]:
        """Yield each repetition with too many."""
        most = self.settings.most
        for number, repetition in enumerate(evidence.record.repetitions):
            rate = _per_second(repetition)
            if rate is not None and rate > most:
                text = f"repetition-{number}: {rate:g} programs a second began here (at most {most:g})"
                yield Cause(kind="machine", text=text, repetition=number, observed=rate, required=most)


def _per_second(repetition: Repetition) -> float | None:
    """Return what was recorded; None: the observation was not made."""
    found = repetition.observed.get(Forks.name)
    return None if found is None else float(found["per_second"])


def _cell(repetition: Repetition) -> str:
    rate = _per_second(repetition)
    return NOT_RECORDED if rate is None else f"{rate:g}"


Forks.columns = (Column("forks/s", "programs that began on this machine, a second", _cell),)
register(Forks())
