"""Was what delays packets between zones itself in time?

A link takes the time that a scenario gives it. What makes it, where that is our own relay, needs a processor
for each packet; one that gets it late makes another link than was asked for, and one that loses packets makes
one that is not asked for at all. Then a run proves nothing, whoever kept its promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.analysis.causes import Cause, Topic
from bench.recording.records import Delayed, RunRecord
from testbed.scenario.units import format_share

# A frame is late that is later than a tenth of the delay (testbed.networks.relay.LATE). So many may be.
LATE_FRAMES = 0.01
# Of fewer frames one alone is more than that.
FEWEST_FRAMES = 100

RELAY: tuple[Topic] = ("relay",)


def faults(record: RunRecord, interval: float) -> Iterator[Cause]:
    """Yield each direction of a trunk that was late too often, stood still, or lost packets, in a repetition.

    Where nothing passes hardly a frame is late: senders wait. So one that was held for a whole sample is as
    bad as many. ``interval`` is how long a sample is, seconds.
    """
    for number, repetition in enumerate(record.repetitions):
        for one in repetition.delayed or []:
            where = f"repetition-{number}: the {one.means} {words(one)}"
            if one.dropped:
                text = f"{where} lost {one.dropped:,} packets itself"
                yield Cause(
                    "machine", text, repetition=number, observed=one.dropped, required=0, topics=RELAY
                )
            late = late_share(one)
            if late is not None and late > LATE_FRAMES and (one.frames or 0) >= FEWEST_FRAMES:
                text = (
                    f"{where} was late: {format_share(late)} of the frames came more than a tenth of the "
                    f"{one.delay_s * 1000:g} ms too late, up to {(one.worst_s or 0) * 1000:.1f} ms"
                )
                yield Cause(
                    "machine", text, repetition=number, observed=late, required=LATE_FRAMES, topics=RELAY
                )
            if one.worst_s is not None and one.worst_s > interval:
                text = (
                    f"{where} stood still: a frame came {one.worst_s * 1000:.0f} ms too late, longer than a "
                    f"sample of {interval * 1000:g} ms"
                )
                yield Cause(
                    "machine", text, repetition=number, observed=one.worst_s, required=interval, topics=RELAY
                )


def late_share(one: Delayed) -> float | None:
    """Return the share of frames that were late; None if nobody counted, or none came."""
    return one.late / one.frames if one.frames and one.late is not None else None


def lateness(one: Delayed, share: float) -> float | None:
    """Return how late this share of the frames was at most, seconds: the next power of two of microseconds.

    None if nobody counted, or none came.
    """
    if not one.lateness or not (total := sum(one.lateness)):
        return None
    return _reached(one.lateness, share * total)


def _reached(counts: Sequence[int], wanted: float) -> float:
    passed = 0
    for step, count in enumerate(counts):
        passed += count
        if passed >= wanted:
            return float(2**step) / 1e6
    return float(2 ** len(counts)) / 1e6


def words(one: Delayed) -> str:
    """Return which direction of which trunk it is."""
    return f"{'out of' if one.out else 'into'} zone {one.zone}"
