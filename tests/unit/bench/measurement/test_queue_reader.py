"""The kernel's messages, as laid out in its headers, and what is made of them."""

from __future__ import annotations

import struct

from bench.measurement import queue_reader

NAMES = {7: "eth0"}


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def traffic(own: int, parent: int, kind: str, stats: bytes, index: int = 7) -> bytes:
    body = struct.pack("=BxxxiIII", 0, index, own, parent, 0)
    return body + attribute(1, kind.encode() + b"\0") + attribute(7, stats)


def test_a_class_has_what_it_sent_dropped_and_holds() -> None:
    stats = attribute(1, struct.pack("=QI", 5_000_000_000, 3)) + attribute(
        3, struct.pack("=5I", 2, 3000, 4, 0, 9)
    )
    said = traffic(0xC0DE0011, 0xC0DE0001, "htb", stats)
    assert queue_reader.queue(said, NAMES) == (
        "eth0",
        "htb",
        "c0de:11",
        "c0de:1",
        5_000_000_000,
        3,
        4,
        3000,
        2,
    )


def test_packets_beyond_32_bits_are_taken_from_where_they_are() -> None:
    stats = attribute(1, struct.pack("=QI", 1, 5)) + attribute(8, struct.pack("=Q", (1 << 32) + 5))
    found = queue_reader.queue(traffic(0x80010000, 0xFFFFFFFF, "tbf", stats), NAMES)
    assert found is not None
    assert found[2:4] == ("8001:", "root")
    assert found[5] == (1 << 32) + 5


def test_what_is_elsewhere_or_no_queue_is_left_out() -> None:
    stats = attribute(1, struct.pack("=QI", 1, 5))
    assert queue_reader.queue(traffic(0, 0xFFFFFFFF, "noqueue", stats), NAMES) is None
    assert queue_reader.queue(traffic(0, 0xFFFFFFFF, "tbf", stats, index=8), NAMES) is None


def test_a_device_has_what_it_sent() -> None:
    counted = struct.pack("=8Q", 1, 2, 3, 4, 0, 0, 0, 5)  # received, sent; packets, bytes
    said = struct.pack("=BxxxII", 0, 7, 1) + attribute(1, counted)
    assert queue_reader.sent(said, NAMES) == ("eth0", "link", "", "", 4, 2, 5, 0, 0)


def test_messages_end_with_the_last_that_is_whole() -> None:
    one = struct.pack("=IHHII", 16 + 3, 36, 0, 0, 0) + b"abc" + b"\0"
    assert list(queue_reader.messages(one + one + bytes(15))) == [(36, b"abc"), (36, b"abc")]
    assert list(queue_reader.messages(struct.pack("=IHHII", 5, 36, 0, 0, 0))) == []


def test_only_what_has_changed_is_said_again() -> None:
    first = ("eth0", "tbf", "8001:", "root", 1, 1, 0, 0, 0)
    other = ("eth1", "tbf", "8001:", "root", 1, 1, 0, 0, 0)
    known: dict[tuple[str, ...], queue_reader.Counter] = {}
    assert queue_reader.changed([first, other], known) == [first, other]
    later = (*first[:4], 2, 2, 0, 0, 0)
    assert queue_reader.changed([later, other], known) == [later]
