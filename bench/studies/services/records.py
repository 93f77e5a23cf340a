"""What a study of services leaves beside recordings, field by field: ``measured/`` in its directory.

Times are seconds, sizes bytes at layer 2.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bench.recording.records import Delayed, Entry, Time, Took

Count = Annotated[int, Field(ge=0)]


class Asked(Entry):
    """What one zone asked."""

    zone: str
    count: Count  # exchanges that were due
    lost: dict[str, Count]  # without an answer, by what became of them
    took: Took
    late_p99_s: Time  # the generator's own lateness
    # The same at a lower quantile, where exchanges are too few for p99 (``statistics.supported``); null: p99.
    late_s: Time | None = None
    answered: dict[str, Count]  # by endpoint, as the endpoints themselves counted


class Trunk(Entry):
    """What passed a zone's trunk, by its own counters."""

    zone: str
    out_bytes: Count  # of the zone
    in_bytes: Count


class Changed(Entry):
    """Something that happened while requests were under way."""

    what: str
    at_s: Time  # after the first was due
    known_s: Time  # until the kernels of all nodes had what follows


class Run(Entry):
    """``measured/<case>/<mode>.json``: requests of all zones at once."""

    schema_version: Literal[1] = 1
    case: str
    mode: str
    seconds: Time  # for which requests were due
    known_s: Time  # as in Changed, of what is known at the start
    hinted: dict[str, Count]  # endpoints that are hinted, by zone
    why_not: str | None  # why none is, in the words of the safeguard
    used: dict[str, list[str]]  # endpoints, by the zone whose nodes lead there
    asked: list[Asked]
    took: Took  # all of them
    trunks: list[Trunk]
    delayed: list[Delayed] | None  # what the trunks' delays did; null: nothing delays
    changes: list[Changed] = Field([])
    out_s: Time = 0.0  # how long an endpoint was not there, all of them together
