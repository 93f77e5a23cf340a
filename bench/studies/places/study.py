"""Where could a pod's bandwidth be guaranteed? The paper's section 3.2 argues; this measures.

A study is a directory of ordinary recordings, one a case, and ``places.json``, which says what each of them
shows beside what the paper claims. Cases differ in their shaping alone, and everything is compared with the
first, which has none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from bench.analysis import next_steps
from bench.analysis.excuses import CPU_SATURATED
from bench.analysis.phases import Phase
from bench.analysis.summary import FlowSummary, PhaseSummary, Summary
from bench.presentation.tables import borderless
from bench.recording import atomic, requests
from bench.recording.records import StudyRequest
from bench.studies.places import VERB
from bench.studies.places.index import (
    CLAIMS,
    INDEX,
    PLACES,
    POINTS,
    SITUATIONS,
    UNSHAPED,
    Answers,
    Places,
    Point,
    Row,
    Situation,
    read,
)
from bench.studies.study import Case, Drawn, Study, chosen
from testbed.scenario.units import Unit, unit_for

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bench.presentation.figures.sheet import Sheet

# A direction counts as shaped if it carries less than this share of what it carries unshaped.
SHAPED = 0.9
# A pod got "its" rate, and no more than that, within this share of it.
TOLERANCE = 0.1

PODS = ("A-1", "A-2")  # the promised pods of scenarios/places
# The label of a pod's flow in each situation, and the phase of it that belongs there.
_WHERE: dict[Situation, tuple[str, Phase]] = {
    "alone": ("{} alone", "quiet"),
    "towards": ("to {}", "quiet"),
    "sending": ("{}", "quiet"),
    "disturbed": ("{}", "disturbed"),
}


class PlacesStudy(Study):
    """Every way to shape at every place."""

    name = "places"
    verb = VERB
    model = Places
    leads_to = next_steps.LAST
    keeps_failures = True  # that the kernel refuses a case is an answer

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return the cases at the places that are asked for, and the one that all are compared with."""
        wanted = (UNSHAPED, *chosen(asked, "place", PLACES))
        return [_case(asked, point) for point in POINTS if point.place in wanted]

    def tables(self, directory: Path) -> Sequence[RenderableType]:
        """Return what was measured, and what that means."""
        found = read(directory)
        return [rates_table(found), answers_table(found)]

    def outputs(self, directory: Path, drawn: Drawn) -> Mapping[str, bytes]:
        """Return ``places.json`` with its measured part."""
        return {INDEX: atomic.model_bytes(self.measured(directory))}

    def figures(self, directory: Path, sheet: Sheet) -> Drawn:
        """Return ``places``."""
        from bench.studies.places import figure

        return {"places": figure.render(directory, self.measured(directory), sheet)}

    def measured(self, directory: Path) -> Places:
        """Return every row with what its recording shows."""
        rows, summaries = read(directory).rows, self.summaries(directory)
        pairs = list(zip(rows, summaries, strict=True))
        unshaped = next((result for row, result in pairs if row.place == UNSHAPED), None)
        return Places(rows=[measured(row, result, unshaped) if result else row for row, result in pairs])

    def notes(self, directory: Path) -> Sequence[str]:
        """Return which cases could not be run, and why."""
        return [
            f"not run: {row.place}, {row.classes}: {row.reason}" for row in self.rows(directory) if row.reason
        ]


def _case(asked: StudyRequest, point: Point) -> Case:
    """Return one case; ``scenarios/places`` has its scenario."""
    request = asked.case(point.scenario, (*point.overrides, *asked.overrides))
    row = Row(place=point.place, classes=point.classes)
    return Case(f"{point.place}, {point.classes}", request, requests.read(request), row)


def measured(row: Row, result: Summary, unshaped: Summary | None) -> Row:
    """Return the row with what its recording shows."""
    expected = {
        flow.name: flow.expected_goodput_bps
        for flow in result.flows
        if flow.expected_goodput_bps and flow.name in PODS
    }
    return row.model_copy(
        update={
            "verdict": result.verdict,
            "expected_bps": expected,
            "rates_bps": rates(result),
            "answers": _answers(result, expected, unshaped) if unshaped else None,
        }
    )


def rates(result: Summary) -> dict[Situation, dict[str, float]]:
    """Return each pod's mean in each situation; a pod without a measurement there is left out."""
    return {
        situation: {pod: phase.mean_bps for pod, phase in _phases(result, situation).items()}
        for situation in SITUATIONS
    }


def _phases(result: Summary, situation: Situation) -> dict[str, PhaseSummary]:
    """Return what was measured of each pod in a situation."""
    label, phase = _WHERE[situation]
    flows = {flow.name: flow.phases for flow in result.flows}
    return {
        pod: flows[name][phase]
        for pod in PODS
        for name in [label.format(pod)]
        if name in flows and phase in flows[name]
    }


