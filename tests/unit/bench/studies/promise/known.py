"""Runs of the promise kit that were never made: summaries and samples as an analysis would leave them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bench.analysis.samples import COLUMNS
from bench.analysis.summary import (
    FlowSummary,
    PhaseSummary,
    RepetitionSummary,
    RequestsSummary,
    SecondsSummary,
    Summary,
)
from bench.observations.causes import Cause
from bench.recording.directory import Recording
from bench.studies.promise.check import Ran
from testbed.scenario import Scenario, load
from tests.paths import ROOT

RATES = load(ROOT / "scenarios" / "promise" / "rates.yaml")
SAMPLES = 40  # of a repetition that count


def flow(name: str, expected: float, guarantee: float, *means: float) -> FlowSummary:
    """Return a flow with a mean in each repetition."""
    repetitions = [
        RepetitionSummary(
            repetition=number, mean_bps=mean, p01_bps=mean, attainment=None, samples=SAMPLES, cpu_busy=0.3
        )
        for number, mean in enumerate(means)
    ]
    overall = PhaseSummary(
        mean_bps=sum(means) / len(means),
        p01_bps=min(means),
        attainment=None,
        samples=SAMPLES * len(means),
        cpu_busy=0.3,
        shortfall=None,
        met=None,
        repetitions=repetitions,
    )
    return FlowSummary(
        name=name,
        role="guaranteed",
        protocol="tcp",
        guarantee_bps=guarantee,
        expected_goodput_bps=expected,
        phases={"quiet": overall},
    )


def cause(kind: str, text: str, flow: str | None = None) -> Cause:
    return Cause.model_validate(
        {
            "kind": kind,
            "flow": flow,
            "phase": None,
            "repetition": None,
            "observed": None,
            "required": None,
            "text": text,
        }
    )


def ran(
    flows: list[FlowSummary],
    causes: list[Cause] | None = None,
    samples: pd.DataFrame | None = None,
    directory: Path = Path("nowhere"),
    scenario: Scenario = RATES,
    requests: Sequence[RequestsSummary] = (),
) -> Ran:
    """Return a run with these flows, of the common scenario unless another is named."""
    found = Ran(Recording(directory))
    result = Summary(
        run_id="r",
        started_at="2026-01-01T00:00:00Z",
        scenario="rates",
        title="",
        provider="netns",
        orchestrator="cni",
        enforcement="node",
        verdict="invalid" if causes else "held",
        reasons=[],
        causes=causes or [],
        notes=[],
        flows=flows,
        requests=list(requests),
        calibration=None,
        seconds=SecondsSummary(up=0, calibration=0, traffic=0, down=0, analysis=0),
    )
    table = pd.DataFrame(columns=list(COLUMNS)).astype(COLUMNS) if samples is None else samples
    # In place of what would be read from the recording (functools.cached_property).
    found.__dict__.update({"summary": result, "samples": table, "scenario": scenario})
    return found


def received(name: str, rates: list[float], repetition: int = 0, begin: float = 0.006) -> pd.DataFrame:
    """Return a receiver's samples of 0.1 s, one after the other."""
    rows = [
        (repetition, name, "guaranteed", begin + n / 10, begin + (n + 1) / 10, rate, "receiver", *[None] * 3)
        for n, rate in enumerate(rates)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)
