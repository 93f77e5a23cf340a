"""The commands that do it again and those to run next, as a shell at the project's root takes them.

They name a recording by its run id, which finds it wherever below the directory of the recordings it is kept.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.analysis import next_steps
from bench.analysis.next_steps import RULES, NextStep
from bench.analysis.summary import Summary
from bench.recording import atomic, records
from bench.recording.directory import Recording
from bench.recording.records import Asked, Request, RunRecord, StudyRequest
from testbed.resources import HOME, PROGRAM

# The option for each field, where it is not called alike. An option stands for each of several values.
OPTIONS = {"overrides": "set", "kubeconfigs": "kubeconfig"}
# From the last to the first; what is no plain word or number is said by --set, as any field.
OWN_OPTIONS = {
    "repetitions": re.compile(r"measurement\.repetitions=([1-9][0-9]{0,8})"),
    "enforcement": re.compile(r"enforcement=([\w./-]+)"),
}


def figures(name: str, asked: Asked | None) -> str:
    """Return the command that makes everything again from the recordings of a run or a study."""
    reports = {"reports": asked.reports} if asked else {}
    return shlex.join([PROGRAM, "figures", name, *_options(reports)])


def bench(request: Request) -> str:
    """Return the command that asks for the same."""
    fields = {"scenario": request.scenario, **request.model_dump(exclude_defaults=True)}
    overrides, own = _own_options(request.overrides)
    if own:
        fields["overrides"] = overrides
    return shlex.join([PROGRAM, "bench", *_options(fields | own)])


def _own_options(overrides: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return overrides without the last ones that options of their own stand for, and these options.

    Which ones do, and in this order, says ``bench.console.asked.overrides``.
    """
    rest = list(overrides)
    own: dict[str, str] = {}
    for option, pattern in OWN_OPTIONS.items():
        if rest and (found := pattern.fullmatch(rest[-1])):
            own = {option: found[1], **own}
            rest.pop()
    return tuple(rest), own


def study(request: StudyRequest, command: str, flags: Collection[str] = ()) -> str:
    """Return the command that asks for the same study; ``command`` is the verb that runs it.

    ``flags`` are the study's choices that are there or not.
    """
    options = request.model_dump(exclude_defaults=True, exclude={"study", "choices"})
    choices: Mapping[str, Any] = request.choices
    if command != request.study:  # no verb with options of its own
        choices = {"choose": tuple(f"{key}={one}" for key, values in choices.items() for one in values)}
    return shlex.join([PROGRAM, *command.split(), *_options(choices, flags), *_options(options)])


def as_run(request: Request, run_id: str) -> Request:
    """Return what asks for the scenario as it was run, which has every override and the scale in it."""
    return request.model_copy(update={"scenario": run_id, "overrides": (), "scale": 1.0, "duration": None})


def asked(recording: Recording) -> Request | None:
    """Return what was asked for; None if that was not recorded, or cannot be read any more."""
    with suppress(atomic.StoredError):
        return recording.request()
    return None


def known(recording: Recording, record: RunRecord) -> Request:
    """Return what is known of how a run was started if what was asked for is not."""
    provider, orchestrator = record.provider, record.orchestrator
    with suppress(atomic.StoredError):
        provider = recording.beginning().provider  # with its source
    return Request(scenario=record.run_id, provider=provider, orchestrator=orchestrator)


def _options(fields: Mapping[str, Any], flags: Collection[str] = ()) -> list[str]:
    words = []
    for name, value in fields.items():
        for each in value if isinstance(value, tuple) else (value,):
            words += [f"--{OPTIONS.get(name, name)}", *([] if name in flags else [str(each)])]
    return words


@dataclass(frozen=True)
class Following:
    """A command that tells something new, and what."""

    command: str
    reason: str  # what it finds out


def after_run(
    recording: Recording, summary: Summary, ruled_out: Collection[float] = (), reports: Path | None = None
) -> Following:
    """Return what to run after a run; ``ruled_out`` are scales that are no use here.

    So are those that its calibration excludes. ``reports`` is where recordings are kept now, if that may be
    elsewhere than when it was made. Raises StoredError and ScenarioError for a recording that
    cannot be read.
    """
    request = asked(recording) or known(recording, recording.run_record())
    if reports is not None:
        request = request.model_copy(update={"reports": str(reports)})
    foreseen = summary.calibration.foreseen if summary.calibration else None
    excluded = [one for one in next_steps.SCALES if records.excluded(foreseen, one / request.scale)]
    return of_step(next_steps.of_run(request, recording.scenario(), summary, {*ruled_out, *excluded}))


def of_step(step: NextStep, flags: Collection[str] = ()) -> Following:
    """Return what ``next_steps`` decides in words; ``flags`` as of the study that it may ask for again."""
    if isinstance(step.ask, Request):
        command = bench(step.ask)
    elif isinstance(step.ask, StudyRequest):
        command = study(step.ask, step.ask.study, flags)
    else:
        command = shlex.join([PROGRAM, *step.ask])
    return Following(command, step.reason)


TROUBLESHOOT = HOME / "docs" / "howto" / "troubleshoot.md"
BEGIN = "<!-- What follows a verdict, by ./invokew schema -->\n"
END = "<!-- The end of this table -->\n"


def troubleshoot() -> str:
    """Return the page with the table as it is now."""
    before, _, rest = TROUBLESHOOT.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [f"| *{rule.verdict}* | {rule.because} | {rule.command} | {rule.reason} |\n" for rule in RULES]
    head = "| Verdict | When | Next | To find out |\n|---|---|---|---|\n"
    return f"{before}{BEGIN}\n{head}{''.join(rows)}\n{END}{after}"
