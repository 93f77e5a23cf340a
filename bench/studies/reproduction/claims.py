"""``docs/claims.yaml``: what the docs say that was measured, and how anyone finds out whether it is so.

A claim has its sentence, the command that measures it again, what is expected and how far off that may be.
The same is read of a recording that is kept and of one that has just been made. What the docs say without a
recording, and recordings that are not as they should be, are listed with the reason.
"""

from __future__ import annotations

import math
import random
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from bench.analysis import summary
from bench.analysis.summary import Summary
from bench.recording import atomic
from bench.recording.directory import UNFINISHED
from bench.studies.reproduction import regeneration
from testbed.resources import HOME

FILE = HOME / "docs" / "claims.yaml"
REFERENCE = HOME / "reports" / "reference"


class Part(BaseModel):
    """Base of what the file holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Machine(Part):
    """What a claim needs."""

    description: str
    ordinary: bool  # whether every reviewer has it; a claim on another is made again when it is named


class Expected(Part):
    """One thing that is expected of a run."""

    # The verdict; the mean as a share of the expected goodput; the share of samples above the threshold.
    what: Literal["verdict", "share", "attainment"]
    flow: str | None = None  # None: every flow with a guarantee
    phase: str | None = None  # None: each that was measured
    value: float | Literal["held", "violated"]
    below: float | None = 0.0  # how much less is still the same; None: however much
    above: float | None = 0.0

    @property
    def least(self) -> float:
        """The least number that is still the same."""
        return -math.inf if self.below is None or isinstance(self.value, str) else self.value - self.below

    @property
    def most(self) -> float:
        """The greatest."""
        return math.inf if self.above is None or isinstance(self.value, str) else self.value + self.above

    @model_validator(mode="after")
    def _is_a_number_or_a_verdict(self) -> Expected:
        if (self.what == "verdict") != isinstance(self.value, str):
            raise ValueError(f"{self.value!r} is not valid for {self.what}")
        return self


class Claim(Part):
    """One sentence of the docs, and what shows it."""

    id: str
    page: str  # from the project's root
    sentence: str
    command: str  # with {seed} where it takes one
    quick: str | None = None  # the same on a tenth of the rates, and shorter
    minutes: float  # that the command takes
    machine: str
    recording: str  # in reports/reference
    scenario: str  # which run is meant, if there are several
    enforcement: str
    run: int = 0  # which of these, from 0 in the order in which they were made
    expected: tuple[Expected, ...]
    why: str  # why as much is tolerated


class Unfit(Part):
    """A recording that is not as one should be; or one that is missing."""

    recording: str
    reason: str
    missing: bool = False


class Shown(Part):
    """A section of the docs that shows numbers of a recording, beside those of claims."""

    where: str  # page#heading
    recording: str


class Unrecorded(Part):
    """A section of the docs with numbers that no recording has, beside those of claims."""

    where: str  # page#heading
    reason: str


class Claims(Part):
    """The whole file."""

    machines: dict[str, Machine]
    claims: tuple[Claim, ...]
    unfit: tuple[Unfit, ...] = ()
    shown: tuple[Shown, ...] = ()
    unrecorded: tuple[Unrecorded, ...] = ()

    @model_validator(mode="after")
    def _names_are_known_and_unique(self) -> Claims:
        names = [claim.id for claim in self.claims]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two claims are called {repeated[0]!r}")
        for claim in self.claims:
            if claim.machine not in self.machines:
                raise ValueError(f"claim {claim.id!r}: no machine {claim.machine!r}")
        return self

    @property
    def missing(self) -> dict[str, str]:
        """The recordings that claims need and that are not there, with the reason."""
        return {one.recording: one_line(one.reason) for one in self.unfit if one.missing}

    def named(self, names: Sequence[str]) -> list[Claim]:
        """Return the claims of these names, in the order of the file; of none all. Raises LookupError."""
        known = {claim.id: claim for claim in self.claims}
        for name in names:
            if name not in known:
                raise LookupError(f"{FILE}: no claim {name!r} (claims: {', '.join(known)})")
        return [claim for claim in self.claims if not names or claim.id in names]


def read(file: Path = FILE) -> Claims:
    """Read the claims. Raises StoredError."""
    return atomic.read_yaml(file, Claims)


def seeded(command: str, seed: int) -> str:
    """Return a command with the seed, if it takes one."""
    return command.replace("{seed}", str(seed))


def is_said(sentence: str, page: str) -> bool:
    """Tell whether a page, as text, has a sentence; how either is broken into lines does not count."""
    return one_line(sentence) in one_line(page)


def one_line(text: str) -> str:
    """Return a text without its line breaks."""
    return re.sub(r"\s+", " ", text).strip()


class Observed(Part):
    """One thing that was expected, and what a run shows of it."""

    expected: Expected
    flow: str
    phase: str
    value: float | str | None  # None: not measured

    @property
    def inside(self) -> bool:
        """Whether it is what was expected, or near enough."""
        if self.value is None or isinstance(self.value, str):
            return self.value == self.expected.value
        return self.expected.least <= self.value <= self.expected.most


def observe(claim: Claim, summary: Summary) -> list[Observed]:
    """Return what a run shows of everything that the claim expects."""
    return [observed for expected in claim.expected for observed in _observe(expected, summary)]


def _observe(expected: Expected, summary: Summary) -> list[Observed]:
    if expected.what == "verdict":
        return [Observed(expected=expected, flow="", phase="", value=summary.verdict)]
    flows = [flow for flow in summary.flows if expected.flow == flow.name]
    if expected.flow is None:
        flows = [flow for flow in summary.flows if flow.role == "guaranteed"]
    observed = []
    for flow in flows:
        for name, phase in flow.phases.items():
            if expected.phase not in (None, name):
                continue
            share = phase.mean_bps / flow.expected_goodput_bps if flow.expected_goodput_bps else None
            value = share if expected.what == "share" else phase.attainment
            observed.append(Observed(expected=expected, flow=flow.name, phase=name, value=value))
    if observed:
        return observed
    nothing = expected.flow or "every flow", expected.phase or "every phase"
    return [Observed(expected=expected, flow=nothing[0], phase=nothing[1], value=None)]


Outcome = Literal["confirmed", "outside", "invalid"]
FINISHED = (0, 1, 3)  # statuses of a command that has measured: held, violated, invalid (bench.cli.exits)


@dataclass(frozen=True)
class Trial:
    """A claim, and what a run shows of it."""

    claim: Claim
    observed: Sequence[Observed]
    verdict: str  # the run's
    recording: Path  # the run's; or that of a study it is in

    @property
    def outcome(self) -> Outcome:
        """What the run says of the claim; an invalid run says nothing."""
        if self.verdict == "invalid":
            return "invalid"
        return "confirmed" if all(one.inside for one in self.observed) else "outside"


def recorded(
    wanted: Sequence[Claim],
    reference: Path,
    prepare: Callable[[], None],
    counted: regeneration.Counted = lambda *_: None,
) -> Iterator[Trial]:
    """Make the summaries of claims' recordings again, and try the claims; see ``regeneration.summaries``.

    Raises LookupError for a recording that is missing, or has no such run.
    """
    directories = list(dict.fromkeys(reference / claim.recording for claim in wanted))
    for directory in directories:
        if not directory.is_dir():
            raise LookupError(f"{directory}: there is no such recording")
    directories.sort(key=regeneration.runs, reverse=True)  # studies take longest
    made = regeneration.summaries(directories, prepare, counted)
    for claim in wanted:
        where = reference / claim.recording
        yield _try(claim, [(where, one) for one in made[where]], where)


def again(
    wanted: Sequence[Claim], directory: Path, quick: bool, seed: int, tell: Callable[[str], None]
) -> Iterator[Trial]:
    """Run the claims' commands, each once, in an order that the seed decides, and try the

    The recordings are left below ``directory``. Raises RuntimeError if a command fails.
    """
    commands = list(dict.fromkeys(command_of(claim, quick, seed) for claim in wanted))
    random.Random(seed).shuffle(commands)
    for number, command in enumerate(commands, start=1):
        place = directory / f"{number:02}"
        words = [*shlex.split(command), "--reports", str(place.resolve())]
        tell(f"command {number} of {len(commands)}: {shlex.join(words)}")
        done = subprocess.run(words, cwd=HOME, check=False)
        if done.returncode not in FINISHED:
            raise RuntimeError(f"{command}: it ended with status {done.returncode}")
        found = _summaries(place)
        for claim in wanted:
            if command_of(claim, quick, seed) == command:
                yield _try(claim, found, place)


def command_of(claim: Claim, quick: bool, seed: int) -> str:
    """Return the command that shows a claim. Raises LookupError if there is no quick one."""
    command = claim.quick if quick else claim.command
    if command is None:
        raise LookupError(f"--quick: claim {claim.id!r} has no quick command")
    return seeded(command, seed)


def _summaries(place: Path) -> list[tuple[Path, Summary]]:
    files = sorted(place.rglob("summary.json"))
    return [
        (file.parent, summary.read(file)) for file in files if UNFINISHED not in str(file.relative_to(place))
    ]


def _try(claim: Claim, found: Sequence[tuple[Path, Summary]], where: Path) -> Trial:
    meant = claim.scenario, claim.enforcement
    runs = [(place, one) for place, one in found if (one.scenario, one.enforcement) == meant]
    if claim.run < len(runs):
        place, run = runs[claim.run]
        return Trial(claim, observe(claim, run), run.verdict, place)
    words = f"{claim.scenario!r} with enforcement {claim.enforcement!r}"
    raise atomic.StoredError(where, f"there is no run of {words}, which claim {claim.id!r} needs")
