"""What a check of the promise kit is: one question, small scenarios that answer it, and how they are judged.

A check says which runs it needs. Runs that several checks name in the same words are made once. Each is a
scenario like any other and leaves an ordinary recording; what cannot be a recording is measured by
``measure`` and kept beside them. Judging is a function of what was kept alone: it needs neither root nor a
testbed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench.analysis import samples, summary
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import Entry, StudyRequest
from testbed.registry import Registry
from testbed.scenario import Scenario
from testbed.scenario.description import Claim, Direction

if TYPE_CHECKING:
    import pandas as pd

Profile = Literal["ceiling", "floor", "latency", "robust"]
PROFILES: tuple[Profile, ...] = ("ceiling", "floor", "latency", "robust")
State = Literal["held", "violated", "invalid", "not claimed"]
# What judging alone can say. Whether a network claims it is not for a check to ask.
Found = Literal["held", "violated", "invalid"]


MEASURED = "measured"  # in place of a run's name


@dataclass(frozen=True)
class About:
    """What people are told of a check."""

    name: str  # unique among all checks; names files: letters, digits, dashes
    profile: Profile
    asks: str  # the question, as a sentence
    measured: str  # how it is measured and from when on it is held, as a sentence
    # What a network must claim for an answer to count. None: no network can claim it, so there are numbers
    # and no verdict.
    claim: Claim | None
    # Where users met it: addresses of public threads.
    threads: tuple[str, ...] = ()
    direction: Direction = "egress"  # what of a pod's traffic the claim has to be about


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

    def claimed(self, about: About) -> bool:
        """Tell whether the network claims what a check asks."""
        return about.claim in self.claims and about.direction in self.directions


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

    @property
    def _recording(self) -> Recording:
        assert self.recording is not None, "judge a run without a recording by its reason"
        return self.recording


@dataclass(frozen=True)
class Evidence:
    """All that a check is judged by."""

    runs: Mapping[str, Ran]  # by the names that the check gave them
    measured: Path | None = None  # the file that ``measure`` left; None: nothing


@dataclass(frozen=True)
class Number:
    """One number that the answer rests on, with what it may be; in its unit."""

    name: str  # what it is, in a few words
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


class Check(ABC):
    """One check; see the module."""

    about: About
    attacks: bool = False  # whether it lets a pod do what none shall
    on_request: bool = False  # whether it is only made where it is named
    seconds: float = 0.0  # that ``measure`` takes, about, where testbeds are namespaces

    @abstractmethod
    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return the runs that it needs, by names of its own; none, if ``measure`` is all."""

    def lack(self, ground: Ground) -> str | None:
        """Return why it cannot be asked here, in words; None if it can. It then is *not claimed*."""
        return None

    def measure(self, ground: Ground, stage: Callable[[str], None]) -> Entry | None:
        """Measure what is no recording, and return it to be kept; None: there is nothing.

        ``stage`` is told what is being done. Raises RuntimeError for what could not be brought up.
        """
        return None

    @abstractmethod
    def judge(self, evidence: Evidence) -> Judgement:
        """Return what was found. Raises StoredError and ScenarioError for what cannot be read."""


def kept(evidence: Evidence, kind: type[atomic.Model]) -> atomic.Model:
    """Return what ``measure`` left. Raises StoredError."""
    assert evidence.measured is not None, "nothing was measured"
    return atomic.read(evidence.measured, kind)


CHECKS = Registry[Check]("check")


def register(check: Check) -> None:
    """Let a check be asked from now on. Raises ValueError for a name that is taken."""
    CHECKS.register(check.about.name, check)


def all_checks() -> list[Check]:
    """Return all checks, profile after profile, each profile's in the order in which they were registered."""
    return sorted(CHECKS.values(), key=lambda check: PROFILES.index(check.about.profile))
