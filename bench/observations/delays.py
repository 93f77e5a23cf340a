"""What the trunks of zones did to packets, and was what delays them itself in time?

A link takes the time that a scenario gives it. What makes it, where that is our own relay, needs a processor
for each packet; one that gets it late makes another link than was asked for, and one that loses packets makes
one that is not asked for at all. Then a run proves nothing, whoever kept its promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.observations.causes import Cause, Fine, Part
from bench.observations.observation import Evidence, Observation, Scene, Seen, Table
from bench.recording.records import Delayed, Fault, Repetition, RunRecord
from testbed.access.place import in_parallel
from testbed.scenario.units import format_digits, format_percentage, format_share

if TYPE_CHECKING:
    from testbed.links.trunks import Running

# A frame is late that is later than a tenth of the delay (testbed.links.relay.LATE). So many may be.
LATE_FRAMES = 0.01
# Of fewer frames one alone is more than that.
FEWEST_FRAMES = 100

LEGEND = (
    "What made the delays between zones, and how late it was itself: the share of frames that came later "
    "than a tenth of the delay, beside the delay; how late 99 % of them were at most, to a power of two; the "
    "worst of all; packets that it lost. Times in milliseconds."
)
HEADINGS = ("trunk", "by", "delay, ms", "frames", "late", "99 % below, ms", "worst, ms", "lost")


class Trunk(Part):
    """One direction of a trunk that takes time, as the summary tells. What nobody counted is null."""

    zone: str
    out: bool  # from the zone to the others
    means: str  # what made the delay: netem, or our own relay
    delay_s: float
    frames: int | None
    late: Fine | None  # share of frames that were later than a tenth of the delay, beside the delay
    p99_s: Fine | None  # how late the most punctual 99 % of the frames were at most, to a power of two
    worst_s: Fine | None
    dropped: int | None  # packets that it lost itself


class Delays(Observation):
    """Asks every trunk that takes time."""

    name = "delays"

    def before(self, scene: Scene) -> list[Fault]:
        """Let every trunk count from now on; return a fault for each that does not answer."""
        return begin(scene.testbed.provider.trunks)

    def after(self, scene: Scene, before: list[Fault]) -> Seen:
        """Return what was counted; a fault is told once."""
        delayed, silent = ask(scene.testbed.provider.trunks)
        return Seen(fields={"delayed": delayed}, faults=before or silent)

    def causes(self, evidence: Evidence) -> Iterator[Cause]:
        """Yield each direction of a trunk that was late too often, stood still, or lost packets."""
        interval = evidence.scenario.measurement.interval
        for number, repetition in enumerate(evidence.record.repetitions):
            for one in repetition.delayed or []:
                where = f"repetition-{number}: the {one.means} {direction(one)}"
                for text, observed, required in _faults(one, interval):
                    yield Cause(
                        kind="machine",
                        text=f"{where} {text}",
                        repetition=number,
                        observed=observed,
                        required=required,
                        topics=("relay",),
                    )

    def table(self, record: RunRecord) -> Table | None:
        """Return a row for each direction of each trunk, repetition by repetition."""
        rows = [
            _row(number, one)
            for number, repetition in enumerate(record.repetitions)
            for one in repetition.delayed or []
        ]
        return Table("Delays between zones", LEGEND, HEADINGS, rows, texts=2) if rows else None


def told(repetition: Repetition) -> list[Trunk] | None:
    """Return what trunks did in a repetition; None if none takes time."""
    if repetition.delayed is None:
        return None
    return [
        Trunk(**one.model_dump(exclude={"late", "lateness"}), late=late_share(one), p99_s=lateness(one, 0.99))
        for one in repetition.delayed
    ]


def _faults(one: Delayed, interval: float) -> Iterator[tuple[str, float, float]]:
    """Yield what is wrong with one direction of a trunk, with what was counted and what may be.

    Where nothing passes hardly a frame is late: senders wait. So one that was held for a whole sample is as
    bad as many. ``interval`` is how long a sample is, seconds.
    """
    if one.dropped:
        yield f"lost {one.dropped:,} packets itself", one.dropped, 0
    late = late_share(one)
    if late is not None and late > LATE_FRAMES and (one.frames or 0) >= FEWEST_FRAMES:
        text = (
            f"was late: {format_share(late)} of the frames came more than a tenth of the "
            f"{one.delay_s * 1000:g} ms too late, up to {(one.worst_s or 0) * 1000:.1f} ms"
        )
        yield text, late, LATE_FRAMES
    if one.worst_s is not None and one.worst_s > interval:
        text = (
            f"stood still: a frame came {one.worst_s * 1000:.0f} ms too late, longer than a "
            f"sample of {interval * 1000:g} ms"
        )
        yield text, one.worst_s, interval


def _row(number: int, one: Delayed) -> list[str]:
    return [
        f"repetition-{number}, {direction(one)}",
        one.means,
        _milliseconds(one.delay_s),
        _count(one.frames),
        format_percentage(late_share(one)).replace(" ", "\N{NO-BREAK SPACE}"),
        _milliseconds(lateness(one, 0.99)),
        _milliseconds(one.worst_s),
        _count(one.dropped),
    ]


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else format_digits(seconds * 1000)


def _count(of: int | None) -> str:
    """Return a count, or a dash for what nobody counted."""
    return "–" if of is None else f"{of:,}"


def begin(trunks: Sequence[Running]) -> list[Fault]:
    """Let every trunk count from now on; return a fault for each that does not answer."""
    return ask(trunks)[1]


def ask(trunks: Sequence[Running]) -> tuple[list[Delayed] | None, list[Fault]]:
    """Return what every trunk counted since it was asked last, and a fault for each that does not say.

    None if no trunk takes time.
    """
    told: list[Delayed] = []
    faults: list[Fault] = []
    for said in in_parallel(_asked, trunks):
        if isinstance(said, str):
            faults.append(Fault(kind="state", text=said))
        else:
            told += said
    return told or None, faults


def _asked(trunk: Running) -> list[Delayed] | str:
    try:
        said = trunk.delayed()
    except RuntimeError as error:
        return str(error)
    return [
        Delayed(
            zone=one.zone,
            out=one.out,
            means=one.means,
            delay_s=one.delay_s,
            **({} if one.counted is None else vars(one.counted)),
        )
        for one in said
    ]


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


def direction(one: Delayed) -> str:
    """Return which direction of which trunk it is."""
    return f"{'out of' if one.out else 'into'} zone {one.zone}"
