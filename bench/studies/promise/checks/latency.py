"""What does a small message wait, in a pod with a rate and in its neighbour, idle and under load?

No network says how long. So there are numbers and no verdict, unless whoever asks says what may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.analysis.phases import Phase
from bench.studies.promise.check import (
    About,
    Check,
    Evidence,
    Found,
    Ground,
    Judgement,
    Number,
    Run,
    register,
)

WORDS: dict[Phase, str] = {"quiet": "idle", "disturbed": "under load"}


@dataclass(frozen=True)
class Waits(Check):
    """One pod's requests in one scenario."""

    about: About
    scenario: str
    requests: str

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return the run."""
        return {"requests": Run(self.scenario)}

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the percentiles."""
        ran = evidence.runs["requests"]
        if ran.recording is None:
            return Judgement("invalid", f"not run: {ran.reason}")
        asked = next((one for one in ran.summary.requests if one.name == self.requests), None)
        numbers: list[Number] = []
        lost = 0
        for phase, words in WORDS.items():
            took = asked.phases.get(phase) if asked else None
            if took is None:
                return Judgement("invalid", f"{words}: no request was answered")
            lost += took.lost
            for name, value in (("p50", took.p50_s), ("p99", took.p99_s)):
                if value is not None:
                    numbers.append(Number(f"{name} {words}", value, "s"))
        told = ", ".join(f"{one.name} {one.value * 1e3:.2f} ms" for one in numbers)
        found: Found = "held"
        return Judgement(found, f"{told}; {lost} lost", numbers)


def _about(name: str, asks: str, *threads: str) -> About:
    how = "64 bytes there and back, 200 times a second: medians and 99th percentiles"
    return About(name, "latency", asks, how, None, tuple(f"https://github.com/{one}" for one in threads))


for _check in (
    Waits(
        _about(
            "limited-pod",
            "What does a small message of the limited pod wait while the pod sends all that it may?",
            "cilium/cilium/issues/29083",
            "containernetworking/plugins/issues/1025",
        ),
        "promise/latency",
        "in the limited pod",
    ),
    Waits(
        _about("neighbour", "What does its neighbour's wait meanwhile?", "cilium/cilium/issues/29083"),
        "promise/latency",
        "in a neighbour",
    ),
    Waits(
        _about(
            "limited-pod-full-link", "What does a small message of a pod with a rate wait beside a full link?"
        ),
        "promise/latency-full",
        "in the limited pod",
    ),
    Waits(
        _about("neighbour-full-link", "What does one of a pod without a rate wait beside a full link?"),
        "promise/latency-full",
        "in a neighbour",
    ),
):
    register(_check)
