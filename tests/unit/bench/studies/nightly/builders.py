"""Nights of a machine, as its history has them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.studies.nightly.night import FlowNight, Night, PhaseNight, ScenarioNight

MACHINE = "0123456789ab"
FLOWS = ("A -> C", "B -> D")
PHASES = ("quiet", "disturbed")
FIRST = datetime(2026, 11, 1, 2, 17, tzinfo=UTC)


def scenario(number: int = 0, carried: float = 1.0, **factors: float) -> ScenarioNight:
    """A night's numbers in noise of 0.2 %; ``factors`` are of flows by their last letter, and of up."""
    chance = random.Random(number)

    def about(value: float, spread: float = 0.002) -> float:
        return value * chance.gauss(1.0, spread)

    return ScenarioNight(
        verdict="held",
        causes=[],
        attempts=1,
        recording=f"recording-{number}",
        setting="pod",
        flows={
            flow: FlowNight(
                guarantee_bps=100e6,
                retransmissions=round(about(40, 0.2)),
                phases={
                    phase: PhaseNight(mean_bps=about(95.5e6) * factors.get(flow[-1], 1.0), attainment=1.0)
                    for phase in PHASES
                },
            )
            for flow in FLOWS
        },
        calibration_bps=about(20e9, 0.01) * carried,
        add_s=about(0.05, 0.05),
        up_s=about(0.3, 0.05) * factors.get("up", 1.0),
        down_s=about(0.002, 0.1),
    )


def night(number: int, one: ScenarioNight | None = None, **fields: Any) -> Night:
    """The night of a number, from 0."""
    one = one or scenario(number)
    started = FIRST + timedelta(days=number)
    return Night(
        **{
            "run_id": f"{started:%Y%m%dT%H%M%SZ}-small-pod-{number:08x}",
            "started_at": started.isoformat(),
            "machine": MACHINE,
            "commit": "c" * 40,
            "verdict": one.verdict,
            "causes": one.causes,
            "scenarios": {"small": one},
            "beside": {"commit": "c" * 40, "kernel": "6.18.1-1"},
            **fields,
        }
    )


def silent(number: int) -> Night:
    """A night that says nothing."""
    one = ScenarioNight(verdict="invalid", causes=["machine"], attempts=2, recording=f"recording-{number}")
    return night(number, one)
