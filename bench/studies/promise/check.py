"""What a check of the promise kit is: one question, small scenarios that answer it, and how they are judged.

A check says which runs it needs. Runs that several checks name in the same words are made once. Each is a
scenario like any other and leaves an ordinary recording; what cannot be a recording is measured by ``make``
and kept beside them. Judging is a function of what was kept alone: it needs neither root nor a
testbed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.analysis import samples, summary
from bench.analysis.summary import FlowSummary
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import CountedLink, Entry, StudyRequest
from bench.studies.promise import PROFILES, Profile
from testbed.registry import Registry
from testbed.scenario import Scenario
from testbed.scenario.descriptions import Claim, Direction
from testbed.scenario.words import Title

if TYPE_CHECKING:
    import pandas as pd

State = Literal["held", "violated", "invalid", "not claimed"]
# What judging alone can say. Whether a network claims it is not for a check to ask.
Found = Literal["held", "violated", "invalid"]


MEASURED = "measured"  # in place of a run's name


@dataclass(frozen=True)
class Ground:
    """What is known before anything runs."""

    asked: StudyRequest
    network: str  # as a scenario's ``enforcement`` says it
    link_bps: int  # the rate of each node's link, layer 2
    called: str = ""  # its own name, as tables have it
    claims: frozenset[Claim] = frozenset()  # what it says of itself
    directions: frozenset[Direction] = frozenset({"egress"})  # and of what of a pod's traffic
    asks_check: bool = True  # whether somebody calls its plugins' CHECK
    agents: bool = False  # whether something runs on nodes for pods' networks that may be restarted
    existing: bool = False  # clusters that are there already, whose pods and nodes are other people's too
    attacks: bool = True  # whether those may be attacked, as far as they are the kit's own

    def claimed(self, check: Check) -> bool:
        """Tell whether the network claims what a check asks."""
        return check.claim in self.claims and check.direction in self.directions


@dataclass(frozen=True)
class Run:
    """One run that a check needs, as ``bench --scenario SCENARIO --set SETTING`` makes it.

    The network is set by the kit, and the rate of the links, if that was asked for.
    """

    scenario: str  # a name in scenarios/: those of the kit are promise/NAME
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ran:
    """What a run has left: a recording, or why there is none."""

    recording: Recording | None
    reason: str | None = None  # what failed, in words, as a testbed that could not be brought up

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario as run. Raises StoredError and ScenarioError, as all of these."""
        return self._recording.scenario()

    @cached_property
    def summary(self) -> summary.Summary:
        """What the ordinary analysis says of it."""
        return summary.read(self._recording.summary_file)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Its samples; columns as in bench.analysis.samples."""
        return samples.table(self._recording.samples_file)

    @cached_property
    def counted(self) -> Sequence[CountedLink]:
        """Which counters are those of links."""
        return self._recording.run_record().counted or ()

    def flow(self, label: str) -> FlowSummary | None:
        """Return what the analysis says of a flow; None if it says nothing."""
        return next((one for one in self.summary.flows if one.name == label), None)

    def received(self, label: str, repetition: int | None = None) -> pd.DataFrame:
        """Return the samples of a flow's receiver, in one repetition or in all."""
        table = self.samples
        mine = table[(table["flow"] == label) & (table["source"] == "receiver")]
        return mine if repetition is None else mine[mine["repetition"] == repetition]

    def warm(self, label: str, repetition: int | None = None) -> Any:
        """Return the same without those of the flow's beginning, which nobody judges."""
        mine = self.received(label, repetition)
        return mine[mine["start_s"] >= mine["start_s"].min() + self.scenario.measurement.warm_up]

    @property
    def _recording(self) -> Recording:
        assert self.recording is not None, "judge a run without a recording by its reason"
        return self.recording


@dataclass(frozen=True)
class Evidence:
    """All that a check is judged by."""

    runs: Mapping[str, Ran]  # by the names that the check gave them
    measured: Path | None = None  # the file that ``make`` left; None: nothing


@dataclass(frozen=True)
class Number:
    """One number that the answer rests on, with what it may be; in its unit. As it is stored, too."""

    name: Title  # what it is, in a few words
    value: float
    unit: Literal["bit/s", "s", "bits", "bytes", "share", "packets", "1"]
    least: float | None = None  # None: no bound
    most: float | None = None

    @property
    def within(self) -> bool:
        """Whether it is within its bounds."""
        low = self.least is not None and self.value < self.least
        return not low and not (self.most is not None and self.value > self.most)


