"""Claims on trial: what recordings show of them, kept ones or such as have just been made."""

from __future__ import annotations

import random
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.analysis import summary
from bench.analysis.summary import Summary
from bench.recording import atomic
from bench.recording.directory import UNFINISHED
from bench.studies.reproduction import claims, regeneration
from bench.studies.reproduction.claims import Claim, Observed
from testbed.resources import HOME

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
    directories.sort(key=lambda directory: -len(list(directory.iterdir())))  # studies take longest
    made = regeneration.summaries(directories, prepare, counted)
    for claim in wanted:
        where = reference / claim.recording
        yield _try(claim, [(where, one) for one in made[where]], where)


def again(
    wanted: Sequence[Claim], directory: Path, quick: bool, seed: int, tell: Callable[[str], None]
) -> Iterator[Trial]:
    """Run the claims' commands, each once, in an order that the seed decides, and try the claims.

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
    return claims.seeded(command, seed)


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
        return Trial(claim, claims.observe(claim, run), run.verdict, place)
    words = f"{claim.scenario!r} with enforcement {claim.enforcement!r}"
    raise atomic.StoredError(where, f"there is no run of {words}, which claim {claim.id!r} needs")
