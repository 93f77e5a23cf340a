"""``devices.json``: which recording is which promise's, and what was measured of each way.

Times are seconds, rates bits per second, sizes bytes. What makes a measurement invalid is said in words, and
its number is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from bench.studies.devices.records import Clients, Handlers
from bench.studies.study import Spread, Stored, read_index
from testbed.scenario.words import Title

INDEX = "devices.json"


class Row(Stored):
    """Promises on a segment's link, recorded under one enforcement."""

    case: Title  # the enforcement
    recording: str | None = None  # its directory within the study; None: there is none
    reason: str | None = None  # why there is none
    verdict: str | None = None
    attained: dict[Title, float] = Field({})  # of what each connection is promised, the mean under a flood


class Measured(Stored):
    """One way; spreads are over rounds."""

    way: Title
    p50_s: dict[str, Spread] = Field({})  # of a new exchange, by protocol, from when it was due
    p99_s: dict[str, Spread] = Field({})
    lost: int = 0  # exchanges
    exchanges: int = 0
    bits_per_second: Spread | None = None
    per_gigabyte_s: Spread | None = None  # processors' time for 10^9 bytes of a flow, both ends' included
    per_packet_ns: Spread | None = None  # the same for a datagram
    # As shares of the same round's ``direct``.
    p50_of_direct: Spread | None = None  # by TCP
    rate_of_direct: Spread | None = None
    cost_of_relay: Spread | None = None  # per byte, as a share of the same round's ``relay``
    invalid: list[str] = Field([])


class Devices(Stored):
    """``devices.json``: all of it can be made again of what is kept beside it."""

    schema_version: Literal[1] = 1
    rows: list[Row] = Field([])
    ways: list[Measured] = Field([])
    handlers: list[Handlers] = Field([])
    clients: list[Clients] = Field([])

    @property
    def by_way(self) -> dict[str, Measured]:
        """The ways, by name."""
        return {one.way: one for one in self.ways}


def read(directory: Path) -> Devices:
    """Return a study. Raises StoredError."""
    return read_index(directory / INDEX, Devices)
