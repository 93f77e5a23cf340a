"""The same scenarios with one enforcement after another: which of them keeps the promise?

A matrix is a directory of ordinary recordings, one a cell, and ``matrix.json``, which says which cell each of
them is. Its table, figure and page are functions of these files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from bench import analysis, storing, summary
from bench.live import Display
from bench.recording import Recording, begin_directory, finish_directory
from bench.summary import Summary
from testbed.scenario import Scenario, ScenarioError, load
from testbed.scenario.model import Title

if TYPE_CHECKING:
    from rich.console import Console

INDEX = "matrix.json"
ENFORCEMENTS = ("none", "bandwidth", "pod", "node")


class Cell(BaseModel):
    """One scenario under one enforcement."""

    model_config = ConfigDict(extra="forbid")

    scenario: Title
    enforcement: Title
    recording: str | None  # its directory within the matrix; None: it cannot be run
    reason: str | None = None  # why it cannot


class Matrix(BaseModel):
    """``matrix.json``."""

    model_config = ConfigDict(extra="forbid")

    schema_version: Literal[1] = 1
    cells: list[Cell]

    @model_validator(mode="after")
    def _has_every_cell(self) -> Matrix:
        there = {(cell.scenario, cell.enforcement) for cell in self.cells}
        if len(there) < len(self.scenarios) * len(self.enforcements):
            raise ValueError("there is no cell for some scenario and enforcement")
        return self

    @property
    def scenarios(self) -> list[str]:
        """The rows."""
        return list(dict.fromkeys(cell.scenario for cell in self.cells))

    @property
    def enforcements(self) -> list[str]:
        """The columns."""
        return list(dict.fromkeys(cell.enforcement for cell in self.cells))

    def cell(self, scenario: str, enforcement: str) -> Cell:
        """Return one cell."""
        return next(c for c in self.cells if (c.scenario, c.enforcement) == (scenario, enforcement))


class Plan:
    """What a matrix is to run, all of it read and checked before anything is started."""

    def __init__(
        self, files: Sequence[Path], enforcements: Sequence[str], overrides: Sequence[str], scale: float
    ) -> None:
        """Load every cell. Raises ScenarioError for a fault that the enforcement is not the reason of."""
        self.cells: list[tuple[Cell, Scenario | None]] = []
        for file in files:
            name = load(file, overrides, scale).name
            for enforcement in enforcements:
                cell = Cell(scenario=name, enforcement=enforcement, recording=None)
                scenario = None
                try:
                    scenario = load(file, [*overrides, f"enforcement={enforcement}"], scale)
                except ScenarioError as error:
                    cell.reason = str(error)
                self.cells.append((cell, scenario))
        if not any(scenario for _, scenario in self.cells):
            raise LookupError(self.cells[0][0].reason)


def run(plan: Plan, provider: str, orchestrator: str, reports: Path, console: Console) -> Path:
    """Run every cell and return the matrix's directory, analysed and complete.

    Raises RuntimeError when a testbed cannot be brought up; what is done by then stays, as unfinished.
    """
    from bench import experiment

    directory = begin_directory(reports, "matrix")
    for cell, scenario in plan.cells:
        if scenario is None:
            continue
        recording = experiment.run(
            scenario,
            provider=provider,
            orchestrator=orchestrator,
            reports=directory,
            display=Display(console, f"{scenario.name}, {cell.enforcement}"),
        )
        analysis.analyse(recording)
        cell.recording = recording.finish().run_id
    index = Matrix(cells=[cell for cell, _ in plan.cells])
    storing.write_model(directory / INDEX, index)
    analyse(directory)
    return finish_directory(directory)


def read(directory: Path) -> tuple[Matrix, dict[tuple[str, str], Summary]]:
    """Return a matrix and the summaries of the cells that were run. Raises StoredError."""
    index = storing.read(directory / INDEX, Matrix)
    summaries = {
        (cell.scenario, cell.enforcement): summary.read(Recording(directory / cell.recording).summary_file)
        for cell in index.cells
        if cell.recording is not None
    }
    return index, summaries


def analyse(directory: Path) -> None:
    """Make ``figures/matrix.*`` and ``matrix.html`` of a matrix's recordings. Raises as ``read``."""
    from bench import matrix_figure, matrix_page

    index, summaries = read(directory)
    drawn = matrix_figure.render(directory, index, summaries)
    for kind, content in drawn.items():
        storing.write(directory / "figures" / f"matrix.{kind}", content)
    page = matrix_page.render(directory, index, summaries, drawn["svg"])
    storing.write(directory / "matrix.html", page.encode())
