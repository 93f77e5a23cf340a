"""Carries packets from one switch to another, and back, each a given time later: for kernels without netem.

It stands between two TAP devices that are ports of the switches. The kernel hands packets over as it has them
(``IFF_VNET_HDR``, Documentation/networking/tuntap.rst): what TCP sent as one piece of 64 KiB stays one piece,
inside VXLAN too where the kernel can (Linux 6.17), and so a gigabit takes some thousand reads and writes a
second. Each direction has one queue, in the order of arrival. A link's rate is not the relay's: it is at the
TAP (testbed.links.trunks), before the packets get here.

It says how late it was itself. A packet is late by what passes between the moment at which it was due and
its leaving, and by what it may have waited unread: since it was last looked, and while this process wanted a
processor and had none (``/proc/self/schedstat``, kernel Documentation/scheduler/sched-stats.rst), or slept
longer than it meant to, as a stopped one does. That is the most it can be, not the least.

Run as a program, as root of the network that has the TAPs, with the standard library alone:

    relay.py serve SOCKET NEAR FAR DELAY_NS MOST_BYTES   carries packets until it is killed
    relay.py ask SOCKET...                               says what they did since they were asked last
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import select
import socket
import struct
import sys
import time
from collections import deque
from contextlib import suppress

# <linux/if_tun.h>
TUNSETIFF, TUNSETOFFLOAD, TUNSETVNETHDRSZ = 0x400454CA, 0x400454D0, 0x400454D8
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
# What the kernel need not do before it hands a packet over, the most first: checksums, segments of TCP over
# IPv4 and IPv6 with ECN (0x0F), of UDP (0x60), of what is inside UDP tunnels, with and without a checksum
# outside (0x180). Each with the size of the header before a packet (virtio_net_hdr_v1_hash_tunnel,
# virtio_net_hdr).
OFFLOADS = ((0x0F | 0x60 | 0x180, 24), (0x0F | 0x60, 10), (0x0F, 10))
LARGEST = 2**16 + 2**10  # bytes of a packet with all headers: GSO_LEGACY_MAX_SIZE in <linux/netdevice.h>

PR_SET_TIMERSLACK = 29  # <linux/prctl.h>
LATE = 10  # a frame is late if it is later than this part of the delay
# After a look at what there is to read, the next one is no sooner than this part of the delay. Who looks at
# each frame by itself, as fast as they come, has no time for anything else, nor leaves any to others.
PAUSE = 50
# Lateness is counted by how many times 1 us must be doubled to exceed it.
STEPS = 24
# Frames that are read and written before there is a look at what else there is to do: reading first, so that
# no frame is taken for later than it came.
TAKEN_AT_ONCE, GIVEN_AT_ONCE = 512, 16
# A processor that was idle takes some 70 us to wake, a busy one less. So it is to be woken earlier by what it
# was late of late, though not by more than this; and by a little more where it sleeps so long that to look
# around until a frame is due costs next to nothing.
MOST_EARLY_NS, LONG_NS, SPARE_NS = 200_000, 1_000_000, 50_000
# Longest sleep: a process that was stopped and then woken cannot tell when a packet came, only since when it
# slept longer than it meant to.
NAP_NS = 10_000_000
FRAME_BYTES = 256  # what a frame takes in memory beside its bytes
ASK_SECONDS = 5.0


class Direction:
    """What goes one way: the queue, and how late it was."""

    def __init__(self, source: int, sink: int, device: str, most_bytes: int) -> None:
        self.source = source
        self.sink = sink
        self.device = device  # that the kernel hands over from
        self.queue: deque[tuple[int, int, bytes]] = deque()  # when due, when late counts from, the frame
        self.held = 0  # bytes
        self.looked = time.monotonic_ns()  # when nothing was left to read
        self._most = most_bytes
        self._unread = unread(device)
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.frames = self.late = self.dropped = self.worst = 0
        self.lateness = [0] * STEPS

    def take(self, delay: int, arrived: int, waited: int) -> None:
        """Read what is there: the first came ``waited`` nanoseconds ago, and none before ``arrived``."""
        since, delay = arrived + delay, delay - waited
        for _ in range(TAKEN_AT_ONCE):
            try:
                frame = os.read(self.source, LARGEST)
            except BlockingIOError:
                self.looked = time.monotonic_ns()
                return
            except OSError as error:
                if error.errno != errno.EINVAL:  # the device is not there any more
                    raise
                self.dropped += 1  # a packet that the header before it has no words for
                continue
            if self.held > self._most:
                self.dropped += 1
                continue
            self.held += len(frame) + FRAME_BYTES
            self.queue.append((time.monotonic_ns() + delay, since, frame))

    def give(self, now: int, late: int) -> int:
        """Write what is due, and return the time it then is."""
        queue = self.queue
        for _ in range(GIVEN_AT_ONCE):
            if not queue or queue[0][0] > now:
                break
            _, since, frame = queue.popleft()
            self.held -= len(frame) + FRAME_BYTES
            try:
                os.write(self.sink, frame)
            except OSError:  # no room in the kernel, or nothing it takes for a packet
                self.dropped += 1
            behind = now - since
            self.frames += 1
            if behind > late:
                self.late += 1
            if behind > self.worst:
                self.worst = behind
            self.lateness[min(STEPS - 1, (behind // 1000).bit_length())] += 1
            now = time.monotonic_ns()
        return now

    def said(self) -> dict[str, object]:
        """Return what was counted, and begin anew."""
        lost = unread(self.device)
        dropped, self._unread = self.dropped + lost - self._unread, lost
        counts = {
            "frames": self.frames,
            "late": self.late,
            "worst_s": self.worst / 1e9,
            "dropped": dropped,
            "lateness": self.lateness,
        }
        self.begin()
        return counts


def unread(device: str) -> int:
    """Return how many packets the kernel dropped because nobody read them in time."""
    with open("/proc/net/dev", encoding="ascii") as lines:  # noqa: PTH123 (pathlib would be one more import)
        for line in lines:
            name, _, counts = line.partition(":")
            if name.strip() == device:
                return int(counts.split()[11])
    return 0


def opened(name: str) -> int:
    """Return a TAP device that exists, opened, with as much left undone by the kernel as it can."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    for offloads, header in OFFLOADS:
        try:
            fcntl.ioctl(device, TUNSETVNETHDRSZ, struct.pack("i", header))
            fcntl.ioctl(device, TUNSETOFFLOAD, offloads)
        except OSError:
            continue
        return device
    raise OSError(f"{name}: the kernel segments no packets for a TAP device")


