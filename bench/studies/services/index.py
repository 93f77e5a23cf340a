"""``services.json``: which recording is which promise's, and what was measured of each case and mode.

Times are seconds, sizes bytes, loads shares of what an endpoint would have if all ready ones had as much.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from bench.recording.records import Took
from bench.studies.study import Stored, read_index
from testbed.scenario.words import Title

INDEX = "services.json"


class Row(Stored):
    """A promise to a service of another zone, recorded."""

    case: Title
    recording: str | None = None  # its directory within the study; None: there is none
    reason: str | None = None  # why there is none
    verdict: str | None = None
    attained: float | None = None  # of what was promised, the mean, while others want the trunk


class Autoscaled(Stored):
    """What an autoscaler makes of the load of a case, and what it would take."""

    wanted: int  # endpoints, by the mean of all
    needed: dict[str, int]  # where each zone's requests go: by zone, endpoints that they need
    there: dict[str, int]  # those that they have


class Measured(Stored):
    """One case in one mode."""

    case: Title
    mode: Title
    seconds: float
    requests: int
    lost: int
    took: Took
    by_zone: dict[Title, Took]  # of who asks
    hinted: dict[Title, int]  # endpoints, by zone
    why_not: str | None  # why no endpoint is hinted
    between_bytes: int  # that left a zone
    of_off: float | None  # the same for each request, as a share of what it is without hints; null: unknown
    known_s: float  # until the kernels of all nodes had what is known, at most
    even: float  # requests of an endpoint if all ready ones had as many
    expected: dict[Title, float] | None  # load, by endpoint; null: it changes meanwhile
    load: dict[Title, float]  # as the endpoints counted
    likely: float | None  # a difference from what is expected as large as this one, by chi-squared
    autoscaled: Autoscaled | None
    changes: int = 0
    out_s: float = 0.0  # how long some endpoint was not there
    invalid: list[str] = Field([])

    @property
    def between_each(self) -> float:
        """Bytes between zones for each request."""
        return self.between_bytes / self.requests

    @property
    def worst(self) -> float:
        """The load of the endpoint that has most."""
        return max(self.load.values())

    @property
    def worst_expected(self) -> float | None:
        """The same, as it is expected."""
        return None if self.expected is None else max(self.expected.values())


class Services(Stored):
    """``services.json``; one that is kept has no results, for they are made of what is kept with it."""

    schema_version: Literal[1] = 1
    rows: list[Row] = Field([])
    results: list[Measured] = Field([])  # in the order of cases, then of modes

    @property
    def measured(self) -> dict[str, dict[str, Measured]]:
        """The results by case and mode."""
        found: dict[str, dict[str, Measured]] = {}
        for one in self.results:
            found.setdefault(one.case, {})[one.mode] = one
        return found


def read(directory: Path) -> Services:
    """Return a study. Raises StoredError."""
    return read_index(directory / INDEX, Services)
