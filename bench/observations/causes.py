"""Why is a run not *held*? Each reason as data, so that a program need not read sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a reason is about: a promise that was not kept; the kernel's state, which was not as configured; the
# machine, which may have been the limit; or the measurement, of which something is missing or contradicts.
Kind = Literal["promise", "state", "machine", "measurement"]

# What exactly: the number that decides, or what was looked at. ``next_steps`` knows a remedy for each.
Topic = Literal[
    "mean",  # of a flow
    "attainment",  # the share of its samples that reached the threshold
    "ceiling",  # a long-run rate above what is claimed as the most
    "latency",  # of requests
    "lost",  # requests
    "calibration",  # what the paths carried unshaped, which is too little
    "uncalibrated",  # it failed
    "generator",  # of requests, which was late itself
    "relay",  # what makes the delay between zones
    "kernel",  # its state
    "transfer",  # which failed, or left no usable output
    "clocks",  # of the nodes
    "counters",  # which contradict each other
    "files",  # of the recording
    "repetitions",  # of which some are missing
    "samples",  # of a flow, which are too few
    "exchanges",  # of requests, which are too few
    "unpromised",  # nothing has a guarantee or a threshold
    "undisturbed",  # nothing was measured while anything disturbed it
]


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
    topics: tuple[Topic, ...] = ()  # of several thresholds that were missed: all, first that of the numbers
