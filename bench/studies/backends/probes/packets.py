"""Traffic between two pods: one flow of TCP, as fast as it goes, and packets that are offered at a rate.

Of the latter, what all processors did meanwhile is read; see ``programs/load.py``.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.measurement.probe import talking
from bench.studies.backends.probes import PROGRAMS
from bench.studies.backends.records import Meanwhile, Offered, Reading
from testbed.access.place import PodPlace

PORT, IPERF3_PORT = 7009, 5999
GRACE_SECONDS = LISTENING_SECONDS = 10.0


class Plan(NamedTuple):
    """How long everything is looked at, seconds."""

    idle: float = 2.0  # before and after, each
    lead: float = 0.3  # of packets, before it is counted
    window: float = 1.0
    windows: int = 8  # that are counted, one after another


class Offer(NamedTuple):
    """What is offered."""

    size: int  # bytes of payload
    rate: int  # packets a second


# So many that packets are what the processors do, and waking up is not.
OFFERS = (Offer(64, 60_000), Offer(1400, 60_000))


def offer(source: PodPlace, destination: PodPlace, one: Offer, plan: Plan) -> Offered:
    """Offer packets and return what came of it. Raises RuntimeError."""
    wishes: dict[str, Any] = {"address": destination.address, "port": PORT}
    receive = {**wishes, "role": "receive", **plan._asdict()}
    # A little longer than is counted: what is read at the end is read while packets still come.
    length = plan.lead + plan.window * plan.windows + 0.3
    send = {**wishes, "role": "send", "rate": one.rate, "size": one.size, "seconds": length}
    before = look()
    with (
        talking(destination, PROGRAMS / "load.py", receive) as receiver,
        talking(source, PROGRAMS / "load.py", send) as sender,
    ):
        receiver.begin()
        receiver.expect("idle", plan.idle + GRACE_SECONDS)
        sender.begin()
        sent = sender.data(length + GRACE_SECONDS)
        found = receiver.data(plan.idle + GRACE_SECONDS)
    meanwhile = since(before, look())
    return Offered.model_validate_json(
        json.dumps({**found, **one._asdict(), "sent": sent["sent"], "others_s": meanwhile.others_s})
    )


def throughput(source: PodPlace, destination: PodPlace, seconds: int) -> float:
    """Return the payload that iperf3 brings to the receiver, bits per second. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        server = destination.start(
            ["iperf3", "-s", "-1", "-J", "-p", str(IPERF3_PORT)], stdout=out, stderr=err
        )
        try:
            deadline = time.monotonic() + LISTENING_SECONDS
            while not destination.run(["ss", "-Hltn", f"sport = :{IPERF3_PORT}"]).stdout:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{destination.name}: iperf3 does not listen: {err.read_text()}")
                time.sleep(0.01)
            client = ["iperf3", "-c", destination.address, "-p", str(IPERF3_PORT), "-t", str(seconds)]
            source.run(client, timeout=seconds + 60)
            server.wait(10)
        finally:
            server.kill()
        end = json.loads(out.read_text())["end"]["sum_received"]
    return float(end["bytes"] * 8 / end["seconds"])


KTHREADD = 2  # whose children the kernel's threads are


class Process(NamedTuple):
    """What /proc/PID/stat says (proc(5))."""

    parent: int
    ticks: int  # of user and system time, its own
    children: int  # the same of its children that have ended
    start: int


# Ticks of processes by their id and start: their own, and of children that have ended.
Ticks = dict[tuple[int, int], tuple[int, int]]
Look = tuple[Reading, Ticks]


def look() -> Look:
    """Return a reading of the processors, and the ticks of every process of others."""
    processes = dict(_processes())
    mine = _descendants(processes, os.getpid())
    others = {
        (pid, one.start): (one.ticks, one.children)
        for pid, one in processes.items()
        if pid not in mine and pid != KTHREADD and one.parent != KTHREADD
    }
    stat = "".join(
        f"{line}\n"
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
        if line.startswith("cpu")
    )
    return Reading(ns=time.monotonic_ns(), stat=stat), others


def since(before: Look, after: Look) -> Meanwhile:
    """Return what was there between two looks."""
    seconds = spent(before[1], after[1]) / os.sysconf("SC_CLK_TCK") if after[1] else None
    return Meanwhile(readings=(before[0], after[0]), others_s=seconds)


def spent(before: Ticks, after: Ticks) -> int:
    """Return the ticks that processes took between two looks, those that ended meanwhile included.

    Whose parent does not wait for it takes its time with it: then what is left of the others counts.
    """
    together = sum(map(sum, after.values())) - sum(map(sum, before.values()))
    left = sum(own - before.get(key, (0, 0))[0] for key, (own, _) in after.items())
    return max(together, left)


def _processes() -> list[tuple[int, Process]]:
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            stat = Path(entry.path, "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended
            continue
        words = stat.rpartition(")")[2].split()
        parent, start, *ticks = (int(words[number]) for number in (1, 19, 11, 12, 13, 14))
        found.append((int(entry.name), Process(parent, sum(ticks[:2]), sum(ticks[2:]), start)))
    return found


def _descendants(processes: dict[int, Process], first: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, one in processes.items():
        children.setdefault(one.parent, []).append(pid)
    found, left = set(), [first]
    while left:
        pid = left.pop()
        found.add(pid)
        left += children.get(pid, [])
    return found
