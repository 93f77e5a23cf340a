"""Why is a run not *held*? Each reason as data, so that a program need not read sentences."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer

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
    "coarse",  # samples of a flow, each of too few bytes
    "exchanges",  # of requests, which are too few
    "unpromised",  # nothing has a guarantee or a threshold
    "undisturbed",  # nothing was measured while anything disturbed it
]


class Part(BaseModel):
    """Base of everything in ``summary.json``; fields of later additions are ignored when reading."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, populate_by_name=True, allow_inf_nan=False, defer_build=True
    )


# Exact in memory, and rounded when written: a share, or seconds; bits per second; seconds of whole parts.
Fine = Annotated[float, PlainSerializer(lambda value: round(value, 6))]
Rate = Annotated[float, PlainSerializer(lambda value: round(value, 1))]
Millis = Annotated[float, PlainSerializer(lambda value: round(value, 3))]


def _rounded(value: float) -> float:
    """Round a rate to a tenth of a bit, and a share to six digits."""
    return round(value, 6 if abs(value) <= 1 else 1)


Where = Literal["sender", "trunk", "receiver", "processor"]


class Lost(Part):
    """Where a flow's bytes were lost or held back, by counters (``bench.analysis.bottleneck``)."""

    where: Where | None  # null: not found
    text: str


class Cause(Part):
    """One reason. What it is not about, or has no number for, is null."""

    kind: Kind
    flow: str | None = None  # its label
    phase: str | None = None
    repetition: int | None = None  # from 0
    # A rate in bits per second, a share from 0 to 1, or a count of samples or bytes; the text says of what.
    observed: Annotated[float, AfterValidator(_rounded)] | None = None
    required: Annotated[float, AfterValidator(_rounded)] | None = None
    text: str  # why, in its own words
    # Of a flow that fell short. Not in the file where queues were not read.
    lost: Lost | None = Field(None, exclude_if=lambda known: known is None)
    # Of several thresholds that were missed: all, first that of the numbers; not in the file.
    topics: tuple[Topic, ...] = Field((), exclude=True)


def lost(label: str, text: str, repetition: int | None = None) -> Cause:
    """Return that a transfer, or requests, left no measurement; of one repetition, or at all."""
    which = "" if repetition is None else f", repetition-{repetition}"
    text = f"{label}{which}: {text}"
    return Cause(kind="measurement", text=text, flow=label, repetition=repetition, topics=("transfer",))
