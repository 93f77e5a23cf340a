"""Transfers that begin and end when they are told to, and what arrives of one of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.generators import generator_of
from bench.measurement import plan
from bench.measurement.plan import Plan
from bench.measurement.probe import READY_SECONDS
from bench.measurement.readings import QueueWatcher
from bench.measurement.transfers import comes
from bench.observations.processors import SaturationWatcher, StallWatcher
from bench.observations.procfs import packets_dropped
from bench.recording import queues
from bench.studies.promise import records
from bench.studies.promise.records import Datapath, Point, Round, Watched
from testbed.access import scratch
from testbed.access.place import Place, Process, held_back, waits
from testbed.scenario import Scenario, Traffic
from testbed.scenario.goodput import expected_goodput_of
from testbed.testbed import Testbed

INTERVAL_S = 0.01  # between two readings of counters
PATH_INTERVAL_S = 0.1  # the same of those that say who took what did not arrive
LOOK_S = 0.01


def flow(scenario: Scenario, label: str) -> Traffic:
    """Return a scenario's transfer of this name."""
    return next(one for one in scenario.traffic if one.label == label)


@contextmanager
def listening(testbed: Testbed, label: str) -> Iterator[None]:
    """Have a transfer's receiver listen until the end of the block. Raises RuntimeError if it does not."""
    transfer, interval = flow(testbed.scenario, label), testbed.scenario.measurement.interval
    tool = generator_of(testbed.scenario, transfer)
    (end,) = testbed.scenario.receivers_of(transfer)
    place = plan.place(testbed, end, tool)
    listens, network = tool.ready(testbed.addressing, transfer), testbed.network(end)
    with scratch.file() as out, scratch.file() as errors:
        command = tool.receiver(testbed.addressing, transfer, interval)
        receiver = place.start(command, stdout=out, stderr=errors)
        try:
            until(
                f"{label}: the receiver", receiver, errors, lambda: bool(network.run(listens).stdout.strip())
            )
            yield
        finally:
            receiver.kill()


@contextmanager
def sender(testbed: Testbed, label: str, held: bool = True) -> Iterator[Process]:
    """Have a transfer's sender in its place until the end of the block; ``release`` lets it send.

    One that is not held sends at once. Raises RuntimeError if it does not get to its place.
    """
    transfer, interval = flow(testbed.scenario, label), testbed.scenario.measurement.interval
    tool, address = generator_of(testbed.scenario, transfer), testbed.address_for(transfer)
    place = plan.place(testbed, transfer.source, tool)
    command = tool.sender(testbed.addressing, transfer, address, interval)
    with scratch.file() as out, scratch.file() as errors:
        begun = place.start(held_back(command) if held else command, stdout=out, stderr=errors, held=held)
        try:
            if held:
                until(f"{label}: the sender", begun, errors, lambda: waits(errors))
            yield begun
        finally:
            begun.kill()


@contextmanager
def sending(testbed: Testbed, *labels: str) -> Iterator[None]:
    """Let transfers send until the end of the block. Raises RuntimeError as the above."""
    with ExitStack() as stack:
        for label in labels:
            stack.enter_context(listening(testbed, label))
        for one in [stack.enter_context(sender(testbed, label)) for label in labels]:
            one.release()
        yield


@dataclass
class Counted:
    """What arrives at a pod of a flow; complete once the block that counts has ended."""

    way: Datapath
    floor_bps: float
    points: list[Point] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    stalls: StallWatcher = field(default_factory=StallWatcher)
    saturation: SaturationWatcher = field(default_factory=SaturationWatcher)
    lost: int = 0  # packets that the machine itself dropped meanwhile

    def round(self, name: str, since_s: float, until_s: float, **more: Any) -> Round:
        """Return what is kept of it, and what ``more`` there is; moments as ``time.monotonic`` has them."""
        return Round(
            name=name,
            floor_bps=self.floor_bps,
            points=self.points,
            since_s=since_s,
            until_s=until_s,
            stalls=self.stalls.stalls,
            saturated=self.saturation.stretches,
            lost=self.lost,
            way=self.way,
            watched=self.watched,
            **more,
        )


@contextmanager
def counting(testbed: Testbed, label: str, also: Sequence[str] = ()) -> Iterator[Counted]:
    """Count what arrives of a transfer, whose receiver's node gets nothing else worth mentioning.

    The queues on all paths are read too, less often; ``also`` are pods that send without a transfer. Raises
    RuntimeError at the end if nobody could count there.
    """
    transfer = flow(testbed.scenario, label)
    node = testbed.nodes[testbed.scenario.nodes_of(transfer)[1]]
    found = Counted(Datapath.of(testbed.scenario, label), _floor(testbed.scenario, transfer))
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as elsewhere:
        watcher = QueueWatcher(Plan([], [], [node], INTERVAL_S), Path(here))
        others = QueueWatcher(Plan([], [], _path(testbed, also), PATH_INTERVAL_S), Path(elsewhere))
        with watcher, others, found.stalls, found.saturation:
            for one in (watcher, others, found.stalls, found.saturation):
                one.start(0.0)  # moments stay those of the monotonic clock
            deadline = time.monotonic() + READY_SECONDS
            while not watcher.reads and time.monotonic() < deadline:
                time.sleep(LOOK_S)
            before = _lost()
            yield found
            found.lost = _lost() - before
        readings = [one for file in Path(here).glob(queues.PATTERN) for one in queues.read(file)]
        found.watched = [
            Watched(place=queues.place_of(file), readings=list(queues.changes(file)))
            for file in sorted(Path(elsewhere).glob(queues.PATTERN))
        ]
    device = records.busiest(readings)
    if device is None:
        raise RuntimeError(f"{node.name}: nobody could read its counters every {INTERVAL_S * 1e3:g} ms")
    found.points = records.payload(readings, device, transfer.protocol)


def _lost() -> int:
    """Return what this machine has dropped so far for want of processor time; of other machines nothing."""
    return packets_dropped(Path("/proc/net/softnet_stat").read_text(encoding="ascii"))


def _path(testbed: Testbed, also: Sequence[str]) -> list[Place]:
    """Return where packets of the scenario's pods that are there pass queues."""
    there = [one for one in testbed.scenario.traffic if one.source in testbed.pods]
    return [*plan.way(testbed, there), *(testbed.pods[name] for name in also)]


def _floor(scenario: Scenario, transfer: Traffic) -> float:
    """Return the payload that a transfer's receiver shall have, bits per second."""
    found = expected_goodput_of(scenario, transfer)
    assert found is not None, f"{transfer.label} was promised nothing"
    return found


def wait_until(moment: float) -> float:
    """Wait for a moment of the monotonic clock, which only a clock announces; return it."""
    time.sleep(max(0.0, moment - time.monotonic()))
    return moment


def until(what: str, process: Process, errors: Path, state: Callable[[], bool]) -> None:
    """Wait for a state that a process brings about. Raises RuntimeError if it does not."""
    if not comes(process, state):
        words = errors.read_text(encoding="utf-8", errors="replace").strip()
        raise RuntimeError(f"{what} does not get to its place: {words or 'it said nothing'}")
