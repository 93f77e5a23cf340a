"""``matrix.json``: which recording is which cell of a matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from bench.analysis import summary
from bench.analysis.summary import Summary
from bench.recording import atomic
from bench.recording.directory import Recording
from testbed.scenario.model import Title

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


def read(directory: Path) -> tuple[Matrix, dict[tuple[str, str], Summary]]:
    """Return a matrix and the summaries of the cells that were run. Raises StoredError."""
    index = atomic.read(directory / INDEX, Matrix)
    summaries = {
        (cell.scenario, cell.enforcement): summary.read(Recording(directory / cell.recording).summary_file)
        for cell in index.cells
        if cell.recording is not None
    }
    return index, summaries


HEADINGS = {
    "none": "none",
    "bandwidth": "reference bandwidth plugin",
    "pod": "pod (the paper's)",
    "node": "node",
}
