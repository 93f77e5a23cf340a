"""What a study of backends leaves beside recordings, field by field: ``measured/`` in its directory.

Moments are nanoseconds of the machine's monotonic clock; rates are bits per second; sizes are bytes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bench.recording.records import Entry
from bench.studies.machine import Meanwhile
from bench.studies.packets import Offered

Count = Annotated[int, Field(ge=0)]


class Cost(Entry):
    """``measured/<backend>/cost-<round>.json``: processor time, on one fresh pair of nodes."""

    schema_version: Literal[1] = 1
    backend: str
    round: Count
    offered: list[Offered]


class Flow(Entry):
    """One flow of TCP."""

    backend: str
    bits_per_second: float  # payload, by the receiver
    beside: Meanwhile


class Throughput(Entry):
    """``measured/throughput-<round>.json``: fresh pairs of nodes of all backends, side by side, by turns."""

    schema_version: Literal[1] = 1
    round: Count
    flows: list[Flow]  # in the order in which they flowed


# With what an exchange is the first one, or that it is none.
Kind = Literal["node", "pod", "known"]


class Exchange(Entry):
    """One exchange of a byte, by a new connection of TCP."""

    kind: Kind  # what it was the first one with
    to: str  # the pod
    ns: int | None  # that it took; None: it did not end in time


class Exchanges(Entry):
    """``measured/<backend>/first-<round>.json``: the first exchanges of a pod with those of other nodes."""

    schema_version: Literal[1] = 1
    backend: str
    round: Count
    exchanges: list[Exchange]


class Entries(Entry):
    """What a node's kernel has for the cluster's other nodes."""

    routes: Count
    neighbours: Count
    forwarding: Count


class Event(Entry):
    """Something that happens to one node of the cluster."""

    name: Literal["leave", "join", "change", "kill", "restart", "silence", "return"]
    begun_ns: int
    done_ns: int  # when the testbed had done what it does; what daemons do begins there


class DaemonUse(Entry):
    """The daemons of one name, on all nodes together."""

    name: str
    processes: Count
    bytes: Count  # of memory, proportional set size


Run = tuple[int, int, int, int]  # number and moment of arrival of the first packet, and of the last
Error = tuple[int, int]  # moment, errno
Late = tuple[int, int]  # moment, nanoseconds
# Moment, place among ``watched``, and what became of an entry: "add" or "del", "route" or "forwarding", and
# the network or the node's address that it leads to.
Change = tuple[int, int, str, str, str]


class Streams(Entry):
    """The probe streams."""

    interval_ns: int  # that was asked for
    begun_ns: int
    ended_ns: int
    rounds: Count  # packets sent for each pair
    late: list[Late]  # the rounds that were later than 10 ms
    pairs: list[tuple[str, str]]  # nodes, from and to
    runs: list[list[Run]]  # of each pair
    errors: list[list[Error]]  # the first ones of each pair


class Nodes(Entry):
    """``measured/<backend>/nodes-<number>.json``: a cluster of so many nodes, and one that moves."""

    schema_version: Literal[1] = 1
    backend: str
    nodes: Count
    up_s: float  # until all pods reached each other, as far as is known
    rest: Entries  # of the first worker, before anything was said
    talking: Entries  # with streams to and from one other node
    daemons: list[DaemonUse]
    node: str  # the one that moves
    subnet: str  # of its pods
    addresses: list[str]  # its own on the underlay, before and after it changes
    watched: list[str]  # the other nodes, by whose places changes go
    events: list[Event]
    streams: Streams
    changes: list[Change]  # of entries that lead to the node
    changes_lost: bool  # the kernel had more to say than was read
