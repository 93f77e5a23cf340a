"""What the relay does with packets, between sockets instead of TAP devices."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed.links import relay
from testbed.links.relay import STEPS, Direction

MS = 1_000_000  # nanoseconds
LATE = MS // 2


class Noted:
    """See testbed.links.relay.Arrivals: when each packet came, in their order; the others were not noted."""

    def __init__(self) -> None:
        self.came: list[int] = []

    def next(self, since: int) -> int:
        return self.came.pop(0) if self.came else since


@dataclass
class Ends:
    """Both ends of a direction, as the kernel has them: each datagram is a packet."""

    sender: socket.socket
    receiver: socket.socket
    direction: Direction
    noted: Noted

    def received(self) -> list[bytes]:
        found = []
        while True:
            try:
                found.append(self.receiver.recv(100_000))
            except BlockingIOError:
                return found


@pytest.fixture
def ends() -> Iterator[Ends]:
    sender, source = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sink, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with sender, source, sink, receiver:
        for one in (sender, source, sink, receiver):
            one.setblocking(False)
        noted = Noted()
        direction = Direction(source.fileno(), sink.fileno(), "none", 10_000, noted)
        yield Ends(sender, receiver, direction, noted)


def due(ends: Ends) -> list[int]:
    return [moment for moment, _ in ends.direction.queue]


def test_packets_leave_in_their_order_when_they_are_due(ends: Ends) -> None:
    for packet in (b"one", b"two", b"three"):
        ends.sender.send(packet)
    ends.direction.take(0)
    ends.direction.give(due(ends)[0] - 1, LATE)
    assert ends.received() == []
    ends.direction.give(time.monotonic_ns(), LATE)
    assert ends.received() == [b"one", b"two", b"three"]
    assert ends.direction.held == 0
    assert not ends.direction.queue


def test_a_packet_is_due_by_when_it_came_and_not_by_when_it_was_read(ends: Ends) -> None:
    now = time.monotonic_ns()
    ends.noted.came = [now - 4 * MS, now - 3 * MS]
    for packet in (b"one", b"two"):
        ends.sender.send(packet)
    ends.direction.take(5 * MS)
    assert due(ends) == [now + MS, now + 2 * MS]


def test_what_was_read_only_after_it_was_due_is_late(ends: Ends) -> None:
    ends.noted.came = [time.monotonic_ns() - 8 * MS]
    ends.sender.send(b"one")
    ends.direction.take(5 * MS)
    ends.direction.give(time.monotonic_ns(), LATE)
    told = ends.direction.said()
    assert (told["frames"], told["late"]) == (1, 1)
    assert float(str(told["worst_s"])) >= 0.003


def test_what_nobody_noted_may_have_come_since_there_was_nothing_to_read(ends: Ends) -> None:
    ends.direction.take(5 * MS)
    looked = ends.direction.looked
    ends.sender.send(b"one")
    ends.direction.take(5 * MS)
    assert due(ends) == [looked + 5 * MS]


def test_no_packet_came_later_than_it_was_read(ends: Ends) -> None:
    ends.noted.came = [time.monotonic_ns() + 3600 * 10**9]  # the wall clock was set meanwhile
    ends.sender.send(b"one")
    ends.direction.take(5 * MS)
    assert due(ends)[0] <= time.monotonic_ns() + 5 * MS


def test_no_more_is_held_than_there_is_room_for(ends: Ends) -> None:
    for _ in range(100):
        ends.sender.send(bytes(1000))
        ends.direction.take(5 * MS)
    assert ends.direction.held <= 10_000 + 1000 + relay.FRAME_BYTES
    kept = len(ends.direction.queue)
    assert ends.direction.said()["dropped"] == 100 - kept
    assert ends.direction.said()["dropped"] == 0  # it counts anew


def test_what_the_kernel_does_not_take_is_lost_and_counted(ends: Ends) -> None:
    ends.sender.send(b"one")
    ends.direction.take(5 * MS)
    ends.receiver.close()
    ends.direction.give(due(ends)[0], LATE)
    told = ends.direction.said()
    assert (told["frames"], told["dropped"]) == (1, 1)


@pytest.mark.parametrize(("behind_us", "step"), [(0, 0), (1, 1), (2, 2), (1000, 10), (10**9, STEPS - 1)])
def test_lateness_is_counted_in_powers_of_two(ends: Ends, behind_us: int, step: int) -> None:
    ends.direction.queue.append((5 * MS, b"one"))
    ends.direction.give(5 * MS + behind_us * 1000, LATE)
    assert ends.direction.lateness[step] == sum(ends.direction.lateness) == 1


def test_who_does_not_answer_says_so(tmp_path: os.PathLike[str]) -> None:
    assert str(relay.ask(f"{tmp_path}/nobody")).startswith("the relay does not answer: ")


def test_a_packet_that_cannot_be_read_is_lost_and_the_next_one_is_not(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, refused = os.read, [OSError(errno.EINVAL, "no words for it")]

    def refuses_one(source: int, size: int) -> bytes:
        if refused:
            raise refused.pop()
        return read(source, size)

    ends.sender.send(b"two")
    monkeypatch.setattr(os, "read", refuses_one)
    second = time.monotonic_ns()
    ends.noted.came = [second - MS, second]
    ends.direction.take(0)
    assert due(ends) == [second]
    ends.direction.give(time.monotonic_ns(), LATE)
    assert ends.received() == [b"two"]
    assert ends.direction.said()["dropped"] == 1


def test_a_device_that_is_gone_ends_the_relay(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(source: int, size: int) -> bytes:
        raise OSError(errno.EBADFD, "gone")

    monkeypatch.setattr(os, "read", gone)
    with pytest.raises(OSError, match="gone"):
        ends.direction.take(0)


@pytest.mark.parametrize(
    ("processors", "parts"), [([3], [[3]]), ([0, 1], [[0], [1]]), ([0, 2, 5], [[0, 5], [2]])]
)
def test_each_processor_has_one_that_waits_on_it(processors: list[int], parts: list[list[int]]) -> None:
    assert relay.halves(processors) == parts
