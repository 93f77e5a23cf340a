"""The command to run after a verdict, in words: what ``next_steps`` decides, as a shell takes it."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bench.analysis import next_steps
from bench.analysis.next_steps import RULES, NextStep
from bench.analysis.summary import Summary
from bench.presentation import again
from bench.recording import records
from bench.recording.directory import Recording
from bench.recording.records import Request, StudyRequest
from testbed.resources import HOME, PROGRAM


@dataclass(frozen=True)
class Following:
    """A command that tells something new, and what."""

    command: str
    reason: str  # what it finds out


def of_run(
    recording: Recording, summary: Summary, ruled_out: Collection[float] = (), reports: Path | None = None
) -> Following:
    """Return what to run after a run; ``ruled_out`` are scales that are no use here.

    So are those that its calibration excludes. ``reports`` is where recordings are kept now, if that may be
    elsewhere than when it was made. Raises StoredError and ScenarioError for a recording that
    cannot be read.
    """
    request = again.asked(recording) or again.known(recording, recording.run_record())
    if reports is not None:
        request = request.model_copy(update={"reports": str(reports)})
    calibration = summary.calibration
    known = calibration.foreseen if calibration else None
    excluded = [one for one in next_steps.SCALES if records.excluded(known, one / request.scale)]
    return said(next_steps.of_run(request, recording.scenario(), summary, {*ruled_out, *excluded}))


def said(step: NextStep) -> Following:
    """Return a step in words."""
    return Following(_command(step.ask), step.reason)


def _command(ask: next_steps.Ask) -> str:
    if isinstance(ask, Request):
        return again.bench(ask)
    if isinstance(ask, StudyRequest):
        return again.study(ask, ask.study)
    return shlex.join([PROGRAM, *ask])


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
