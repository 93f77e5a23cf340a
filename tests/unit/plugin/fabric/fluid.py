"""Senders with queues, and one receiver's port: what ceilings would make of them, millisecond by millisecond.

Nothing here is a clock or a socket. Senders obey ceilings as HTB does: in packets before segmentation, 64 KB
at once. What they report was measured over their last interval, and a grant is obeyed one interval after it
was decided. The port is a switch's: one queue of 10 ms, and what finds it full is lost, whoever sent it.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable

from concorde.fabric.division import Claim, Downlink

STEP = 0.001
PACKET = 65536 * 8  # bits
PORT = 0.010  # seconds of the link

Load = Callable[[float], float]  # what an application hands over (bits per second) at a time


def greedy(_: float) -> float:
    return math.inf


def idle(_: float) -> float:
    return 0.0


def steady(rate: float) -> Load:
    return lambda _: rate


def on_and_off(rate: float, on: float, off: float) -> Load:
    return lambda at: rate if at % (on + off) < on else 0.0


def between(begin: float, end: float, load: Load) -> Load:
    return lambda at: load(at) if begin <= at < end else 0.0


class Class:
    """One class of a sender: its queue (bits), its ceiling and the tokens it has."""

    def __init__(self, load: Load, guarantee: float, ceiling: float, reports: bool) -> None:
        self.load = load
        self.guarantee = guarantee
        self.ceiling = ceiling
        self.reports = reports
        self.queue = self.tokens = self.sent = self._sent_before = 0.0
        self.received: list[float] = []  # in each step

    def step(self, at: float) -> float:
        """What it sends in this step: whole packets, or the whole of what waits."""
        offered = self.load(at)
        room = max(8 * PACKET, self.ceiling * 0.01) - self.queue
        self.queue += min(offered * STEP, room)
        # As HTB, it may send once it has tokens, and pays for the packet afterwards.
        self.tokens = min(self.tokens + self.ceiling * STEP, self.ceiling * STEP)
        out = 0.0
        while self.tokens > 0 and (self.queue >= PACKET or (self.queue > 0 and offered == 0)):
            packet = min(PACKET, self.queue)
            self.queue -= packet
            self.tokens -= packet
            out += packet
        self.sent += out
        return out

    def claim(self, since: float) -> Claim:
        rate, self._sent_before = (self.sent - self._sent_before) / since, self.sent
        waiting = self.queue if self.queue >= PACKET else 0.0
        return Claim(self.guarantee, rate, waiting / 8, limited=False)


class Fabric:
    """A receiver's link (bits per second), and the classes that send there, by sender and minor number."""

    def __init__(self, capacity: float, loop: float = 0.010) -> None:
        self.capacity = capacity
        self.loop = loop
        self.downlink = Downlink(capacity)
        self.classes: dict[tuple[str, int], Class] = {}
        self.ceilings: list[dict[tuple[str, int], float]] = []  # of each round
        self.lost: random.Random | None = None  # if there is one, it loses a message in ten
        self._port: deque[tuple[Class, float]] = deque()
        self._queued = 0.0
        self._step = 0
        self._pending: dict[str, dict[int, float]] = {}
        self._by_source: dict[str, float] = {}

    def add(
        self,
        sender: str,
        minor: int,
        load: Load,
        guarantee: float = 0.0,
        reports: bool = True,
        safe: float = 0.0,
    ) -> Class:
        ceiling = guarantee or safe or self.capacity / 20
        made = self.classes[sender, minor] = Class(load, guarantee, ceiling, reports)
        made.tokens = -PACKET * (len(self.classes) * 0.618 % 1)  # they do not all send at the same moment
        return made

    @property
    def now(self) -> float:
        return self._step * STEP

    @property
    def queued(self) -> float:
        """What waits in the port (seconds of the link)."""
        return self._queued / self.capacity

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP)):
            if self._step % round(self.loop / STEP) == 0 and self._step:
                self._round()
            self._send()
            self._receive()
            self._step += 1

    def _round(self) -> None:
        for (sender, minor), one in self.classes.items():
            if sender in self._pending:
                one.ceiling = self._pending[sender].get(minor, one.guarantee or one.ceiling)
        claims: dict[str, dict[int, Claim]] = {}
        for (sender, minor), one in self.classes.items():
            if one.reports:
                claims.setdefault(sender, {})[minor] = one.claim(self.loop)
        for sender, of_it in claims.items():
            if not self._is_lost():
                self.downlink.report(sender, of_it, self.now)
        self.downlink.arrived({one: bits / self.loop for one, bits in self._by_source.items()}, self.now)
        self._by_source = dict.fromkeys(self._by_source, 0.0)
        divided = self.downlink.divide(self.now)
        self.ceilings.append(
            {(sender, minor): at for sender, of_it in divided.items() for minor, at in of_it.items()}
        )
        self._pending = {sender: of_it for sender, of_it in divided.items() if not self._is_lost()}

    def _is_lost(self) -> bool:
        return self.lost is not None and self.lost.random() < 0.1

    def _send(self) -> None:
        # Who comes first alternates, or the last of them would lose all.
        classes = list(self.classes.values())
        at = self._step % len(classes)
        for one in classes[at:] + classes[:at]:
            out = one.step(self.now)
            out = min(out, max(self.capacity * (PORT + STEP) - self._queued, 0.0))
            if out:
                self._port.append((one, out))
                self._queued += out

    def _receive(self) -> None:
        for one in self.classes.values():
            one.received.append(0.0)
        sources = {id(one): sender for (sender, _), one in self.classes.items()}
        left = self.capacity * STEP
        while self._port and left > 0:
            one, bits = self._port.popleft()
            done = min(bits, left)
            if bits > done:
                self._port.appendleft((one, bits - done))
            left -= done
            self._queued -= done
            one.received[-1] += done
            self._by_source[sources[id(one)]] = self._by_source.get(sources[id(one)], 0.0) + done

    def rate(self, begin: float, end: float, *whose: Class) -> float:
        """What arrived of some, or of all, between two times (bits per second)."""
        first, last = round(begin / STEP), round(end / STEP)
        chosen = whose or tuple(self.classes.values())
        return sum(sum(one.received[first:last]) for one in chosen) / (end - begin)
