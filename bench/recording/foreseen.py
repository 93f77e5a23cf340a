"""What a calibration foresees, in the words that terminal and page share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from testbed.scenario.units import format_factor, format_number


class Foreseen(Protocol):
    """What is foreseen at one scale; see ``records.Foreseen``."""

    @property
    def scale(self) -> float:
        """Of the rates asked for."""

    @property
    def margin(self) -> float:
        """What the flows can have beside the disturbances, over what they need."""

    @property
    def can_tell(self) -> bool:
        """Whether a statement is expected."""


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
