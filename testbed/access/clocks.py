"""How far the clock of a node is from ours, as NTP estimates it: four timestamps of one exchange.

The node's clock is read somewhere between our question and its answer, so the estimate is wrong by at most
half of the round trip, whatever the way there and back took (RFC 5905, section 8). The exchange with the
shortest round trip is the best one (section 10).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """One exchange, in seconds: by our clock when asked, by its clock when read, by ours when answered."""

    asked_s: float
    received_s: float
    replied_s: float
    answered_s: float

    @property
    def offset_s(self) -> float:
        """How far the node's clock is ahead of ours."""
        return ((self.received_s - self.asked_s) + (self.replied_s - self.answered_s)) / 2

    @property
    def round_trip_s(self) -> float:
        """How long the exchange took on its way there and back."""
        return (self.answered_s - self.asked_s) - (self.replied_s - self.received_s)


@dataclass(frozen=True)
class Clock:
    """A node's clock against ours."""

    offset_s: float  # ahead of ours
    round_trip_s: float

    @property
    def uncertainty_s(self) -> float:
        """How wrong the offset may be; also how late a node may hear that it is to begin."""
        return self.round_trip_s / 2


def estimate(readings: Iterable[Reading]) -> Clock:
    """Return the best estimate from several exchanges."""
    best = min(readings, key=lambda reading: reading.round_trip_s)
    return Clock(best.offset_s, best.round_trip_s)


def skew(clocks: Iterable[Clock]) -> float:
    """Return how far clocks are apart from each other, seconds."""
    offsets = [clock.offset_s for clock in clocks]
    return max(offsets, default=0.0) - min(offsets, default=0.0)
