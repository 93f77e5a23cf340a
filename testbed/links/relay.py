"""Carries packets from one switch to another, and back, each a given time later: for kernels without netem.

It stands between two TAP devices that are ports of the switches. The kernel hands packets over as it has them
(``IFF_VNET_HDR``, Documentation/networking/tuntap.rst): what TCP sent as one piece of 64 KiB stays one piece,
inside VXLAN too where the kernel can (Linux 6.17), and so a gigabit takes some thousand reads and writes a
second. Each direction has one queue, in the order of arrival. A link's rate is not the relay's: it is at the
TAP (testbed.links.trunks), before the packets get here.

It says how late it was itself. When a packet came, the kernel notes in a ring of memory that it shares with
this program (Documentation/networking/packet_mmap.rst). So it is due by when it came, not by when somebody
read it, and nothing has to be read in a hurry; late is what leaves later than that.

Run as a program, as root of the network that has the TAPs, with the standard library alone:

    relay.py serve SOCKET NEAR FAR DELAY_NS MOST_BYTES   carries packets until it is killed
    relay.py ask SOCKET...                               says what they did since they were asked last
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import select
import socket
import struct
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Protocol

# <linux/if_tun.h>
TUNSETIFF, TUNSETOFFLOAD, TUNSETVNETHDRSZ = 0x400454CA, 0x400454D0, 0x400454D8
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
# What the kernel need not do before it hands a packet over, the most first: checksums, segments of TCP over
# IPv4 and IPv6 with ECN (0x0F), of UDP (0x60), of what is inside UDP tunnels, with and without a checksum
# outside (0x180). Each with the size of the header before a packet (virtio_net_hdr_v1_hash_tunnel,
# virtio_net_hdr).
OFFLOADS = ((0x0F | 0x60 | 0x180, 24), (0x0F | 0x60, 10), (0x0F, 10))
LARGEST = 2**16 + 2**10  # bytes of a packet with all headers: GSO_LEGACY_MAX_SIZE in <linux/netdevice.h>

# <linux/if_packet.h>
SOL_PACKET, PACKET_RX_RING, PACKET_VERSION, TPACKET_V2 = 263, 5, 10, 1
# tpacket2_hdr: tp_status, tp_len, tp_snaplen, tp_mac, tp_net, tp_sec, tp_nsec
NOTE = struct.Struct("=IIIHHII")
NOTED, UNUSED = 1, bytes(4)  # TP_STATUS_USER; TP_STATUS_KERNEL, by which a slot is given back
# A slot holds the note, the address after it and one byte of the packet. There are more slots than a TAP
# holds packets (testbed.links.trunks.UNREAD_PACKETS), or as many more as it then drops.
SLOT, SLOTS, BLOCK = 128, 4096, 2**16
SO_ATTACH_FILTER = 26  # <asm-generic/socket.h>
# What the kernel hands over (PACKET_OUTGOING, at SKF_AD_OFF + SKF_AD_PKTTYPE in <linux/filter.h>), and one
# byte of it; not what is written to the TAP.
HANDED_OVER = ((0x28, 0, 0, 0xFFFFF004), (0x15, 0, 1, 4), (0x06, 0, 0, 1), (0x06, 0, 0, 0))
# A packet is noted before it can be read, a processor that was taken away in between apart. What was noted
# so long before the TAP was last found empty is of one that the TAP has dropped.
STALE_NS = 1_000_000
# Notes have the time of the wall clock. Two clocks that are read with more between them tell nothing of each
# other: somebody interrupted.
AT_ONE_TIME_NS = 1000
TRIES = 20  # at first, of which the quickest is believed

PR_SET_TIMERSLACK = 29  # <linux/prctl.h>
LATE = 10  # a frame is late if it is later than this part of the delay
# After a look at what there is to read, the next one is no sooner than this part of the delay, and at most
# so long. Who looks at each frame by itself, as fast as they come, has no time for anything else, nor
# leaves any to others.
PAUSE, LONGEST_PAUSE_NS = 10, 1_000_000
# Lateness is counted by how many times 1 us must be doubled to exceed it.
STEPS = 24
AT_ONCE = 16  # frames that are read, or written, before there is a look at what else there is to do
# A processor that was idle takes some 70 us to wake, a busy one less. So it is to be woken earlier by what it
# was late of late, though not by more than this; and by a little more where it sleeps so long that to look
# around until a frame is due costs next to nothing.
MOST_EARLY_NS, LONG_NS, SPARE_NS = 200_000, 1_000_000, 50_000
NAP_NS = 1_000_000_000  # longest sleep, where there is nothing to do
FRAME_BYTES = 256  # what a frame takes in memory beside its bytes
ASK_SECONDS = 5.0


class Arrivals(Protocol):
    """When packets came."""

    def next(self, since: int) -> int:
        """Return when the packet that was just read came, not before ``since``, by the monotonic clock."""


def apart() -> tuple[int, int]:
    """How long it took to look at both clocks, and how much ahead of the monotonic one the other is (ns)."""
    before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
    return after - before, wall - before


class Notes:
    """What the kernel notes of the packets that it hands over at a device, one after another."""

    def __init__(self, device: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # hears nothing until it is bound
        program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in HANDED_OVER))
        attached = struct.pack("HP", len(HANDED_OVER), ctypes.addressof(program))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
        self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        ring = struct.pack("=IIII", BLOCK, SLOT * SLOTS // BLOCK, SLOT, SLOTS)
        self._socket.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
        self._slots = mmap.mmap(self._socket.fileno(), SLOT * SLOTS)
        self._socket.bind((device, 3))  # ETH_P_ALL
        self._at = 0
        _, self._ahead = min(apart() for _ in range(TRIES))  # of the monotonic clock

    def next(self, since: int) -> int:
        """Return when the packet that was just read came; ``since`` if that was not noted."""
        took, ahead = apart()
        if took < AT_ONE_TIME_NS:
            self._ahead = ahead
        while True:
            status, _, _, _, _, seconds, nanoseconds = NOTE.unpack_from(self._slots, self._at)
            if not status & NOTED:
                return since
            self._slots[self._at : self._at + len(UNUSED)] = UNUSED
            self._at = (self._at + SLOT) % (SLOT * SLOTS)
            came = int(seconds * 10**9 + nanoseconds - self._ahead)
            if came > since - STALE_NS:
                return came


class Direction:
    """What goes one way: the queue, and how late it was."""

    def __init__(self, source: int, sink: int, device: str, most_bytes: int, arrivals: Arrivals) -> None:
        self.source = source
        self.sink = sink
        self.device = device  # that the kernel hands over from
        self.queue: deque[tuple[int, bytes]] = deque()  # when due, the frame
        self.held = 0  # bytes
        self.looked = time.monotonic_ns()  # when nothing was left to read
        self._most = most_bytes
        self._arrivals = arrivals
        self._unread = unread(device)
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.frames = self.late = self.dropped = self.worst = 0
        self.lateness = [0] * STEPS

    def take(self, delay: int) -> bool:
        """Read some of what is there; tell whether there may be more."""
        for _ in range(AT_ONCE):
            before = time.monotonic_ns()
            try:
                frame = os.read(self.source, LARGEST)
            except BlockingIOError:
                self.looked = before
                return False
            except OSError as error:
                if error.errno != errno.EINVAL:  # the device is not there any more
                    raise
                frame = b""  # a packet that the header before it has no words for
            came = self._arrivals.next(self.looked)
            if not frame or self.held > self._most:
                self.dropped += 1
                continue
            self.held += len(frame) + FRAME_BYTES
            self.queue.append((min(came, time.monotonic_ns()) + delay, frame))
        return True

    def give(self, now: int, late: int) -> int:
        """Write what is due, and return the time it then is."""
        queue = self.queue
        for _ in range(AT_ONCE):
            if not queue or queue[0][0] > now:
                break
            due, frame = queue.popleft()
            self.held -= len(frame) + FRAME_BYTES
            try:
                os.write(self.sink, frame)
            except OSError:  # no room in the kernel, or nothing it takes for a packet
                self.dropped += 1
            behind = now - due
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


def serve(path: str, near: str, far: str, delay: int, most_bytes: int) -> None:
    """Carry packets between two TAPs, each ``delay`` nanoseconds later, and answer who asks."""
    punctual()
    notes = Notes(near), Notes(far)  # before there is anything to note
    ends = opened(near), opened(far)
    out = Direction(*ends, near, most_bytes, notes[0])
    back = Direction(*ends[::-1], far, most_bytes, notes[1])
    asked = socket.socket(socket.AF_UNIX)
    asked.bind(path)
    asked.listen()
    asked.setblocking(False)
    carrier = Carrier(out, back, asked, delay)
    first, *others = halves(sorted(os.sched_getaffinity(0)))
    for processors in others:
        threading.Thread(target=carrier.work, args=[processors], daemon=True).start()
    carrier.work(first)


def halves(processors: list[int]) -> list[list[int]]:
    """Return both halves of them; of one, what there is."""
    return [half for half in (processors[::2], processors[1::2]) if half]


class Carrier:
    """Carries packets both ways, by whichever processor has time.

    One that its host took away, or that is in the midst of something in the kernel, holds up whoever waits
    there, though another be free. So a thread waits on each half of them: who wakes first does what there
    is to do, and the other finds it done.
    """

    def __init__(self, out: Direction, back: Direction, asked: socket.socket, delay: int) -> None:
        self._out, self._back, self._asked, self._delay = out, back, asked, delay
        self._late, self._pause = delay // LATE, min(delay // PAUSE, LONGEST_PAUSE_NS)
        self._look_again = 0
        self._one_at_a_time = threading.Lock()

    def work(self, processors: list[int]) -> None:
        """Do what there is to do on these, until this process is killed."""
        os.sched_setaffinity(0, processors)
        watched = (self._out.source, self._back.source, self._asked.fileno())
        clock, early = time.monotonic_ns, 0
        while True:
            with self._one_at_a_time:
                now = self._back.give(self._out.give(clock(), self._late), self._late)
                nap = until_due(self._out, self._back, now + early)
                looking = now >= self._look_again
                nap = nap if looking else min(nap, self._look_again - now)
            ready, _, _ = select.select(watched if looking else (), (), (), nap / 1e9)
            woken = clock()
            if nap and not ready:
                early += (min(max(0, woken - now - nap), MOST_EARLY_NS) - early) >> 3
            if ready:
                with self._one_at_a_time:
                    self._read(ready, woken)

    def _read(self, ready: list[int], now: int) -> None:
        more = False
        for one in (self._out, self._back):
            if one.source in ready:
                more |= one.take(self._delay)
        if not more:
            self._look_again = now + self._pause
        if self._asked.fileno() in ready:
            answer(self._asked, self._out, self._back)


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
