"""What ``bench`` does when a run proves nothing because of the machine: once more, then at smaller rates.

Each attempt is a recording of its own. One at the scale that was asked for answers what was asked; one at a
smaller scale never does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bench.console.messages import complain, say
from bench.recording import records
from testbed.scenario.units import format_factor

if TYPE_CHECKING:
    from bench.analysis.summary import Summary
    from bench.presentation.commands import Following
    from bench.recording.directory import Recording
    from bench.recording.records import Request

MOST = 1 + len(records.SMALLER)  # further runs of what was asked for: once more, and at each of the scales
LIMIT_SECONDS = 180.0  # that all further runs of a command may take


class Judged(NamedTuple):
    """A run that is complete, and what it shows."""

    recording: Recording
    summary: Summary
    following: Following  # what to run next


class Attempt(NamedTuple):
    """One run, and what exactly it was a run of."""

    request: Request
    judged: Judged

    @property
    def silent(self) -> bool:
        """Whether it is invalid for want of a better machine, and for nothing else."""
        summary = self.judged.summary
        kinds = {cause.kind for cause in summary.causes}
        return summary.verdict == "invalid" and "machine" in kinds and kinds <= {"machine", "promise"}


@dataclass
class Allowance:
    """What further runs a command may make yet."""

    most: int = MOST  # of each scenario that was asked for
    seconds: float = LIMIT_SECONDS  # in all


@dataclass
class Answer:
    """What came of what was asked for."""

    request: Request
    attempts: list[Attempt]  # in order: as asked, once or twice; then at smaller rates
    ended: str = ""  # why no further run was made, where a statement is lacking; empty: none is left to make
    further: bool = False  # whether a further run was made, or thought of

    @property
    def asked(self) -> Attempt:
        """The last run of exactly what was asked for: its verdict is the answer."""
        return [one for one in self.attempts if one.request.scale == self.request.scale][-1]

    @property
    def silent(self) -> bool:
        """Whether there is no statement, at no scale."""
        return self.attempts[-1].silent

    def excluded(self, scale: float) -> bool:
        """Tell whether the calibration of the last run as asked excludes a statement at a scale."""
        calibration = self.asked.judged.summary.calibration
        known = calibration.foreseen if calibration else None
        return records.excluded(known, scale / self.request.scale)


def answer(request: Request, run: Callable[[Request, str | None], Judged], allowance: Allowance) -> Answer:
    """Run what is asked for, and again as far as that may lead to a statement.

    ``run`` makes a run; its second argument is None, or the run id of the one that it is a further one of.
    """
    begun = time.monotonic()
    found = Answer(request, [Attempt(request, run(request, None))])
    took = time.monotonic() - begun
    if not found.silent or not allowance.most:
        return found
    found.further = True
    first = found.asked.judged.summary
    for wanted in _further(found):
        found.ended = _refused(allowance, len(found.attempts) - 1, took)
        if found.ended:
            break
        how = "once more" if wanted is request else f"at {format_factor(wanted.scale)}"
        say(f"{first.scenario}: invalid, and it may have been the machine: {how}")
        if not _attempted(found, wanted, run, allowance):
            break
    say(f"{first.scenario}: {_concluded(found)}")
    return found


def _attempted(
    found: Answer, wanted: Request, run: Callable[[Request, str | None], Judged], allowance: Allowance
) -> bool:
    """Make a further run, at the allowance's expense; tell whether it could be made."""
    first = found.attempts[0].judged.summary
    begun = time.monotonic()
    try:
        found.attempts.append(Attempt(wanted, run(wanted, first.run_id)))
    except BrokenPipeError:
        raise
    except (RuntimeError, OSError) as error:  # what was asked for has its answer
        complain(str(error))
        found.ended = "a further run failed"
    finally:
        allowance.seconds -= time.monotonic() - begun
    return not found.ended


def _further(found: Answer) -> Iterator[Request]:
    """Yield what may lead to a statement, until there is one."""
    request = found.request
    if not found.excluded(request.scale):
        yield request
    for scale in records.SMALLER:
        if not found.silent:
            return
        if scale < request.scale and not found.excluded(scale):
            yield request.model_copy(update={"scale": scale})


def _refused(allowance: Allowance, made: int, took: float) -> str:
    """Return why no further run may be made; empty if one may."""
    if made >= allowance.most:
        return f"--retry {allowance.most}"
    if took > allowance.seconds:
        left = max(0.0, allowance.seconds)
        return (
            f"a further run takes {took:.0f} s, and {left:.0f} s of {LIMIT_SECONDS:.0f} s for them are left"
        )
    return ""


def _concluded(found: Answer) -> str:
    """Return what came of it all."""
    last = found.attempts[-1]
    verdict = found.asked.judged.summary.verdict
    if not found.silent:
        if last.request.scale == found.request.scale:
            return f"{verdict}, once more"
        smaller = f"at {format_factor(last.request.scale)} {last.judged.summary.verdict}"
        return f"{verdict} as asked for, {smaller}: {last.judged.recording.directory}"
    if found.ended:
        return f"no statement ({found.ended})"
    scales = (found.request.scale, *(scale for scale in records.SMALLER if scale < found.request.scale))
    return f"this machine cannot tell at any of the scales {', '.join(f'{one:g}' for one in scales)}"
