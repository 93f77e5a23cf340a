"""What the kernel's files in ``/proc`` say: processors and interfaces."""

from __future__ import annotations

from collections.abc import Iterator

from bench.recording.records import CpuUse


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


def softirq(before: str, after: str) -> list[float]:
    """Return the share of its time that each processor spent in software interrupts between two readings."""
    first, second = cpu_ticks(before), cpu_ticks(after)
    shares = []
    for name, ticks in second.items():
        spent = [b - a for a, b in zip(first.get(name, ticks), ticks, strict=True)]
        if name != "cpu":
            shares.append(spent[6] / (sum(spent) or 1))
    return shares


def pressure(before: str, after: str, seconds: float) -> float | None:
    """Return the share of time between two readings in which something waited for a processor.

    Readings have what ``/proc/pressure/cpu`` says in them (the kernel's Documentation/accounting/psi.rst:
    ``total`` is in microseconds); None if one has not. The clock is read at other moments than the file, so
    that a little more than all of the time may seem to be waited: it is all.
    """
    first, second = _waited(before), _waited(after)
    if first is None or second is None or seconds <= 0:
        return None
    return min(1.0, (second - first) / 1e6 / seconds)


def _waited(reading: str) -> int | None:
    for line in reading.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2])
    return None


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
    return {name: numbers[8] for name, numbers in _interfaces(text)}


def received_bytes(text: str) -> dict[str, int]:
    """Return the bytes each interface has received, from the same (the first number)."""
    return {name: numbers[0] for name, numbers in _interfaces(text)}


def _interfaces(text: str) -> Iterator[tuple[str, list[int]]]:
    for line in text.splitlines():
        name, colon, numbers = line.partition(":")
        if colon and len(numbers.split()) == 16:
            yield name.strip(), [int(number) for number in numbers.split()]


def packets_dropped(softnet: str) -> int:
    """Return how many packets found no room in a processor's queue, which all namespaces share.

    ``softnet``: /proc/net/softnet_stat. Source: softnet_seq_show in net/core/net-procfs.c, second column.
    """
    return sum(int(line.split()[1], 16) for line in softnet.splitlines())