def _answers(result: Summary, expected: dict[str, float], unshaped: Summary) -> Answers:
    per_pod = _held(result, "quiet")
    less = {situation: _less(result, unshaped, situation) for situation in SITUATIONS}
    got = rates(result)
    alone, promised = got["alone"].get(PODS[0]), expected.get(PODS[0])
    return Answers(
        per_pod_sending=per_pod,
        per_pod_towards=_all(
            None if pod not in got["towards"] else abs(got["towards"][pod] / rate - 1) <= TOLERANCE
            for pod, rate in expected.items()
        ),
        shapes_egress=_any((per_pod, less["alone"], less["sending"])),
        shapes_towards=less["towards"],
        floor=_held(result, "disturbed"),
        idle_used=None if alone is None or promised is None else alone > (1 + TOLERANCE) * promised,
    )


def _less(result: Summary, unshaped: Summary, situation: Situation) -> bool | None:
    """Is it less than unshaped? None if something was not measured, or if it may be the machine's fault."""
    here, there = _phases(result, situation), _phases(unshaped, situation)
    if not here or here.keys() != there.keys():
        return None
    less = _total(here) < SHAPED * _total(there)
    return None if less and any((p.cpu_busy or 0.0) >= CPU_SATURATED for p in here.values()) else less


def _total(phases: Mapping[str, PhaseSummary]) -> float:
    return math.fsum(phase.mean_bps for phase in phases.values())


def _any(answers: Iterable[bool | None]) -> bool | None:
    """Return whether one is true; None if none is, but one is unknown."""
    known = list(answers)
    return True if True in known else None if None in known else False


def _all(answers: Iterable[bool | None]) -> bool | None:
    """Return whether none is false; None if none is, but one is unknown."""
    known = list(answers)
    return False if False in known else None if None in known else True


def _held(result: Summary, phase: Phase) -> bool | None:
    """Did both pods, sending at once, get what they were promised? None if the machine may be why not."""
    together = [flow for flow in result.flows if flow.name in PODS]
    if all(_met(flow, phase) for flow in together):
        return True
    return None if result.verdict == "invalid" else False


def _met(flow: FlowSummary, phase: Phase) -> bool:
    return phase in flow.phases and bool(flow.phases[phase].met)


HEADINGS: dict[Situation, str] = {
    "alone": "A-1 alone",
    "towards": "towards pods",
    "sending": "both send",
    "disturbed": "and containers",
}


def rates_table(study: Places) -> Table:
    """Return the table of what each pod got, mean payload."""
    unit = unit_for(rate for row in study.rows for rate in row.expected_bps.values())
    expected = next((row.expected_bps for row in study.rows if row.expected_bps), {})
    table = _table(f"A-1 / A-2 in {unit.name}; promised goodput {_pair(expected, unit)}")
    for situation in SITUATIONS:
        table.add_column(HEADINGS[situation], justify="right", no_wrap=True)
    for row in study.rows:
        cells = [_pair(row.rates_bps.get(situation, {}), unit) for situation in SITUATIONS]
        table.add_row(row.place, row.classes, *cells)
    return table


def answers_table(study: Places) -> Table:
    """Return the table of what that means, beside the paper's claims."""
    table = _table("what that shows; the paper's claims: per pod, shapes what is sent")
    for heading in ("per pod", "shapes", "floor", "idle used", "verdict", "paper"):
        table.add_column(heading, no_wrap=True)
    for row in study.rows:
        shown = _shown(row.answers) if row.answers else ("?",) * 4
        table.add_row(row.place, row.classes, *shown, row.verdict or "not run", claim(row))
    return table


def claim(row: Row) -> Text:
    """Return what the paper claims of the row's place: per source pod, in the direction of sending."""
    said = CLAIMS.get(row.place)
    return Text("–") if said is None else Text(f"{_word(said.per_pod, '–')}, {_word(said.egress)}")


def _shown(found: Answers) -> tuple[str, str, str, str]:
    return (
        "towards" if found.per_pod_towards and not found.per_pod_sending else _word(found.per_pod_sending),
        _direction(found),
        _word(found.floor),
        _word(found.idle_used),
    )


def _direction(found: Answers) -> str:
    directions = (("sent", found.shapes_egress), ("towards", found.shapes_towards))
    words = [word for word, shaped in directions if shaped]
    unknown = "?" if None in (found.shapes_egress, found.shapes_towards) else "nothing"
    return " + ".join(words) or unknown


def _word(answer: bool | None, unknown: str = "?") -> str:
    return unknown if answer is None else "yes" if answer else "no"


def _pair(got: dict[str, float], unit: Unit) -> str:
    return " / ".join(f"{rate / unit.bits_per_second:.3g}" for rate in got.values()) or "–"


def _table(title: str) -> Table:
    table = borderless(title)
    table.add_column("place", no_wrap=True)
    table.add_column("classes", no_wrap=True)
    return table
