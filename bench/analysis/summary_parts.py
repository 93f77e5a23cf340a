"""What all parts of ``summary.json`` have in common, and how an interval is told in it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from bench.analysis import intervals, spread


class Part(BaseModel):
    """Base of everything in the summary; fields of later additions are ignored when reading."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, populate_by_name=True, allow_inf_nan=False, defer_build=True
    )


class IntervalSummary(Part):
    """What is estimated lies between both ends in ``level`` of the cases."""

    low: float
    high: float
    level: float
    unit: spread.Unit  # what was drawn: repetitions, or blocks of samples, which tell of this run alone

    @property
    def half(self) -> float:
        """Half its width: what stands behind a plus-minus."""
        return (self.high - self.low) / 2


def interval(known: intervals.Interval, unit: spread.Unit, digits: int) -> IntervalSummary:
    """Return an interval as it is told."""
    return IntervalSummary(
        low=round(known.low, digits),
        high=round(known.high, digits),
        level=intervals.LEVEL,
        unit=unit,
    )
