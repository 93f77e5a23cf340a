"""What a calibration foresees, in the words that terminal and page share."""

from __future__ import annotations

from collections.abc import Sequence

from bench.recording.records import Foreseen
from testbed.scenario.units import format_factor, format_number

SMALLER = (0.5, 0.2, 0.1)  # shares of every rate that are tried where a machine cannot tell at what was asked


def excluded(found: Sequence[Foreseen] | None, scale: float) -> bool:
    """Tell whether a statement is excluded at a scale: it is if it already is at a smaller one, or at it."""
    return any(not one.can_tell for one in found or () if one.scale <= scale * (1 + 1e-9))


def said(found: Sequence[Foreseen]) -> str:
    """Return whether this machine can tell, or at which smaller rates it can."""
    asked = found[0]
    margin = f"{format_number(round(asked.margin, 2))} times what the flows need"
    if asked.can_tell:
        return f"this machine can tell: beside all that disturbs there is {margin}"
    smaller = next((one for one in found if one.can_tell), None)
    if smaller is None:
        least = format_factor(found[-1].scale)
        return f"this machine cannot tell, not at {least} either: beside all that disturbs there is {margin}"
    return (
        f"this machine cannot tell: beside all that disturbs there is {margin}; "
        f"at {format_factor(smaller.scale)} it can"
    )
