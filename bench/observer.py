"""What can be seen while traffic flows: the current rates, for people, and how busy the processors are.

One thread reads the kernel's counters twice a second, with one process a node, so that watching costs next
to nothing; and more seldom where reading takes long. The rates are those of the receivers' interfaces; what
is judged later are iperf3's own records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bench.recording import CpuUse
from bench.watching import Watcher
from testbed.nodes import CommandError, Place
from testbed.scenario import Traffic
from testbed.testbed import Testbed

TICK_SECONDS = 0.5
# How much longer it waits than it reads, at least: a process over SSH on an emulated machine costs a second
# of the processor that the traffic needs.
REST = 4

Rates = dict[str, float]  # bits per second by transfer label
OnRates = Callable[[float, Rates], None]


class Observer(Watcher):
    """Watches from ``start`` until the end of the ``with`` block; ``cpu`` then holds what the machine did.

    ``cpu`` has one entry a tick for the busiest machine, times in seconds after the clock's zero.
    """

    def __init__(self, testbed: Testbed, traffic: Sequence[Traffic], on_rates: OnRates) -> None:
        super().__init__()
        self.cpu: list[CpuUse] = []
        self._targets: dict[str, dict[str, str]] = {}  # node -> host interface -> label
        # A machine that runs the nodes may be busy without their knowing.
        self._places: dict[str, Place] = {place.name: place for place in testbed.provider.beneath}
        for transfer in traffic:
            node = testbed.scenario.node_of(transfer.destination)
            self._places[node] = testbed.nodes[node]
            interface = testbed.place(transfer.destination).host_interface
            self._targets.setdefault(node, {})[interface] = transfer.label
        self._on_rates = on_rates

    def _watch(self) -> None:
        before = self._read()
        took = 0.0
        while not self._stop.wait(max(TICK_SECONDS, REST * took)):
            begin = time.monotonic()
            try:
                after = self._read()
            except CommandError:  # the testbed is going down under us
                return
            took = time.monotonic() - begin
            self._compare(before, after)
            before = after

    def _read(self) -> dict[str, tuple[float, str]]:
        return {
            name: (time.monotonic() - self._zero, place.run(["cat", "/proc/stat", "/proc/net/dev"]).stdout)
            for name, place in self._places.items()
        }

    def _compare(self, before: dict[str, tuple[float, str]], after: dict[str, tuple[float, str]]) -> None:
        rates: Rates = {}
        uses: list[CpuUse] = []
        for name, (end, text) in after.items():
            start, earlier = before[name]
            uses.append(cpu_use(start, end, earlier, text))
            old, new = sent_bytes(earlier), sent_bytes(text)
            for interface, label in self._targets.get(name, {}).items():
                rates[label] = (new.get(interface, 0) - old.get(interface, 0)) * 8 / (end - start)
        self.cpu.append(max(uses, key=lambda use: use.busy))
        self._on_rates(after[next(iter(after))][0], rates)


def cpu_use(start_s: float, end_s: float, before: str, after: str) -> CpuUse:
    """Return the use of the processors between two readings of ``/proc/stat`` (proc(5))."""
    first, second = cpu_ticks(before), cpu_ticks(after)
    spent = {name: [b - a for a, b in zip(first[name], ticks, strict=True)] for name, ticks in second.items()}
    together = spent.pop("cpu")
    return CpuUse(
        start_s=start_s,
        end_s=end_s,
        busy=_busy(together),
        steal=together[7] / (sum(together) or 1),
        busiest=max(map(_busy, spent.values()), default=None),
    )


def _busy(spent: list[int]) -> float:
    return 1 - idle_ticks(spent) / (sum(spent) or 1)


def idle_ticks(spent: list[int]) -> int:
    """Return how many of a processor's ticks had nothing to do; waiting for disks is idle."""
    return spent[3] + spent[4]


def cpu_ticks(stat: str) -> dict[str, list[int]]:
    """Return user, nice, system, idle, iowait, irq, softirq, steal of ``cpu``, all together, and of each.

    Guest time is part of user already.
    """
    lines = (line.split() for line in stat.splitlines() if line.startswith("cpu"))
    return {words[0]: [int(word) for word in words[1:9]] for words in lines}


def sent_bytes(text: str) -> dict[str, int]:
    """Return the bytes each interface has sent, from ``/proc/net/dev`` (proc(5): the ninth number)."""
    counters = {}
    for line in text.splitlines():
        name, colon, numbers = line.partition(":")
        if colon and len(numbers.split()) == 16:
            counters[name.strip()] = int(numbers.split()[8])
    return counters
