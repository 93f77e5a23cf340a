"""The rate of each transfer and the use of the processors, twice a second.

One process on each node reads the kernel's counters and goes on with it, so that watching costs next to
nothing; it reads more seldom where reading takes long. The rates are those of the receivers' interfaces, for
people to see; what is judged later are the generators' own records.
"""

from __future__ import annotations

import collections
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

from bench.measurement.plan import Counter, Plan
from bench.observations.observation import Seen, Watcher
from bench.observations.procfs import cpu_use, pressure, softirq
from bench.recording.records import CpuUse, Load
from testbed.access import scratch
from testbed.access.place import CommandError, Place
from testbed.scenario import Transfer

TICK_SECONDS = 0.5
LOOK_SECONDS = 0.05  # how often it is looked whether there is a new reading
# How much longer a node waits than it takes to answer, at least: to begin a process over SSH on an emulated
# machine costs a second of the processor that the traffic needs, and to go on with one still a tenth.
REST = 4
# A reading ends with an empty line, which none of the files has. Its first line is when it was made (proc(5):
# seconds since the start of the machine). It goes on as long as whoever began it is there.
END = "\n\n"
READINGS = """
while kill -0 "$PPID" && cat /proc/uptime /proc/stat /proc/net/dev; do
    cat /proc/pressure/cpu 2>/dev/null  # not every kernel has it
    echo
    sleep "$1"
done
"""
# Two places of one machine have the same (kernel: Documentation/admin-guide/sysctl/kernel.rst).
BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]

Rates = dict[str, float]  # bits per second, by what ``names`` calls them
OnRates = Callable[[float, Rates], None]


def names(transfers: Iterable[Transfer]) -> dict[str, str]:
    """Return what the rate of each transfer is called, by the transfer's label.

    What comes to one pod is counted together, so several transfers to it have one name.
    """
    found = list(transfers)
    times = collections.Counter(one.destination for one in found)
    return {
        one.label: one.label if times[one.destination] == 1 else f"all to {one.destination}" for one in found
    }


class RateWatcher(Watcher):
    """Calls ``on_rates`` with the current rates; ``cpu`` then holds what the processors did.

    ``cpu`` has one entry for each reading, of the machine that was busiest; times are in seconds after the
    clock's zero. ``loads`` has for each machine what it had to do from the first reading to the last.
    """

    def __init__(self, plan: Plan, on_rates: OnRates) -> None:
        super().__init__()
        self.cpu: list[CpuUse] = []
        self.loads: dict[str, Load] = {}  # by machine, called as the first of its places here
        self._first: dict[str, tuple[float, str]] = {}
        self._boots: dict[str, str] = {}
        self._targets: dict[str, dict[Counter, str]] = {}  # node -> counter -> name of what comes there
        called = names(one.traffic for one in plan.transfers)
        # A machine that runs the nodes may be busy without their knowing.
        self._places: dict[str, Place] = {place.name: place for place in plan.hosts}
        for one in plan.transfers:
            for receiving in one.receivers:
                self._places[receiving.node.name] = receiving.node
                counters = self._targets.setdefault(receiving.node.name, {})
                if receiving.counter:
                    counters.setdefault(receiving.counter, called[one.traffic.label])
        self._on_rates = on_rates

    @property
    def seen(self) -> Seen:
        """What the machines had to do, for the recording."""
        return Seen(fields={"cpu": self.cpu, "loads": self.loads})

    def _watch(self) -> None:
        try:
            begin = time.monotonic()
            for name, place in self._places.items():
                self._boots[name] = place.run(BOOT_ID, check=False).stdout.strip() or name
            tick = max(TICK_SECONDS, REST * (time.monotonic() - begin))
            with self._readings(tick) as readings:
                self._follow(readings)
        except CommandError:  # the testbed is going down under us
            return

    @contextmanager
    def _readings(self, tick: float) -> Iterator[dict[str, _Readings]]:
        """Let every place read its counters every ``tick`` seconds, until the end of the block."""
        with ExitStack() as stack:
            found = {}
            for name, place in self._places.items():
                file = stack.enter_context(scratch.file())
                command = ["sh", "-c", READINGS, "sh", f"{tick:g}"]
                stack.callback(place.start(command, stdout=file, stderr=Path(os.devnull)).kill)
                found[name] = _Readings(stack.enter_context(file.open(encoding="utf-8")), self._zero)
            yield found

    def _follow(self, readings: dict[str, _Readings]) -> None:
        """Compare what all places have read with what they had read before, as often as there is more."""
        before: dict[str, tuple[float, str]] = {}
        while not self._stop.wait(LOOK_SECONDS):
            after = {name: last for name, one in readings.items() if (last := one.last()) is not None}
            if len(after) < len(readings) or any(after[name] == one for name, one in before.items()):
                continue
            if before:
                self._compare(before, after)
            before = after
            self._weigh(after)

    def _compare(self, before: dict[str, tuple[float, str]], after: dict[str, tuple[float, str]]) -> None:
        rates: Rates = defaultdict(float)  # what comes to several pods of a service is one
        uses: list[CpuUse] = []
        for name, (end, text) in after.items():
            start, earlier = before[name]
            uses.append(cpu_use(start, end, earlier, text))
            counters = self._targets.get(name, {})
            counts = {read: (read(earlier), read(text)) for read in {one.read for one in counters}}
            for (interface, read), what in counters.items():
                old, new = counts[read]
                rates[what] += (new.get(interface, 0) - old.get(interface, 0)) * 8 / (end - start)
        self.cpu.append(max(uses, key=lambda use: use.busy))
        self._on_rates(after[next(iter(after))][0], rates)

    def _weigh(self, after: dict[str, tuple[float, str]]) -> None:
        """Take note of what each machine had to do since the first reading."""
        self._first = self._first or after
        machines = {self._boots[name]: name for name in reversed(after)}
        for name in machines.values():
            (start, first), (end, last) = self._first[name], after[name]
            self.loads[name] = Load(softirq=softirq(first, last), pressure=pressure(first, last, end - start))


class _Readings:
    """What a place reads, as it arrives in a file."""

    def __init__(self, stream: TextIO, zero: float) -> None:
        self._stream = stream
        self._zero = zero
        self._rest = ""
        self._begin: float | None = None  # of the place's clock, in seconds after ``zero``
        self._last: tuple[float, str] | None = None

    def last(self) -> tuple[float, str] | None:
        """Return the last reading and when it was made, in seconds after ``zero``; None before the first."""
        complete, end, self._rest = (self._rest + self._stream.read()).rpartition(END)
        if end:
            uptime, _, reading = complete.rpartition(END)[2].partition("\n")
            made = float(uptime.split()[0])
            if self._begin is None:
                self._begin = time.monotonic() - self._zero - made
            self._last = self._begin + made, reading
        return self._last
