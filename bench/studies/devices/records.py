"""What a study of devices leaves beside recordings, field by field: ``measured/`` in its directory.

Times are seconds, sizes bytes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bench.recording.records import Entry, Time, Took
from bench.studies.machine import Meanwhile
from bench.studies.packets import Offered

Count = Annotated[int, Field(ge=0)]


class Exchanged(Entry):
    """Exchanges with the device, each by a connection, or from a port, of its own."""

    protocol: Literal["tcp", "udp"]
    count: Count  # that were due
    lost: dict[str, Count]  # without an answer, by what became of them
    took: Took
    late_p99_s: Time  # the generator's own lateness
    late_s: Time | None = None  # the same at a lower quantile, where exchanges are few; null: p99


class Flow(Entry):
    """One flow of TCP to the device."""

    bytes: Count  # of payload, by the receiver
    seconds: Time
    beside: Meanwhile


class Visit(Entry):
    """One way, once."""

    way: str
    exchanged: list[Exchanged]
    flow: Flow
    offered: Offered


class Round(Entry):
    """``measured/round-<number>.json``: all ways, one after the other, on one testbed."""

    schema_version: Literal[1] = 1
    round: Count
    visits: list[Visit]  # in the order in which they were made


class Held(Entry):
    """What a proxy pod holds."""

    processes: Count  # that relay
    bytes: Count  # of their memory, proportional set size
    sockets: Count
    tracked: Count  # flows that the kernel keeps track of, in the pod and on its node


class Handlers(Entry):
    """A connection of so many handlers, at rest."""

    way: str
    handlers: Count
    held: Held


class AtRest(Entry):
    """``measured/handlers.json``."""

    schema_version: Literal[1] = 1
    connections: list[Handlers]


class Clients(Entry):
    """Many clients by UDP of one way: a datagram each, and then nothing."""

    way: str
    clients: Count
    answered: Count
    before: Held
    at_once: Held  # when all were answered
    after: Held
    gone_s: Time | None  # until nothing was left of them; null: something is, after ``waited_s``
    waited_s: Time


class AllClients(Entry):
    """``measured/clients.json``."""

    schema_version: Literal[1] = 1
    clients: list[Clients]
