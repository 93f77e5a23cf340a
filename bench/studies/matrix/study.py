"""The same scenarios with one enforcement after another: which of them keeps the promise?

A matrix is a study with a recording for each case that applies. Its table, figure and page are functions of
these and of ``matrix.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.recording import requests
from bench.recording.records import StudyRequest
from bench.studies.matrix.index import ENFORCEMENTS, Matrix, MatrixCase, read
from bench.studies.study import Case, Study
from testbed.scenario import ScenarioError

if TYPE_CHECKING:
    from rich.console import RenderableType

COMPARED = ("contmec", "congested")


class MatrixStudy(Study):
    """Every scenario under every enforcement."""

    name = "matrix"
    verb = "matrix"
    choices = ("scenario", "enforcement")

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return every case. Raises ScenarioError for a fault that the enforcement is not the reason of."""
        cases = [
            _case(asked, scenario, name, enforcement)
            for scenario in asked.choices.get("scenario") or COMPARED
            for name in [requests.read(asked.case(scenario, asked.overrides)).name]
            for enforcement in asked.choices.get("enforcement") or ENFORCEMENTS
        ]
        if not any(case.scenario for case in cases):
            raise LookupError(cases[0].row.reason)
        return cases

    def index(self, rows: Sequence[Any]) -> Matrix:
        """Return ``matrix.json``."""
        return Matrix(cells=list(rows))

    def rows(self, directory: Path) -> Sequence[MatrixCase]:
        """Return the cases."""
        return read(directory)[0].cells

    def tables(self, directory: Path) -> Sequence[RenderableType]:
        """Return a table for each scenario."""
        from bench.studies.matrix import table

        index, summaries = read(directory)
        return [table.compare(index, summaries, scenario) for scenario in index.scenarios]

    def outputs(self, directory: Path) -> Mapping[str, bytes]:
        """Return ``figures/matrix.*`` and ``matrix.html``."""
        from bench.studies.matrix import figure, page

        index, summaries = read(directory)
        drawn = figure.render(directory, index, summaries)
        files = {f"figures/matrix.{kind}": content for kind, content in drawn.items()}
        return {**files, "matrix.html": page.render(directory, index, summaries, drawn["svg"]).encode()}

    def valid(self, directory: Path) -> bool:
        """Tell whether no run is invalid; a case that does not apply is as it should be."""
        return all(result is None or result.verdict != "invalid" for result in self.summaries(directory))


def _case(asked: StudyRequest, scenario: str, name: str, enforcement: str) -> Case:
    request = asked.case(scenario, (*asked.overrides, f"enforcement={enforcement}"))
    case = MatrixCase(scenario=name, enforcement=enforcement, recording=None)
    try:
        return Case(f"{name}, {enforcement}", request, requests.read(request), case)
    except ScenarioError as error:
        return Case(f"{name}, {enforcement}", request, None, case.model_copy(update={"reason": str(error)}))
