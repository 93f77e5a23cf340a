"""What a night amounts to: may the job go on, must somebody look, or is there nothing to be said?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.studies.nightly.findings import Finding
from bench.studies.nightly.night import Night

Gate = Literal["passed", "broken", "not up", "no statement", "worse"]

# Below so many nights that measured something a finding is advice, and fails nothing.
ADVISORY = 20
# Of so many nights more than this share without a statement make a machine unfit.
LOOKED_AT, SILENT = 20, 0.2


@dataclass(frozen=True)
class Judgement:
    """What came out of both gates."""

    gate: Gate
    advisory: bool  # too few nights for the second gate to fail anything
    silent: int  # of the last LOOKED_AT nights

    @property
    def unfit(self) -> bool:
        """Whether this machine says nothing too often."""
        return self.silent > SILENT * LOOKED_AT


def judge(nights: Sequence[Night], findings: Sequence[Finding]) -> Judgement:
    """Judge the last of these nights: gate one by its own verdict, gate two by what it shows of others."""
    tonight = nights[-1]
    advisory = sum(not night.silent for night in nights) < ADVISORY
    silent = sum(night.silent for night in nights[-LOOKED_AT:])
    return Judgement(_gate(tonight, findings, advisory), advisory, silent)


def _gate(tonight: Night, findings: Sequence[Finding], advisory: bool) -> Gate:
    if tonight.blocks:
        return "broken"
    if any(one.verdict == "failed" for one in tonight.scenarios.values()):
        return "not up"
    if tonight.silent:
        return "no statement"
    if not advisory and any(finding.kind == "worse" for finding in findings):
        return "worse"
    return "passed"
