"""Transfers on one clock: every receiver and every sender is ready before any starts, each on time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.generators import Tool
from bench.measurement.plan import Plan, Planned, Receiving
from bench.measurement.probe import READY_SECONDS
from bench.measurement.rates import OnRates, RateWatcher
from bench.measurement.readings import QueueWatcher
from bench.measurement.rounds import RoundsWatcher
from bench.observations import counters, observation
from bench.observations.observation import Watching
from bench.recording.records import Repetition, Transfer, receiver_slug, slugs
from testbed.access.place import Process, held_back, in_parallel, waits

FIRST_LOOK_SECONDS, LAST_LOOK_SECONDS = 0.01, 0.32  # between two looks whether it is ready
# How long after its nominal end a sender may still be at it: connecting, and emptying what is queued.
GRACE_SECONDS = 30.0
RECEIVER_GRACE_SECONDS = 15.0
OTHER_END_SECONDS = 1.0  # how much later than a sender its receiver may know what has happened to both
LEAD_SECONDS = 0.05


@dataclass
class _Side:
    """One end of a transfer: where its output goes, and its process once it is started."""

    tool: Tool
    output: Path
    errors: Path
    process: Process | None = None

    @property
    def complaint(self) -> str | None:
        return self.tool.complaint(self.output, self.errors)

    @property
    def why(self) -> str:
        """Return why it failed, for it may not have said so."""
        return self.complaint or f"{self.tool.name} said nothing"

    @property
    def running(self) -> Process:
        assert self.process is not None, "it was not started"
        return self.process


@dataclass
class _Running:
    """One transfer under way."""

    planned: Planned
    transfer: Transfer
    directory: Path
    receivers: list[_Side] = field(init=False)
    sender: _Side = field(init=False)

    def __post_init__(self) -> None:
        slug, planned = self.transfer.slug, self.planned
        ends = [receiver_slug(slug, one.end) if planned.told_to_end else slug for one in planned.receivers]
        self.receivers = [self._side(one, "receiver") for one in ends]
        self.sender = self._side(slug, "sender")

    def _side(self, slug: str, role: str) -> _Side:
        tool = self.planned.generator
        output, errors = tool.file_name(slug, role), f"{slug}.{role}.stderr"
        return _Side(tool, self.directory / output, self.directory / errors)

    @property
    def processes(self) -> list[Process]:
        """What has been started for it."""
        return [side.process for side in (self.sender, *self.receivers) if side.process is not None]

    def fail(self, text: str) -> None:
        if self.transfer.error is None:
            self.transfer.error = text


def run(plan: Plan, directory: Path, on_rates: OnRates, beside: Collection[str] = ()) -> Repetition:
    """Run transfers to their ends; their generators' untouched output lands in ``directory``.

    Those of the labels ``beside`` are ended with the last of the others, whatever they have said by then. A
    transfer that fails has its reason, in its generator's own words, in its ``error``; the others go on.
    """
    directory.mkdir(parents=True, exist_ok=True)
    names = slugs(one.traffic.label for one in plan.transfers)
    running = [
        _Running(one, Transfer(slug=names[one.traffic.label], started_s=one.traffic.start), directory)
        for one in plan.transfers
    ]
    watchers: dict[str, Watching] = {
        "rates": RateWatcher(plan, on_rates),
        **{name: one for name, of in plan.observations.items() if (one := of.watching()) is not None},
        "readings": QueueWatcher(plan, directory),
        "rounds": RoundsWatcher(plan, directory),
    }
    senders = [(one.transfer, one.planned.source_network, one.planned.source.interface) for one in running]
    with counters.counting(senders), ExitStack() as watched:
        for watcher in watchers.values():
            watched.enter_context(watcher)
        _make(running, watchers.values(), beside)
    made = Repetition(transfers={one.planned.traffic.label: one.transfer for one in running}, cpu=[])
    return observation.recorded(made, {name: watcher.seen for name, watcher in watchers.items()})


def _make(running: Sequence[_Running], watchers: Iterable[Watching], beside: Collection[str]) -> None:
    """Get all ready, let all begin at once, and wait for their ends."""
    try:
        in_parallel(_listen, running)
        listening = [one for one in running if not one.transfer.error]
        in_parallel(_make_ready, listening)
        ready = [one for one in listening if not one.transfer.error]
        zero = time.monotonic() + LEAD_SECONDS
        for watcher in watchers:
            watcher.start(zero)
        _send_all(ready, zero, beside)
    finally:
        for one in running:
            for process in one.processes:
                process.kill()


def _listen(one: _Running) -> None:
    """Start the receivers and wait until each is ready, as their generator tells."""

    def listen(receiving: Receiving, side: _Side) -> None:
        planned, network = one.planned, receiving.network
        # Who ends with its input is a client's like: a guard far away would keep that from it.
        start = receiving.place.attach if planned.told_to_end else receiving.place.start
        side.process = start(planned.receiver, stdout=side.output, stderr=side.errors)
        if not comes(side.process, lambda: bool(network.run(planned.ready).stdout.strip())):
            one.fail(f"receiver{_at(one, receiving.end)} does not listen: {side.why}")

    in_parallel(lambda each: listen(*each), zip(one.planned.receivers, one.receivers, strict=True))


def _make_ready(one: _Running) -> None:
    """Start a sender and wait until it is in its place; it connects when it is released.

    Getting there takes tenths of a second where Kubernetes leads the way, which must not pass for time in
    which it sends.
    """
    sender = one.planned.sender
    held = sender if one.planned.generator.waits else held_back(sender)
    side = one.sender
    side.process = one.planned.source.start(held, stdout=side.output, stderr=side.errors, held=True)
    if not comes(side.process, lambda: waits(side.errors)):
        one.fail(f"sender does not get to its place: {side.why}")


def comes(process: Process, state: Callable[[], bool], longest_s: float = LAST_LOOK_SECONDS) -> bool:
    """Wait for a state that a process brings about; return whether it did.

    ``longest_s`` is the longest pause between two looks, seconds.
    """
    deadline, pause = time.monotonic() + READY_SECONDS, FIRST_LOOK_SECONDS
    while not state():
        # Its early end is the event to wait for; otherwise the state is looked at again.
        if process.wait(timeout=pause) is not None or time.monotonic() > deadline:
            return False
        # A look takes time of the processors which a hundred processes that come need themselves.
        pause = min(2 * pause, longest_s)
    return True


def _send_all(running: Sequence[_Running], zero: float, beside: Collection[str]) -> None:
    """Let every sender begin when it is due, then wait for all but those ``beside``, and their receivers."""
    for one in sorted(running, key=lambda one: one.planned.traffic.start):
        _wait_until(zero + one.planned.traffic.start)
        one.transfer.started_s = time.monotonic() - zero
        one.sender.running.release()
    for one in (one for one in running if one.planned.traffic.label not in beside):
        deadline = zero + one.transfer.started_s + one.planned.traffic.duration + GRACE_SECONDS
        status = one.sender.running.wait(timeout=max(0.0, deadline - time.monotonic()))
        if status is not None and one.planned.told_to_end:
            for side in one.receivers:
                side.running.end_input()
        if status is None:
            one.fail(f"sender: still running {GRACE_SECONDS:g} s after its end")
        # A tool may end with 0 though it complains: iperf3 with --json does, even if it could not connect.
        elif (complaint := one.sender.complaint) or status != 0:
            one.fail(
                f"sender: {complaint or f'{one.planned.generator.name} ended with {status}'}{_other_end(one)}"
            )
        else:
            _wait_for_receivers(one)


def _wait_for_receivers(one: _Running) -> None:
    """Wait for the ends of receivers whose sender has come to its own."""
    for receiving, side in zip(one.planned.receivers, one.receivers, strict=True):
        at = _at(one, receiving.end)
        if side.running.wait(timeout=RECEIVER_GRACE_SECONDS) is None:
            one.fail(f"receiver{at}: still waiting for an end that its sender has reached")
        elif complaint := side.complaint:
            one.fail(f"receiver{at}: {complaint}")


def _other_end(one: _Running) -> str:
    """Return what a receiver says where its sender failed: the cause may be there."""
    for receiving, side in zip(one.planned.receivers, one.receivers, strict=True):
        ended = side.running.wait(timeout=OTHER_END_SECONDS) is not None
        if ended and (complaint := side.complaint):
            return f"; receiver{_at(one, receiving.end)}: {complaint}"
    return ""


def _at(one: _Running, end: str) -> str:
    """Return which receiver is meant, where the transfer does not say it."""
    return f" at {end}" if one.planned.told_to_end else ""


def _wait_until(moment: float) -> None:
    """Wait for a moment of the monotonic clock: the one event here that only a clock announces."""
    remaining = moment - time.monotonic()
    if remaining > 0:
        time.sleep(remaining)