def punctual() -> None:
    """Let this process be woken when it asked for, and before others where that is allowed."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)  # nanosecond; 50 us otherwise
    with suppress(OSError):  # root's alone, and not in every cgroup
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Waiting:
    """How long this process was kept from running, in nanoseconds; 0 where the kernel does not tell."""

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None
        self._before = self._read()

    def since(self) -> int:
        """Return how long it was since this was asked last."""
        before, self._before = self._before, self._read()
        return self._before - before

    def _read(self) -> int:
        return 0 if self._file is None else int(os.pread(self._file, 64, 0).split()[1])


def serve(path: str, near: str, far: str, delay: int, most_bytes: int) -> None:
    """Carry packets between two TAPs, each ``delay`` nanoseconds later, and answer who asks."""
    punctual()
    ends = opened(near), opened(far)
    out, back = Direction(*ends, near, most_bytes), Direction(*ends[::-1], far, most_bytes)
    asked = socket.socket(socket.AF_UNIX)
    asked.bind(path)
    asked.listen()
    asked.setblocking(False)
    carry(out, back, asked, delay)


def carry(out: Direction, back: Direction, asked: socket.socket, delay: int) -> None:
    """Carry packets both ways until this process is killed."""
    watched = (out.source, back.source, asked.fileno())
    waiting, clock = Waiting(), time.monotonic_ns
    late, pause = delay // LATE, delay // PAUSE
    early = look_again = 0
    while True:
        now = back.give(out.give(clock(), late), late)
        nap = until_due(out, back, now + early)
        looking = now >= look_again
        nap = nap if looking else min(nap, look_again - now)
        ready, _, _ = select.select(watched if looking else (), (), (), nap / 1e9)
        woken = clock()
        waited, overslept = waiting.since(), max(0, woken - now - nap)
        if nap and not ready:
            early += (min(overslept, MOST_EARLY_NS) - early) >> 3
        if not looking:
            continue
        if ready:
            look_again = woken + pause
        # What came while this slept had to wait for as long as it should not have slept any more; what came
        # before, since it was last looked.
        asleep = max(0, woken - now - max(waited, overslept))
        for one in (out, back):
            if one.source in ready:
                one.take(delay, one.looked + asleep, min(waited, MOST_EARLY_NS))
            else:
                one.looked = woken
        if asked.fileno() in ready:
            answer(asked, out, back)


def until_due(out: Direction, back: Direction, now: int) -> int:
    """Return how long to sleep, nanoseconds, until a frame is due either way."""
    nap = NAP_NS
    for one in (out, back):
        if one.queue:
            nap = min(nap, max(0, one.queue[0][0] - now))
    return nap - SPARE_NS if nap > LONG_NS else nap


def answer(asked: socket.socket, out: Direction, back: Direction) -> None:
    """Tell whoever has connected; an answer fits into a socket's buffer, so nobody is waited for."""
    try:
        client, _ = asked.accept()
    except OSError:  # it has gone again
        return
    with client:
        client.setblocking(False)
        with suppress(OSError):  # it did not wait
            client.sendall(json.dumps({"out": out.said(), "back": back.said()}).encode())


def ask(path: str) -> dict[str, object] | str:
    """Return what a relay says, or in words why it says nothing."""
    said = b""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(ASK_SECONDS)
            client.connect(path)
            while part := client.recv(65536):
                said += part
        counts: dict[str, object] = json.loads(said)
    except (OSError, ValueError) as error:
        return f"the relay does not answer: {error}"
    return counts


def main() -> None:
    """Do as the first argument says."""
    what, *arguments = sys.argv[1:]
    if what == "serve":
        path, near, far, delay, most_bytes = arguments
        serve(path, near, far, int(delay), int(most_bytes))
    else:
        json.dump([ask(path) for path in arguments], sys.stdout)


if __name__ == "__main__":
    main()
