"""``backends.json``: which recording is whose, and what was measured of each backend.

Seconds, nanoseconds, bits per second, bytes. What was asked for and not measured is null; what makes a
measurement invalid is said in words, and its number is left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from bench.studies.study import Spread, Stored, read_index
from testbed.scenario.words import Title

INDEX = "backends.json"
# What can be measured of a datapath, in the order in which it is.
GUARANTEE: Final = "guarantee"
ROUND_TRIP: Final = "round-trip"
THROUGHPUT: Final = "throughput"
COST: Final = "cost"
FIRST: Final = "first"
NODES: Final = "nodes"
# A time says nothing if the probes were late meanwhile by more than this, and by more than a tenth of it.
LATE_S, LATE_SHARE = 0.02, 0.1
PARTS = (GUARANTEE, ROUND_TRIP, THROUGHPUT, COST, FIRST, NODES)


class PacketCost(Stored):
    """Processor time for one packet from pod to pod, of all processors together."""

    size: int  # bytes of payload
    rate: int  # packets a second
    ns: Spread | None  # of the valid runs
    invalid: list[str] = Field([])  # why others are not


class First(Stored):
    """The first exchange with something, and those with what is known."""

    kind: Literal["node", "pod", "known"]
    p50_ns: float
    p95_ns: float
    count: int
    failed: int  # that did not end in time, and are in no percentile


class Convergence(Stored):
    """What an event comes to; null: it did not happen within the time that was given."""

    event: Literal["leave", "join", "change", "kill", "restart", "silence", "return"]
    arrive_s: float | None = None  # until packets between the node and every other one arrive again
    gone_s: float | None = None  # until no other node has an entry that leads there
    given_s: float  # how long was waited
    late_s: float  # by how much the probes were late meanwhile, at most; 0: by less than 10 ms

    @property
    def too_late(self) -> bool:
        """Whether the probes were too late for the time that it says."""
        return self.arrive_s is not None and self.late_s > max(LATE_S, LATE_SHARE * self.arrive_s)


class Size(Stored):
    """A cluster of so many nodes."""

    nodes: int
    up_s: float
    rest: int  # entries of one node for all others: routes, neighbours, forwarding entries
    talking: int  # while it talks with one of them
    daemon_bytes: int  # of memory, all daemons together
    daemons: int
    interval_ms: float  # of the probe streams, as it came out
    events: list[Convergence]
    invalid: list[str] = Field([])


class RoundTrip(Stored):
    """One kind of requests, of their recording: from when they were sent."""

    name: Title
    p50_s: float | None  # of those that were answered; null: none was
    p99_s: float | None
    late_p99_s: float | None  # how late the generator sent them
    lost: int
    count: int


class Measured(Stored):
    """What was measured of a backend."""

    throughput_bps: Spread | None = None
    of_first: Spread | None = None  # the throughput as a share of the first backend's, round by round
    throughput_invalid: list[str] = Field([])
    cost: list[PacketCost] = Field([])
    first: list[First] = Field([])
    round_trips: list[RoundTrip] = Field([])
    sizes: list[Size] = Field([])


RecordedPart = Literal["guarantee", "round-trip"]


class Row(Stored):
    """One recording of a backend, or why there is none."""

    backend: Title
    part: RecordedPart
    scenario: Title
    recording: str | None = None  # its directory within the study; None: there is none
    reason: str | None = None  # why it cannot be run
    verdict: str | None = None


class Backends(Stored):
    """``backends.json``."""

    schema_version: Literal[1] = 1
    backends: list[Title] = Field([])  # in the order of the table
    cannot: dict[Title, str] = Field({})  # backends that this machine cannot run, and why
    parts: list[Title] = Field([])  # that were asked for
    rows: list[Row] = Field([])
    measured: dict[Title, Measured] = Field({})


def read(directory: Path) -> Backends:
    """Return a study. Raises StoredError."""
    return read_index(directory / INDEX, Backends)
