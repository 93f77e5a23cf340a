"""Why is a run not *held*? Each reason as data, so that a program need not read sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a reason is about: a promise that was not kept; the kernel's state, which was not as configured; the
# machine, which may have been the limit; or the measurement, of which something is missing or contradicts.
Kind = Literal["promise", "state", "machine", "measurement"]


@dataclass(frozen=True)
class Cause:
    """One reason. What it is not about, or has no number for, is None."""

    kind: Kind
    text: str
    flow: str | None = None  # its label
    phase: str | None = None
    repetition: int | None = None  # from 0
    # A rate in bits per second, a share from 0 to 1, or a count of samples or bytes; the text says of what.
    observed: float | None = None
    required: float | None = None
