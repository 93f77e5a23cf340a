"""What does a small message wait, in a pod with a rate and in its neighbour, idle and under load?

No network says how long. So there are numbers and no verdict, unless whoever asks says what may be.
"""

from __future__ import annotations

from functools import partial

from bench.analysis.phases import Phase
from bench.studies.promise.check import Check, Evidence, Judgement, Number, always, register

WORDS: dict[Phase, str] = {"quiet": "idle", "disturbed": "under load"}


def _waits(of: str, evidence: Evidence) -> Judgement:
    """Return the percentiles of one pod's requests."""
    asked = next((one for one in evidence.runs["requests"].summary.requests if one.name == of), None)
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
    return Judgement("held", f"{told}; {lost} lost", numbers)


register(
    *(
        Check(
            name,
            asks,
            "64 bytes there and back, 200 times a second: medians and 99th percentiles",
            partial(_waits, requests),
            "latency",
            always(requests=scenario),
            threads=threads,
        )
        for name, asks, scenario, requests, threads in (
            (
                "limited-pod",
                "What does a small message of the limited pod wait while the pod sends all that it may?",
                "promise/latency",
                "in the limited pod",
                ("cilium/cilium/issues/29083", "containernetworking/plugins/issues/1025"),
            ),
            (
                "neighbour",
                "What does its neighbour's wait meanwhile?",
                "promise/latency",
                "in a neighbour",
                ("cilium/cilium/issues/29083",),
            ),
            (
                "limited-pod-full-link",
                "What does a small message of a pod with a rate wait beside a full link?",
                "promise/latency-full",
                "in the limited pod",
                (),
            ),
            (
                "neighbour-full-link",
                "What does one of a pod without a rate wait beside a full link?",
                "promise/latency-full",
                "in a neighbour",
                (),
            ),
        )
    )
)
