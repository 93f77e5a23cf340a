"""How soon a floor holds: from counters that are read every few milliseconds to a time."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from bench.analysis.excuses import MOST
from bench.recording import queues
from bench.studies.promise import records
from bench.studies.promise.records import Point, Round

# A shorter window would judge single packets, of up to 64 KiB; a longer one hides what is to be seen.
WINDOW_S = 0.05
SHARE = 0.9  # of the floor, that every window has
STEP_S = 0.1  # of windows one behind the other: a usual sample
# A device is read every 100 ms, so that a window's hole is seen at half its depth; by themselves a full
# link's readings differ by one in a hundred.
CARRIED = 0.98


def held_after_s(
    points: Sequence[Point],
    floor_bps: float,
    since_s: float,
    until_s: float,
    excused: Sequence[tuple[float, float]] = (),
) -> float | None:
    """Return seconds from ``since_s`` to the first moment from which every window has enough of a floor.

    Windows are ``WINDOW_S`` long and end by ``until_s``; enough is ``SHARE`` of ``floor_bps`` (bits per
    second). Between two points bits pass evenly. A window that touches an excused stretch counts as one that
    has enough. None: it was never so. Raises ValueError if the points do not reach from one moment to the
    other.
    """
    enough, last = SHARE * floor_bps * WINDOW_S, until_s - WINDOW_S
    line = _Line(points, since_s, until_s)

    def missing(start: float) -> float:
        """Return the bits that a window lacks, in bits; above 0 it falls short."""
        if any(begin < start + WINDOW_S and start < end for begin, end in excused):
            return -enough
        return enough - (line.at(start + WINDOW_S) - line.at(start))

    # Between these moments what a window has changes evenly, so that the extremes are at them.
    moments = {since_s, last, *(at + shift for at, _ in points for shift in (0.0, -WINDOW_S))}
    moments |= {edge for begin, end in excused for edge in (begin - WINDOW_S, end)}
    starts = sorted(at for at in moments if since_s <= at <= last)
    short = [number for number, at in enumerate(starts) if missing(at) > 0]
    if not short:
        return 0.0
    if short[-1] == len(starts) - 1:
        return None
    before, after = starts[short[-1]], starts[short[-1] + 1]
    most, least = missing(before), missing(after)
    return before + (after - before) * most / (most - least) - since_s


def excuses(one: Round) -> list[tuple[float, float]]:
    """Return when a machine had no time to spare, each stretch with as long a time to get under way again.

    Who attacks keeps a processor busy, which excuses nothing; that the machine stood still does.
    """
    stretches = one.stalls if one.sent is not None else [*one.stalls, *one.saturated]
    return [(each.start_s, each.end_s + WINDOW_S) for each in stretches]


def room(one: Round) -> list[tuple[float, float]]:
    """Return when less left the sender's node than usually meanwhile, each stretch with as long again.

    Who crowds a flow out fills the link. A link that others fill all along and that has room for a moment was
    waited for by nobody but the machine. Whoever limits what leaves does so all along: that is no exception.
    """
    if one.way is None:
        return []
    (leaves,) = [each.readings for each in one.watched if each.place == one.way.leaves] or [[]]
    passed = _passed(list(queues.whole(leaves)), one.since_s, one.until_s)
    if not passed:
        return []
    usual = statistics.median(rate for _, _, rate in passed)
    found = [(start, end) for start, end, rate in passed if rate < CARRIED * usual]
    if sum(end - start for start, end in found) > MOST * (one.until_s - one.since_s):
        return []
    return [(start, end + WINDOW_S) for start, end in found]


def _passed(
    readings: Sequence[queues.Reading], since_s: float, until_s: float
) -> list[tuple[float, float, float]]:
    """Return from when to when how much a second left by the device that most left by."""
    judged = [each for each in readings if since_s <= each.at_s <= until_s]
    uplink = records.busiest(judged)
    if uplink is None:
        return []
    key = (uplink, queues.DEVICE, "", "")
    moments = [(each.at_s, each.queues[key].bytes if key in each.queues else 0) for each in judged]
    return [
        (start, end, (after - before) / (end - start))
        for (start, before), (end, after) in pairwise(moments)
        if end > start
    ]


def shares(points: Sequence[Point], floor_bps: float, since_s: float, until_s: float) -> list[float]:
    """Return which share of a floor each window had, one behind the other. Raises ValueError as above."""
    line, count = _Line(points, since_s, until_s), int((until_s - since_s) / STEP_S)
    passed = [line.at(since_s + number * STEP_S) for number in range(count + 1)]
    return [(after - before) / (floor_bps * STEP_S) for before, after in pairwise(passed)]


class _Line:
    """What had passed at any moment from one to another, from what had at some."""

    def __init__(self, points: Sequence[Point], since_s: float, until_s: float) -> None:
        if not points or points[0][0] > since_s or points[-1][0] < until_s:
            raise ValueError("nobody counted from the one moment to the other")
        self._moments = [at for at, _ in points]
        self._bits = [bits for _, bits in points]

    def at(self, moment: float) -> float:
        """Return the bits that had passed by a moment."""
        after = min(max(bisect_right(self._moments, moment), 1), len(self._moments) - 1)
        start, end = self._moments[after - 1], self._moments[after]
        share = (moment - start) / (end - start)
        return self._bits[after - 1] + share * (self._bits[after] - self._bits[after - 1])
