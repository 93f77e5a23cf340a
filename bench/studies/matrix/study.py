"""The same scenarios with one enforcement after another: which of them keeps the promise?

A matrix is a directory of ordinary recordings, one a cell, and ``matrix.json``, which says which cell each of
them is. Its table, figure and page are functions of these files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench import pipeline
from bench.measurement.display import Displays
from bench.recording import atomic
from bench.recording.directory import begin_directory, finish_directory
from bench.studies.matrix.index import INDEX, Cell, Matrix, read
from testbed.scenario import Scenario, ScenarioError, load


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


def run(plan: Plan, provider: str, orchestrator: str, reports: Path, displays: Displays) -> Path:
    """Run every cell and return the matrix's directory, analysed and complete.

    Raises RuntimeError when a testbed cannot be brought up; what is done by then stays, as unfinished.
    """
    from bench.measurement import experiment

    directory = begin_directory(reports, "matrix")
    for cell, scenario in plan.cells:
        if scenario is None:
            continue
        recording = experiment.run(
            scenario,
            provider=provider,
            orchestrator=orchestrator,
            reports=directory,
            display=displays(f"{scenario.name}, {cell.enforcement}"),
        )
        pipeline.analyse(recording)
        cell.recording = recording.finish().run_id
    index = Matrix(cells=[cell for cell, _ in plan.cells])
    atomic.write_model(directory / INDEX, index)
    analyse(directory)
    return finish_directory(directory)


def analyse(directory: Path) -> None:
    """Make ``figures/matrix.*`` and ``matrix.html`` of a matrix's recordings. Raises as ``read``."""
    from bench.studies.matrix import figure, page

    index, summaries = read(directory)
    drawn = figure.render(directory, index, summaries)
    for kind, content in drawn.items():
        atomic.write(directory / "figures" / f"matrix.{kind}", content)
    text = page.render(directory, index, summaries, drawn["svg"])
    atomic.write(directory / "matrix.html", text.encode())
