"""What a night amounts to: may the job go on, must somebody look, or is there nothing to be said?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.studies.nightly.findings import Finding
from bench.studies.nightly.night import Night

Gate = Literal["broken", "not up", "worse", "no statement", "advice", "acknowledged", "passed"]
# The worst one first.
SENTENCES: dict[Gate, str] = {
    "broken": "a guarantee was violated, or something was not as configured",
    "not up": "a testbed could not be brought up",
    "worse": "something is worse than it was",
    "no statement": "no statement: the machine, or the measurement, and not the guarantee was the limit",
    "advice": "something may be worse than it was",
    "acknowledged": "what is worse than it was is acknowledged",
    "passed": "every guarantee held",
}

# Below so many nights that measured something a finding is advice, and fails nothing.
ADVISORY = 20
# Of so many nights more than this share without a statement make a machine unfit.
LOOKED_AT, SILENT = 20, 0.2


@dataclass(frozen=True)
class Judgement:
    """What came out of both gates."""

    tonight: Gate  # by the night's own verdict
    history: Gate  # by the nights before
    silent: int  # of the last LOOKED_AT nights

    @property
    def gate(self) -> Gate:
        """The worse of both."""
        return next(gate for gate in SENTENCES if gate in (self.tonight, self.history))

    @property
    def sentence(self) -> str:
        """What both say, the worse first; that nothing got worse goes without saying."""
        both = {self.tonight, self.history if self.history != "passed" else self.tonight}
        text = "; ".join(SENTENCES[gate] for gate in SENTENCES if gate in both)
        return f"{text[0].upper()}{text[1:]}"

    @property
    def unfit(self) -> bool:
        """Whether this machine says nothing too often."""
        return self.silent > SILENT * LOOKED_AT


def judge(nights: Sequence[Night], findings: Sequence[Finding]) -> Judgement:
    """Judge the last of these nights: gate one by its own verdict, gate two by what it shows of others."""
    spoke = sum(not night.silent for night in nights)
    silent = sum(night.silent for night in nights[-LOOKED_AT:])
    return Judgement(_tonight(nights[-1]), _history(findings, advisory=spoke < ADVISORY), silent)


def _tonight(night: Night) -> Gate:
    if night.blocks:
        return "broken"
    if any(one.verdict == "failed" for one in night.scenarios.values()):
        return "not up"
    return "no statement" if night.silent else "passed"


def _history(findings: Sequence[Finding], advisory: bool) -> Gate:
    if any(finding.open for finding in findings):
        return "advice" if advisory else "worse"
    return "acknowledged" if any(finding.kind == "worse" for finding in findings) else "passed"
