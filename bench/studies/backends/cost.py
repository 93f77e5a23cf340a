"""What packets cost: processor time for each, and the throughput of one flow.

Both are the machine's, so both hold only where nothing else was at work. Busy is what was neither idle, nor
waiting for a disk, nor taken by the hypervisor: the kernel counts idle time exactly and everything else by
ticks. ``/proc/stat`` tells hundredths of a second (USER_HZ, proc(5)).
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.observations.procfs import cpu_ticks, idle_ticks
from bench.studies.backends.index import PacketCost, Spread
from bench.studies.backends.records import Beside, Cost, Offered, Reading, Throughput

# Processors that others may take, on average: a process that wants all it can get takes one.
MOST_OTHERS = 0.1
LEAST_RECEIVED = 0.98  # of what was offered
MOST_STOLEN = 0.01  # of all processors' time
USER_HZ = 100
STEAL = 7  # its place among the numbers


class Spent(NamedTuple):
    """What was spent between two readings."""

    seconds: float  # that passed
    processors: int
    busy_s: float
    stolen_s: float

    @property
    def busy(self) -> float:
        """How many processors were busy, on average."""
        return self.busy_s / self.seconds if self.seconds else 0.0


def spent(first: Reading, last: Reading) -> Spent:
    """Return what all processors together did between two readings, in seconds of one processor."""
    before, after = cpu_ticks(first.stat), cpu_ticks(last.stat)
    seconds, processors = (last.ns - first.ns) / 1e9, len(after) - 1
    ticks = [b - a for a, b in zip(before["cpu"], after["cpu"], strict=True)]
    stolen = ticks[STEAL] / USER_HZ
    busy = seconds * processors - idle_ticks(ticks) / USER_HZ - stolen
    return Spent(seconds, processors, max(busy, 0.0), stolen)


def per_packet_ns(one: Offered) -> float:
    """Return what all processors did for each packet received, above what they do when nothing flows.

    It is the median of the windows: what else a machine's host has to do takes a second here and there. Of
    what has no faults: then packets came in every window.
    """
    idle = statistics.fmean(spent(*window).busy for window in one.idle)
    windows = zip(itertools.starmap(spent, itertools.pairwise(one.busy)), one.packets, strict=True)
    return statistics.median((busy.busy_s - idle * busy.seconds) * 1e9 / packets for busy, packets in windows)


def faults(one: Offered) -> Iterator[str]:
    """Yield, in words, why this says nothing about packets."""
    what, busy = f"{one.size} B at {one.rate}/s", spent(one.busy[0], one.busy[-1])
    for when, window in zip(("before", "after"), one.idle, strict=True):
        if (others := spent(*window).busy) > MOST_OTHERS:
            yield f"{what}: {others:.2f} processors were busy {when} it, when nothing flowed"
    yield from (f"{what}: {words}" for words in _others(one.others_s, one.idle[0][0], one.idle[1][1]))
    if busy.stolen_s > MOST_STOLEN * busy.seconds * busy.processors:
        yield f"{what}: the hypervisor took {busy.stolen_s:.2f} s"
    received = sum(one.packets) / (one.rate * busy.seconds)
    if received < LEAST_RECEIVED:
        yield f"{what}: {received:.1%} of that were received".replace("%", " %")


def packet_costs(rounds: Sequence[Cost]) -> list[PacketCost]:
    """Return the cost for each size and rate, over all rounds of one backend."""
    kinds = dict.fromkeys((one.size, one.rate) for cost in rounds for one in cost.offered)
    return [_packet_cost(size, rate, rounds) for size, rate in kinds]


def _packet_cost(size: int, rate: int, rounds: Sequence[Cost]) -> PacketCost:
    found, invalid = [], []
    for cost in rounds:
        for one in cost.offered:
            if (one.size, one.rate) != (size, rate):
                continue
            if words := list(faults(one)):
                invalid += [f"round {cost.round}: {word}" for word in words]
            else:
                found.append(per_packet_ns(one))
    return PacketCost(size=size, rate=rate, ns=Spread.of(found), invalid=invalid)


def throughputs(rounds: Iterable[Throughput]) -> tuple[dict[str, dict[int, float]], list[str]]:
    """Return each backend's median rate of each round, in bits per second; and what is not valid, in words.

    A round counts as a whole or not at all: what is compared was measured side by side.
    """
    found: dict[str, dict[int, float]] = {}
    invalid = []
    for one in rounds:
        words = [
            f"round {one.round}: {flow.backend}: {word}" for flow in one.flows for word in beside(flow.beside)
        ]
        invalid += words
        if words:
            continue
        for backend in dict.fromkeys(flow.backend for flow in one.flows):
            rates = [flow.bits_per_second for flow in one.flows if flow.backend == backend]
            found.setdefault(backend, {})[one.round] = statistics.median(rates)
    return found, invalid


def shares(of: Mapping[int, float], beside: Mapping[int, float]) -> Spread | None:
    """Return what one backend carried as a share of another, round by round."""
    return Spread.of(of[number] / beside[number] for number in of.keys() & beside.keys())


def beside(what: Beside) -> Iterator[str]:
    """Yield, in words, what else there was on the machine."""
    yield from _others(what.others_s, *what.readings)


def _others(seconds: float | None, first: Reading, last: Reading) -> Iterator[str]:
    passed = (last.ns - first.ns) / 1e9
    if seconds is not None and seconds > MOST_OTHERS * passed:
        yield f"other processes took {seconds:.2f} s of processors in {passed:.2f} s"
