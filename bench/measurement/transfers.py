"""Transfers on one clock: every receiver listens and every sender is ready before any starts on time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.generators import iperf3
from bench.measurement import counters
from bench.measurement.watchers.rates import Observer, OnRates
from bench.measurement.watchers.saturation import Saturation
from bench.measurement.watchers.stalls import Heartbeat
from bench.recording.records import Repetition, Transfer, slug
from testbed.access.place import Process, held_back, in_parallel, waits
from testbed.scenario import Traffic
from testbed.testbed import Testbed

# A command in a pod of an emulated machine takes seconds to begin, and to be heard of.
READY_SECONDS = 60.0
# How long after its nominal end a sender may still be at it: connecting, and emptying what is queued.
GRACE_SECONDS = 30.0
RECEIVER_GRACE_SECONDS = 15.0
OTHER_END_SECONDS = 1.0  # how much later than a sender its receiver may know what has happened to both
LEAD_SECONDS = 0.05


@dataclass
class _Running:
    """One transfer under way."""

    traffic: Traffic
    transfer: Transfer
    directory: Path
    receiver: Process | None = None
    sender: Process | None = None

    def file(self, role: str, kind: str) -> Path:
        return self.directory / f"{self.transfer.slug}.{role}.{kind}"

    def fail(self, words: str) -> None:
        if self.transfer.error is None:
            self.transfer.error = words

    def complaint(self, role: str) -> str | None:
        return iperf3.complaint(self.file(role, "json"), self.file(role, "stderr"))


def run(
    testbed: Testbed, transfers: Sequence[Traffic], interval: float, directory: Path, on_rates: OnRates
) -> Repetition:
    """Run transfers to their ends; iperf3's untouched output lands in ``directory``.

    They must be transfers of the testbed's scenario, which gives each its port.

    A transfer that fails has its reason, in iperf3's own words, in its ``error``; the others go on.
    """
    directory.mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    running = [
        _Running(traffic, Transfer(slug=slug(traffic.label, taken), started_s=traffic.start), directory)
        for traffic in transfers
    ]
    before = _count(testbed, transfers)
    observer, heartbeat, saturation = Observer(testbed, transfers, on_rates), Heartbeat(), Saturation()
    with observer, heartbeat, saturation:
        try:
            in_parallel(lambda one: _listen(testbed, one, interval), running)
            listening = [one for one in running if not one.transfer.error]
            in_parallel(lambda one: _make_ready(testbed, one, interval), listening)
            ready = [one for one in listening if not one.transfer.error]
            zero = time.monotonic() + LEAD_SECONDS
            for watcher in (observer, heartbeat, saturation):
                watcher.start(zero)
            _send_all(ready, zero)
        finally:
            for one in running:
                for process in (one.sender, one.receiver):
                    if process is not None:
                        process.kill()
    after = _count(testbed, transfers)
    for one in running:
        source = one.traffic.source
        old, new = before[source], after[source]
        one.transfer.sender_interface_bytes = new.interface_bytes - old.interface_bytes
        if new.class_bytes is not None and old.class_bytes is not None:
            one.transfer.class_bytes = new.class_bytes - old.class_bytes
    return Repetition(
        transfers={one.traffic.label: one.transfer for one in running},
        cpu=observer.cpu,
        stalls=heartbeat.stalls,
        saturated=saturation.stretches,
    )


def _count(testbed: Testbed, transfers: Sequence[Traffic]) -> dict[str, counters.Counters]:
    sources = sorted({traffic.source for traffic in transfers})
    return dict(
        zip(
            sources,
            in_parallel(lambda name: counters.read(testbed.place(name), testbed.interface_of(name)), sources),
            strict=True,
        )
    )


def _listen(testbed: Testbed, one: _Running, interval: float) -> None:
    """Start a receiver and wait until the kernel says that its port listens."""
    place = testbed.place(one.traffic.destination)
    command = iperf3.receiver(testbed.scenario, one.traffic, interval)
    one.receiver = place.start(
        command, stdout=one.file("receiver", "json"), stderr=one.file("receiver", "stderr")
    )
    listening = ["ss", "-Hltn", f"sport = :{testbed.scenario.port_of(one.traffic)}"]
    if not _comes(one.receiver, lambda: bool(place.run(listening).stdout.strip())):
        one.fail(f"receiver does not listen: {one.complaint('receiver') or 'iperf3 said nothing'}")


def _make_ready(testbed: Testbed, one: _Running, interval: float) -> None:
    """Start a sender and wait until it is in its place; it connects when it is released.

    Getting there takes tenths of a second where Kubernetes leads the way, which must not pass for time in
    which it sends.
    """
    address = testbed.address_for(one.traffic)
    one.sender = testbed.place(one.traffic.source).start(
        held_back(iperf3.sender(testbed.scenario, one.traffic, address, interval)),
        stdout=one.file("sender", "json"),
        stderr=one.file("sender", "stderr"),
        held=True,
    )
    if not _comes(one.sender, lambda: waits(one.file("sender", "stderr"))):
        one.fail(f"sender does not get to its place: {one.complaint('sender') or 'iperf3 said nothing'}")


def _comes(process: Process, state: Callable[[], bool]) -> bool:
    """Wait for a state that a process brings about; return whether it did."""
    deadline = time.monotonic() + READY_SECONDS
    while not state():
        # Its early end is the event to wait for; otherwise the state is looked at again.
        if process.wait(timeout=0.01) is not None or time.monotonic() > deadline:
            return False
    return True


def _send_all(running: Sequence[_Running], zero: float) -> None:
    """Let every sender begin when it is due, then wait for all of them and their receivers."""
    for one in sorted(running, key=lambda one: one.traffic.start):
        assert one.sender is not None
        _wait_until(zero + one.traffic.start)
        one.transfer.started_s = time.monotonic() - zero
        one.sender.release()
    for one in running:
        assert one.sender is not None
        assert one.receiver is not None
        deadline = zero + one.transfer.started_s + one.traffic.duration + GRACE_SECONDS
        status = one.sender.wait(timeout=max(0.0, deadline - time.monotonic()))
        if status is None:
            one.fail(f"sender: still running {GRACE_SECONDS:g} s after its end")
        # With --json iperf3 ends with 0 even when it could not connect.
        elif (complaint := one.complaint("sender")) or status != 0:
            one.fail(f"sender: {complaint or f'iperf3 ended with {status}'}{_other_end(one)}")
        elif one.receiver.wait(timeout=RECEIVER_GRACE_SECONDS) is None:
            one.fail("receiver: still waiting for an end that its sender has reached")
        elif complaint := one.complaint("receiver"):
            one.fail(f"receiver: {complaint}")


def _other_end(one: _Running) -> str:
    """Return what the receiver says where its sender failed: the cause may be there."""
    assert one.receiver is not None
    ended = one.receiver.wait(timeout=OTHER_END_SECONDS) is not None
    complaint = one.complaint("receiver") if ended else None
    return f"; receiver: {complaint}" if complaint else ""


def _wait_until(moment: float) -> None:
    """Wait for a moment of the monotonic clock: the one event here that only a clock announces."""
    remaining = moment - time.monotonic()
    if remaining > 0:
        time.sleep(remaining)
