"""Sends each request when it is due, whatever has become of the others, and takes its time (open loop).

Run as a program in a pod's network, with its wishes as JSON in its first argument. It says by an empty line
among its errors that it is ready, begins with a line from its standard input, and in the end writes to its
standard output, as gzip, a line of JSON behind a ``#`` about itself, and then CSV: a line for each exchange,
in the order in which they were due. Standard library alone, Python 3.9 or newer: it runs on
nodes.

An exchange's times are those of this machine's monotonic clock, in seconds since the first was due:

* ``due_s``: when it should be sent: k / rate;
* ``sent_s``: when this program came to it. What lies between is the program's own lateness;
* ``answered_s``: when the answer was at this machine, as its kernel says (SO_TIMESTAMPNS), so that it does
  not matter when this program came to read it; empty if there was none;
* ``status``: answered; late, if that took longer than ``patience``; lost; or the name of the system's error;
* ``round_trip_s``: TCP's own smoothed round trip at that moment (tcpi_rtt in the kernel's linux/tcp.h).

With protocol ``icmp`` it sends what ping sends, which the kernel answers.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import gzip
import json
import os
import resource
import select
import socket
import struct
import sys
import time
from array import array
from collections import deque
from contextlib import suppress
from typing import Any

NS = 1_000_000_000
CONNECT_SECONDS = 10.0
HEADER = struct.Struct("!Q8s")  # of a message, and of its answer: the exchange's number, the run's token
COLUMNS = "due_s,sent_s,answered_s,status,round_trip_s"
# What is woken by a timer comes 0.01 to 0.3 ms late: a processor has to wake first. So it is woken earlier,
# by at most this share of the time between two exchanges, and this time, and turns until an exchange is due.
EARLY_SHARE, EARLY_NS = 0.05, 200_000
AT_ONCE = 32  # events that are looked at before it is looked at the clock again
READ_BYTES = 16_384
# x86 and arm; asm-generic/socket.h. Python has no names for them.
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
HELD_BYTES = 2**23  # 10,000 small datagrams, each of which the kernel counts as almost a page's fourth
RTT_OFFSET = 68  # of tcpi_rtt, microseconds, in struct tcp_info (linux/tcp.h)
PRIORITY = 1  # the lowest of the real-time ones is before all ordinary processes
PR_SET_TIMERSLACK = 29  # linux/prctl.h
ECHO_BYTES = 56  # as ping's

TIMESPEC = struct.Struct("@ll")
ITIMERSPEC = struct.Struct("@llll")
clock = time.monotonic_ns


class Times:
    """What becomes of each exchange: nanoseconds of the monotonic clock, 0 for what has not happened."""

    def __init__(self, count: int) -> None:
        self.sent = array("q", bytes(8 * count))
        self.answered = array("q", bytes(8 * count))
        self.round_trip = array("l", bytes(array("l").itemsize * count))  # microseconds
        self.failed: dict[int, int] = {}  # the system's error, by number
        self.open = 0  # sent, and neither answered nor failed

    def answer(self, number: int, moment: int, round_trip: int = 0) -> None:
        """Take note of an answer; of several the first counts."""
        if 0 <= number < len(self.sent) and self.sent[number] and not self.answered[number]:
            if number not in self.failed:
                self.open -= 1
            self.answered[number] = max(moment, self.sent[number])
            self.round_trip[number] = round_trip

    def fail(self, number: int, error: int) -> None:
        """Take note that an exchange came to an error of the system."""
        if not self.answered[number] and number not in self.failed:
            self.failed[number] = error
            self.open -= 1


class Loop:
    """Waits for sockets and for a moment, to the microsecond."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._timer = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._moment = ctypes.create_string_buffer(ITIMERSPEC.size)
        self._epoll = select.epoll()
        self._epoll.register(self._timer, select.EPOLLIN)
        self._channels: dict[int, Channel] = {}

    def watch(self, channel: Channel, writable: bool) -> None:
        """Look at a channel for what it receives, and for when it takes more to send."""
        events = select.EPOLLIN | (select.EPOLLOUT if writable else 0)
        number = channel.socket.fileno()
        if number in self._channels:
            self._epoll.modify(number, events)
        else:
            self._epoll.register(number, events)
            self._channels[number] = channel

    def forget(self, channel: Channel) -> None:
        """Close a channel's socket."""
        if self._channels.pop(channel.socket.fileno(), None) is not None:
            self._epoll.unregister(channel.socket.fileno())
        channel.socket.close()

    def wait(self, moment: int) -> None:
        """Let channels handle what there is for them; at the latest come back at a moment of the clock."""
        ITIMERSPEC.pack_into(self._moment, 0, 0, 0, moment // NS, moment % NS)
        self._settime(self._timer, 1, self._moment, None)  # 1: TFD_TIMER_ABSTIME; setting it clears the last
        for number, events in self._epoll.poll(-1, AT_ONCE):
            channel = self._channels.get(number)
            if channel is not None:
                channel.handle(events)


class Channel:
    """A socket, with what waits to be sent on it and what waits for an answer."""

    def __init__(self, work: Work, kind: int, protocol: int = 0) -> None:
        self.work = work
        self.waiting: deque[int] = deque()
        self.unsent: deque[bytes] = deque()
        self.socket = socket.socket(socket.AF_INET, kind, protocol)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def begin(self) -> None:
        """Be looked at from now on."""
        self.socket.setblocking(False)
        self.work.loop.watch(self, writable=bool(self.unsent))

    def send(self, number: int, message: bytes) -> None:
        """Send a request, or as much of it as there is room for."""
        blocked = bool(self.unsent)
        self.unsent.append(message)
        if not blocked:
            self.flush()
            if self.unsent:
                self.work.loop.watch(self, writable=True)

    def message(self, number: int) -> bytes:
        """Return a request's bytes."""
        return HEADER.pack(number, self.work.token) + self.work.filling

    def flush(self) -> None:
        """Send what waits for it, as far as there is room."""
        try:
            while self.unsent:
                first = self.unsent[0]
                taken = self.socket.send(first)
                if taken < len(first):
                    self.unsent[0] = first[taken:]
                else:
                    self.unsent.popleft()
        except BlockingIOError:
            pass  # until there is room again

    def handle(self, events: int) -> None:
        """Do what the socket is ready for."""
        try:
            if events & select.EPOLLOUT:
                self.flush()
                if not self.unsent:
                    self.work.loop.watch(self, writable=False)
            if events & ~select.EPOLLOUT:
                data, moment = self.received()
                self.take(data, moment)
        except BlockingIOError:
            pass
        except OSError as error:
            self.broken(error.errno or errno.EIO)

    def received(self) -> tuple[bytes, int]:
        """Return what has come, and when the last of it did."""
        data, notes, _, _ = self.socket.recvmsg(READ_BYTES, 64)
        now, today = clock(), time.time_ns()
        for level, kind, value in notes:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(value) >= TIMESPEC.size:
                seconds, rest = TIMESPEC.unpack_from(value)
                age = today - seconds * NS - rest
                if age >= 0:  # else somebody has set the clock meanwhile
                    return data, now - age
        return data, now

    def take(self, data: bytes, moment: int) -> None:
        """Take note of the answers in what has come."""
        raise NotImplementedError

    def broken(self, error: int) -> None:
        """Give up what still waits for an answer."""
        for number in self.waiting:
            self.work.times.fail(number, error)
        self.waiting.clear()
        self.unsent.clear()
        self.work.ended(self)
        self.work.loop.forget(self)


class Stream(Channel):
    """A TCP connection: answers come in the order of their requests."""

    def __init__(self, work: Work) -> None:
        super().__init__(work, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        congest(self.socket, work.wishes["congestion"])
        self.buffer = bytearray()
        self.connected = False

    def begin(self) -> None:
        """Connect, if it is not yet; requests are sent as soon as it is done."""
        if self.connected:
            super().begin()
            return
        self.socket.setblocking(False)
        done = self.socket.connect_ex(self.work.peer)
        if done not in (0, errno.EINPROGRESS):
            raise OSError(done, os.strerror(done))
        self.work.loop.watch(self, writable=True)

    def send(self, number: int, message: bytes) -> None:
        """Send a request, in its turn."""
        self.waiting.append(number)
        super().send(number, message)

    def flush(self) -> None:
        """Send what waits for it, once it is connected."""
        if self.connected:
            super().flush()

    def handle(self, events: int) -> None:
        """Do what the socket is ready for; the first time it is connected, or was refused."""
        if not self.connected:
            error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                self.broken(error)
                return
            self.connected = True
        super().handle(events)

    def take(self, data: bytes, moment: int) -> None:
        """Take note of whole answers, and of the end."""
        if not data:
            self.broken(errno.ECONNRESET)
            return
        self.buffer += data
        answer, whole = self.work.wishes["answer"], 0
        if len(self.buffer) >= answer:
            info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RTT_OFFSET + 4)
            (round_trip,) = struct.unpack_from("=I", info, RTT_OFFSET)
        while len(self.buffer) - whole >= answer:
            number, token = HEADER.unpack_from(self.buffer, whole)
            whole += answer
            if token != self.work.token or not self.waiting or number != self.waiting.popleft():
                raise OSError(errno.EBADMSG, "an answer to something else")
            self.work.times.answer(number, moment, round_trip)
        del self.buffer[:whole]


class Datagrams(Channel):
    """A UDP socket: each message is one datagram, and may be lost alone."""

    def __init__(self, work: Work) -> None:
        super().__init__(work, socket.SOCK_DGRAM)
        widen(self.socket)
        self.socket.connect(work.peer)

    def send(self, number: int, message: bytes) -> None:
        """Send a request. An error that is told now is that of an earlier one, so it is tried once more."""
        try:
            super().send(number, message)
        except OSError:
            self.flush()

    def take(self, data: bytes, moment: int) -> None:
        """Take note of the one answer in a datagram."""
        if len(data) == self.work.wishes["answer"]:
            number, token = HEADER.unpack_from(data)
            if token == self.work.token:
                self.work.times.answer(number, moment)
                self.work.ended(self)

    def broken(self, error: int) -> None:
        """Go on: what an error is about is not told, and may have been one message of many."""
        self.unsent.clear()


class Echoes(Channel):
    """What ping sends (RFC 792), which the kernel answers."""

    def __init__(self, work: Work) -> None:
        super().__init__(work, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self.socket.connect((work.peer[0], 0))
        self.own = os.getpid() & 0xFFFF

    def message(self, number: int) -> bytes:
        """Return an echo request."""
        data = HEADER.pack(number, self.work.token) + bytes(ECHO_BYTES - HEADER.size)
        packet = struct.pack("!BBHHH", 8, 0, 0, self.own, number & 0xFFFF) + data
        total = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
        total = (total >> 16) + (total & 0xFFFF)
        total += total >> 16
        return packet[:2] + struct.pack("!H", ~total & 0xFFFF) + packet[4:]

    def take(self, data: bytes, moment: int) -> None:
        """Take note of an echo; the socket sees all that comes by ICMP, each with its IP header."""
        begin = (data[0] & 0x0F) * 4
        if len(data) >= begin + 8 + HEADER.size and data[begin] == 0:
            number, token = HEADER.unpack_from(data, begin + 8)
            if token == self.work.token:
                self.work.times.answer(number, moment)


class Work:
    """All exchanges of one run."""

    def __init__(self, wishes: dict[str, Any]) -> None:
        self.wishes = wishes
        self.peer = (wishes["address"], wishes["port"])
        self.token = os.urandom(8)
        self.filling = bytes(max(0, wishes["size"] - HEADER.size))
        self.count = wishes["count"]
        self.interval = NS / wishes["rate"]
        self.times = Times(self.count)
        self.loop = Loop()
        self.kept: Channel | None = None
        self.control: socket.socket | None = None
        self.channel: Channel | None = None  # of the next request,
        self.message = b""  # which is this,
        self.unopened = 0  # or why there is none

    def prepare(self) -> None:
        """Get in touch with the server; what is kept is connected before the first exchange is due."""
        if self.wishes["protocol"] != "icmp" and not self.wishes["served"]:
            # The first connection is for its end, which is the server's.
            self.control = socket.create_connection(self.peer, timeout=CONNECT_SECONDS)
        if self.wishes["connections"] == "kept":
            self.kept = self._opened()
            if isinstance(self.kept, Stream):
                self.kept.socket.settimeout(CONNECT_SECONDS)
                self.kept.socket.connect(self.peer)
                self.kept.connected = True
            self.kept.begin()

    def run(self) -> None:
        """Make every exchange; the last may take as long as one has patience."""
        self.zero, number = clock(), 0
        early = min(EARLY_NS, int(EARLY_SHARE * self.interval))
        end = self.due(self.count - 1) + int(self.wishes["patience"] * NS)
        while True:
            now = clock()
            if number == self.count:
                if not self.times.open or now >= end:
                    return
                self.loop.wait(end)
                continue
            due = self.due(number)
            if now < due - early:
                self.loop.wait(due - early)
                continue
            self.make_ready(number)
            while now < due:
                now = clock()
            self.send(number, now)
            number += 1
            if number % AT_ONCE == 0:
                self.loop.wait(now)  # however many are due, answers are read

    def due(self, number: int) -> int:
        """Return when an exchange is due."""
        moment: int = self.zero + round(number * self.interval)
        return moment

    def make_ready(self, number: int) -> None:
        """Do for a request what can be done before it is due."""
        self.channel = self.kept
        try:
            if self.channel is None:
                self.channel = self._opened()
            self.message = self.channel.message(number)
        except OSError as error:
            self.unopened = error.errno or errno.EIO

    def send(self, number: int, now: int) -> None:
        """Send one request, on the connection that is kept or on a new one."""
        self.times.sent[number] = now
        self.times.open += 1
        channel = self.channel
        if channel is None:
            self.times.fail(number, self.unopened)
            return
        try:
            if channel is not self.kept:
                channel.begin()
                if self.wishes["connections"] == "kept":
                    self.kept = channel
            channel.send(number, self.message)
        except OSError as error:
            self.times.fail(number, error.errno or errno.EIO)
            channel.broken(error.errno or errno.EIO)

    def ended(self, channel: Channel) -> None:
        """Take note that a channel is not needed any more: a new one of one exchange, or one that broke."""
        if channel is self.kept:
            if isinstance(channel, Stream):
                self.kept = None
        elif not isinstance(channel, Stream):
            self.loop.forget(channel)

    def _opened(self) -> Channel:
        kinds = {"tcp": Stream, "udp": Datagrams, "icmp": Echoes}
        return kinds[self.wishes["protocol"]](self)

    def lines(self) -> list[str]:
        """Return the CSV."""
        times, patience = self.times, int(self.wishes["patience"] * NS)
        found = [COLUMNS]
        for number in range(self.count):
            due, sent, answered = self.due(number), times.sent[number], times.answered[number]
            if answered:
                status = "answered" if answered - due <= patience else "late"
            else:
                error = times.failed.get(number)
                status = "lost" if error is None else errno.errorcode.get(error, "EIO")
            took = times.round_trip[number]
            found.append(
                f"{(due - self.zero) / NS:.7f},{(sent - self.zero) / NS:.7f},"
                f"{f'{(answered - self.zero) / NS:.7f}' if answered else ''},{status},"
                f"{f'{took / 1e6:.6f}' if took else ''}"
            )
        return found


def widen(one: socket.socket) -> None:
    """Let a socket hold what comes while nobody reads, if this process may: else the system's default."""
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, HELD_BYTES)


def congest(one: socket.socket, wanted: str) -> None:
    """Let a socket have a congestion control. It is not asked for if it is there, for not everybody may."""
    has = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0")
    if has != wanted.encode():
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, wanted.encode())


def quick() -> dict[str, str]:
    """Let this process run as soon as it is woken, as far as it may; return how far that is."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.disable()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return {"scheduling": "other"}
    return {"scheduling": "fifo"}


def main() -> None:
    """Do as told."""
    wishes = json.loads(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        work = Work(wishes)
        work.prepare()
    except OSError as error:
        sys.exit(f"{wishes['address']}: {error}")
    about = quick()
    sys.stderr.write("\n")
    sys.stderr.flush()
    sys.stdin.readline()
    work.run()
    text = "\n".join([f"# {json.dumps(about)}", *work.lines(), ""])
    sys.stdout.buffer.write(gzip.compress(text.encode(), mtime=0))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
