"""The same scenarios with one enforcement after another: which of them keeps the promise?

A matrix is a study with a recording for each case that applies. Its table, figure and page are functions of
these and of ``matrix.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.analysis.next_steps import NextStudy
from bench.recording import requests
from bench.recording.directory import Recording
from bench.recording.records import StudyRequest
from bench.studies.matrix import VERB
from bench.studies.matrix.index import ENFORCEMENTS, Matrix, MatrixCase, read
from bench.studies.study import Case, Drawn, Promised, Study, Visit, blocks, number, untold
from testbed import assembly
from testbed.scenario import ScenarioError
from testbed.scenario.enforcements import shall_hold

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bench.presentation.figures.sheet import Sheet

COMPARED = ("contmec", "congested", "latency")


class MatrixStudy(Study):
    """Every scenario under every enforcement."""

    name = "matrix"
    verb = VERB
    model = Matrix
    leads_to = NextStudy("places", "at which interface of the way a rate can be guaranteed")
    compares = True

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return every case. Raises ScenarioError for a fault that the enforcement is not the reason of.

        LookupError, if none can be run, or for repetitions or a seed that are no such number.
        """
        times = _repetitions(asked)
        if times > 1:  # with one, a scenario may have its own number
            overrides = (*asked.overrides, f"measurement.repetitions={times}")
            asked = asked.model_copy(update={"overrides": overrides})
        cases = [
            _case(asked, scenario, name, enforcement)
            for scenario in asked.choices.get("scenario") or COMPARED
            for name in [requests.read(asked.case(scenario, asked.overrides)).name]
            for enforcement in asked.choices.get("enforcement") or ENFORCEMENTS
        ]
        if not any(case.scenario for case in cases):
            raise LookupError(cases[0].row.reason)
        return cases

    def visits(self, asked: StudyRequest, cases: Sequence[Case]) -> Sequence[Visit]:
        """Return one visit to each case, or randomised blocks of the repetitions that are asked for.

        So a machine that drifts looks like noise, and not like an enforcement. What takes long to bring up
        makes all its repetitions at once: the block then is the whole of it.
        """
        times = _repetitions(asked)
        if times == 1:
            return super().visits(asked, cases)
        whole = not assembly.demand(asked.provider, asked.orchestrator).quick
        runs = [place for place, case in enumerate(cases) if case.scenario is not None]
        order = blocks(runs, 1 if whole else times, _seed(asked))
        return [
            Visit(case, None if whole else place + 1) for place, block in enumerate(order) for case in block
        ]

    def whole_index(self, asked: StudyRequest, cases: Sequence[Case], rows: Sequence[Any]) -> Matrix:
        """Return ``matrix.json`` with the order of the repetitions, if there are several."""
        times = _repetitions(asked)
        if times == 1:
            return Matrix(rows=list(rows))
        order: dict[int | None, list[tuple[str, str]]] = {}
        for visit in self.visits(asked, cases):
            order.setdefault(visit.until, []).append(rows[visit.case].key)
        return Matrix(rows=list(rows), repetitions=times, seed=_seed(asked), order=list(order.values()))

    def tables(self, directory: Path) -> Sequence[RenderableType]:
        """Return a table for each scenario, and one more for its requests, if it has any."""
        from bench.studies.matrix import page

        index, summaries = read(directory)
        made = (
            make(index, summaries, one) for one in index.scenarios for make in (page.rates, page.requests)
        )
        return [table for table in made if table is not None]

    def outputs(self, directory: Path, drawn: Drawn) -> Mapping[str, bytes]:
        """Return ``matrix.html``."""
        from bench.studies.matrix import page

        return {"matrix.html": page.render(directory, *read(directory), drawn["matrix"]["png"]).encode()}

    def figures(self, directory: Path, sheet: Sheet) -> Drawn:
        """Return ``matrix``."""
        from bench.studies.matrix import figure

        return {"matrix": figure.render(directory, *read(directory), sheet)}

    def valid(self, directory: Path) -> bool:
        """Tell whether no run is invalid; a case that does not apply is as it should be."""
        return all(result is None or result.verdict != "invalid" for result in self.summaries(directory))

    def compared(self, directory: Path) -> Mapping[str, str]:
        """Return the cells' recordings by scenario and enforcement."""
        return {", ".join(one.key): one.recording for one in self.rows(directory) if one.recording}

    def promised(self, directory: Path) -> Sequence[Promised]:
        """Return every case whose enforcement promises that its scenario's guarantees hold."""
        return [
            Promised(", ".join(row.key), row.recording, result.verdict)
            for row, result in zip(self.rows(directory), self.summaries(directory), strict=True)
            if row.recording and result and shall_hold(Recording(directory / row.recording).scenario())
        ]


def _repetitions(asked: StudyRequest) -> int:
    return number(asked, "repetitions", range(1, 1001)) or 1


def _seed(asked: StudyRequest) -> int:
    return number(asked, "seed", range(2**32)) or 0


def _case(asked: StudyRequest, scenario: str, name: str, enforcement: str) -> Case:
    left_out = untold(asked, scenario, enforcement)
    request = asked.case(scenario, (*asked.overrides, f"enforcement={enforcement}", *left_out))
    case = MatrixCase(scenario=name, enforcement=enforcement, recording=None)
    try:
        read = requests.read(request)
        case = case.model_copy(update={"enforcement": read.kept_by})  # of a path, the name that is in there
        return Case(", ".join(case.key), request, read, case, promised=shall_hold(read))
    except ScenarioError as error:
        return Case(", ".join(case.key), request, None, case.model_copy(update={"reason": str(error)}))
