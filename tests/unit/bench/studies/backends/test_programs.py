"""The programs' parts that need no network."""

from __future__ import annotations

import socket
import struct

from bench.studies.backends.probes.programs.entries import changes
from bench.studies.backends.probes.programs.streams import Arrivals

DEL_ROUTE, NEW_NEIGHBOUR, DEL_NEIGHBOUR = 25, 28, 29
AF_BRIDGE = 7


def message(kind: int, body: bytes) -> bytes:
    length = 16 + len(body)
    return struct.pack("=IHHII", length, kind, 0, 0, 0) + body + bytes(-length % 4)


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def route(network: str, bits: int, table: int = 254, kind: int = 1) -> bytes:
    header = struct.pack("=BBBBBBBBI", socket.AF_INET, bits, 0, 0, table, 4, 0, kind, 0)
    return header + attribute(1, socket.inet_aton(network))


def neighbour(family: int, address: str | None) -> bytes:
    header = struct.pack("=BBHiHBB", family, 0, 0, 7, 0x80, 0, 0)
    remote = attribute(1, socket.inet_aton(address)) if address else b""
    return header + attribute(2, bytes(6)) + remote


def test_runs_are_stretches_of_which_no_packet_is_missing() -> None:
    arrivals = Arrivals(2)
    for number in (0, 1, 2, 5, 6):
        arrivals.take(0, number, 1000 + number)
    arrivals.take(1, 7, 2000)
    assert arrivals.runs == [[[0, 1000, 2, 1002], [5, 1005, 6, 1006]], [[7, 2000, 7, 2000]]]


def test_a_packet_that_was_overtaken_breaks_no_run() -> None:
    arrivals = Arrivals(1)
    for number in (0, 1, 1, 0, 2):
        arrivals.take(0, number, number)
    assert arrivals.runs == [[[0, 0, 2, 2]]]


def test_all_arrive_once_none_was_missing_for_a_while() -> None:
    arrivals = Arrivals(2)
    for number in range(50, 201):
        arrivals.take(0, number, number)
    assert not arrivals.steady(50)  # nothing of the second pair
    for number in range(120, 201):
        arrivals.take(1, number, number)
    assert not arrivals.steady(50)
    for number in range(201, 221):
        arrivals.take(0, number, number)
        arrivals.take(1, number, number)
    assert arrivals.steady(50)
    assert not arrivals.steady(130)  # not for so long after that round


def test_routes_and_forwarding_entries_are_told_and_nothing_else() -> None:
    datagram = b"".join(
        [
            message(DEL_ROUTE, route("10.1.2.0", 24)),
            message(DEL_ROUTE, route("10.1.3.0", 24, table=101)),
            message(DEL_ROUTE, route("10.1.3.1", 32, table=255, kind=2)),  # an address of the node's own
            message(DEL_NEIGHBOUR, neighbour(AF_BRIDGE, "192.168.1.2")),
            message(NEW_NEIGHBOUR, neighbour(AF_BRIDGE, None)),  # of a bridge without remote nodes
            message(NEW_NEIGHBOUR, neighbour(socket.AF_INET, "10.1.2.2")),  # ARP's
            message(99, b"whatever this is"),
        ]
    )
    assert list(changes(datagram)) == [
        ("del", "route", "10.1.2.0/24"),
        ("del", "route", "10.1.3.0/24"),
        ("del", "forwarding", "192.168.1.2"),
    ]


def test_what_is_cut_off_ends_nothing() -> None:
    whole = message(DEL_ROUTE, route("10.1.2.0", 24))
    for length in range(len(whole)):
        list(changes(whole[:length]))
    assert list(changes(struct.pack("=IHHII", 3, DEL_ROUTE, 0, 0, 0))) == []