@dataclass(frozen=True)
class Short:
    """When a flow got less than it should have, so that it is asked who took it."""

    run: str  # the run's name in the check; MEASURED: a round of what is no recording
    flow: str  # its label
    repetition: int
    start_s: float  # after the repetition's beginning
    end_s: float


@dataclass(frozen=True)
class Judgement:
    """What a check found."""

    found: Found
    words: str  # why, as a sentence with numbers
    numbers: Sequence[Number] = field(default_factory=tuple)
    short: Sequence[Short] = field(default_factory=tuple)


def together(
    found: Sequence[tuple[Found, str]], numbers: Sequence[Number] = (), short: Sequence[Short] = ()
) -> Judgement:
    """Return what several answers, each with its reason, amount to.

    One that is violated decides, then one that is invalid; what decides is said of all that are so.
    """
    states = {state for state, _ in found}
    worst: Found = next((state for state in ("violated", "invalid") if state in states), "held")
    return Judgement(worst, "; ".join(words for state, words in found if state == worst), numbers, short)


# What a network must claim for the answers of a profile's checks to count. None: no network can claim it, so
# there are numbers and no verdict.
CLAIMS: Mapping[Profile, Claim | None] = {
    "ceiling": "ceiling",
    "floor": "floor",
    "latency": None,
    "robust": "floor",
}
Stage = Callable[[str], None]  # told what is being done
Runs = Callable[[Ground], Mapping[str, Run]]


def always(**scenarios: str) -> Runs:
    """Return what says that a check always needs the same runs, each of a scenario, by its name."""
    return lambda _: {name: Run(scenario) for name, scenario in scenarios.items()}


NO_RUNS = always()


def nothing_lacks(_ground: Ground) -> None:
    """Return that a check can be asked anywhere."""


@dataclass(frozen=True)
class Check:
    """One check: what people are told of it, which runs it needs, and the rule by which they are judged."""

    name: str  # unique among all checks; names files: letters, digits, dashes
    asks: str  # the question, as a sentence
    measured: str  # how it is measured and from when on it is held, as a sentence
    # What was found, of runs that were all made, or of what ``make`` left. Raises StoredError and
    # ScenarioError for what cannot be read.
    rule: Callable[[Evidence], Judgement]
    profile: Profile
    runs: Runs = NO_RUNS  # that it needs, by names of its own
    # Measures what is no recording, and returns it to be kept. Raises RuntimeError for what does not come up.
    make: Callable[[Ground, Stage], Entry] | None = None
    seconds: float = 0.0  # that ``make`` takes, about, where testbeds are namespaces
    # Why it cannot be asked here, in words; None if it can. It then is *not claimed*.
    lack: Callable[[Ground], str | None] = nothing_lacks
    threads: tuple[str, ...] = ()  # where users met it: public threads, as paths at GitHub
    direction: Direction = "egress"  # what of a pod's traffic the claim has to be about
    about: Claim | None = None  # what a network must claim, if it is not what the profile asks
    attacks: bool = False  # whether it lets a pod do what none shall
    on_request: bool = False  # whether it is only made where it is named

    @property
    def claim(self) -> Claim | None:
        """What a network must claim for an answer to count."""
        return self.about or CLAIMS[self.profile]

    def measure(self, ground: Ground, stage: Stage) -> Entry:
        """Return what is no recording, measured on a testbed of its own. Raises as ``make`` does."""
        assert self.make, "nothing is measured but runs"
        stage(self.asks)
        return self.make(ground, stage)

    def judge(self, evidence: Evidence) -> Judgement:
        """Return what was found. Raises as ``rule`` does."""
        lost = [ran.reason for ran in evidence.runs.values() if ran.recording is None]
        if lost:
            return Judgement("invalid", f"not run: {lost[0]}")
        if self.make and evidence.measured is None:
            return Judgement("invalid", "it was not measured")
        return self.rule(evidence)


def kept(evidence: Evidence, kind: type[atomic.Model]) -> atomic.Model:
    """Return what ``make`` left. Raises StoredError."""
    assert evidence.measured is not None, "nothing was measured"
    return atomic.read(evidence.measured, kind)


CHECKS = Registry[Check]("check")


def register(*checks: Check) -> None:
    """Let checks be asked from now on. Raises ValueError for a name that is taken."""
    for check in checks:
        CHECKS.register(check.name, check)


def all_checks() -> list[Check]:
    """Return all checks, profile after profile, each profile's in the order in which they were registered."""
    return sorted(CHECKS.values(), key=lambda check: PROFILES.index(check.profile))
