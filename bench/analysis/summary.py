"""``summary.json``: what a recording shows, for other tools.

The contract is versioned. Fields may be added within a version; renaming or removing one makes a new version.
Units are in the names: ``_bps`` is payload bits per second (the guarantee: as the scenario counts it),
``_s`` seconds; shares are between 0 and 1. ``null`` means that there is no such thing here, never zero.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Literal

from pydantic import Field

from bench.analysis.machine import Machine
from bench.analysis.phases import Phase
from bench.analysis.requests_summary import RequestsSummary
from bench.analysis.samples import Role
from bench.analysis.spread import IntervalSummary
from bench.analysis.verdict import Outcome
from bench.observations.causes import Cause, Part, Topic
from bench.recording import atomic
from bench.recording.records import Foreseen
from testbed.scenario.words import Title

# The first percentile of fewer samples lies between the lowest two of them.
FEWEST_FOR_A_PERCENTILE = 100


class SpreadSummary(Part):
    """How well the numbers of a phase are known."""

    mean_bps: IntervalSummary
    attainment: IntervalSummary | None  # null without a guarantee
    shortfall: IntervalSummary | None  # null without a guarantee
    block_length: int | None  # samples of a block; null: nothing was resampled
    seed: int | None  # of what was drawn; null: nothing was
    lag1: float | None  # autocorrelation of neighbouring samples; null: they do not vary


class EffectSummary(Part):
    """What a disturbance does to a flow: disturbed less quiet of the same repetition."""

    share: float  # of the expected goodput; negative: the flow got less
    interval: IntervalSummary
    threshold: float  # the least that matters, thresholds.effect of the scenario


class SamplesSummary(Part):
    """What some samples of one transfer in one phase amount to."""

    mean_bps: float  # weighted by time
    p01_bps: float  # first percentile of the samples; of fewer than 100 it is their minimum by another name
    minimum_bps: float | None = None  # these three: null in summaries of earlier versions
    attainment: float | None  # share of samples that reach the threshold; null without a guarantee
    low: int | None = None  # samples below the threshold; null without a guarantee
    low_doubtful: int | None = None  # of these, those for which the machine may be to blame
    samples: int
    cpu_busy: float | None  # busy share of all processors during these samples, stolen time included
    # Which numbers decided that it did not hold; not in the file, where ``causes`` have them.
    missed: tuple[Topic, ...] = Field((), exclude=True)

    @property
    def shows_minimum(self) -> bool:
        """Whether there are too few samples for a percentile of its own."""
        return self.samples < FEWEST_FOR_A_PERCENTILE and self.minimum_bps is not None

    @property
    def lowest_bps(self) -> float:
        """What is shown as the low end: the first percentile, or the minimum of few samples."""
        return self.minimum_bps if self.shows_minimum and self.minimum_bps is not None else self.p01_bps


class RepetitionSummary(SamplesSummary):
    """One transfer in one phase of one repetition."""

    repetition: int
    met: bool | None = None  # whether it met both thresholds, and its ceiling; null without a guarantee


class PhaseSummary(SamplesSummary):
    """One transfer in one phase, all repetitions together."""

    shortfall: float | None  # share of the expected goodput that the mean misses; null without a guarantee
    met: bool | None  # whether every repetition did; null without a guarantee
    repetitions: list[RepetitionSummary]
    intervals: SpreadSummary | None = None  # null: too few samples to tell
    effect: EffectSummary | None = None  # of a disturbed phase; null: without a guarantee, or too few samples

    @property
    def judged(self) -> SamplesSummary:
        """What the phase was judged by: the worst of the repetitions that missed, otherwise all together."""
        missed = [one for one in self.repetitions if one.met is False]
        if over := [one for one in missed if "ceiling" in one.missed]:
            return max(over, key=lambda one: one.mean_bps)
        return min(missed, key=lambda one: one.mean_bps) if missed else self


class FlowSummary(Part):
    """One flow or disturbance."""

    name: Title
    role: Role
    protocol: str
    guarantee_bps: float | None
    expected_goodput_bps: float | None
    phases: dict[Phase, PhaseSummary]


class CalibrationSummary(Part):
    """What the guaranteed flows' paths carried without shaping, all at once, when it was least."""

    total_bps: float | None
    flows_bps: dict[str, float]
    before_bps: float | None = None  # in all, before the traffic; null: not made, or not recorded
    after_bps: float | None = None
    # By scale. Not in the file where nothing was foreseen, as in those of earlier versions.
    foreseen: list[Foreseen] | None = Field(None, exclude_if=lambda known: known is None)


class SecondsSummary(Part):
    """How long the parts took."""

    up: float
    calibration: float
    traffic: float
    down: float
    analysis: float


class Summary(Part):
    """The whole file."""

    # In the file it is called "schema", which pydantic's models cannot have as a name.
    schema_version: Literal[1] = Field(1, alias="schema")
    run_id: str
    started_at: str
    # The run that proved nothing because of the machine, and led to this one. Only in such a file.
    retry_of: str | None = Field(None, exclude_if=lambda run: run is None)
    scenario: str
    title: Title
    provider: str
    orchestrator: str
    enforcement: str
    verdict: Outcome
    reasons: list[str]
    causes: list[Cause] = Field([])  # one for each reason, in the same order
    notes: list[str]
    flows: list[FlowSummary]
    # Not in the file without any, so that summaries of earlier versions stay what they are.
    requests: list[RequestsSummary] = Field([], exclude_if=lambda known: not known)
    calibration: CalibrationSummary | None
    machine: list[Machine] = Field([])
    seconds: SecondsSummary

    def analysed(self, seconds: float) -> Summary:
        """Return the same summary with the time its analysis took."""
        took = self.seconds.model_copy(update={"analysis": round(seconds, 3)})
        return self.model_copy(update={"seconds": took})


def render(summary: Summary) -> str:
    """Return the text of ``summary.json``."""
    data = summary.model_dump(mode="json", by_alias=True)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(file: Path) -> Summary:
    """Read a ``summary.json``. Raises StoredError, for any other version too."""
    with atomic.remedy(f"make it again: ./invokew figures {shlex.quote(str(file.parent))}"):
        return atomic.read(file, Summary)
