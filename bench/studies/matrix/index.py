"""``matrix.json``: which recording is which case of a matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from bench.analysis import summary
from bench.analysis.summary import Summary
from bench.recording.directory import Recording
from bench.studies.study import Stored, read_index
from testbed.scenario.words import Title

INDEX = "matrix.json"

ENFORCEMENTS = ("none", "bandwidth", "pod", "node")


class MatrixCase(Stored):
    """One scenario under one enforcement."""

    scenario: Title
    enforcement: Title
    recording: str | None  # its directory within the matrix; None: it cannot be run
    reason: str | None = None  # why it cannot

    @property
    def key(self) -> tuple[str, str]:
        """Which one it is."""
        return self.scenario, self.enforcement


class Matrix(Stored):
    """``matrix.json``."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    schema_version: Literal[1] = 1
    rows: list[MatrixCase] = Field(alias="cells")
    repetitions: int = 1  # of each cell, made in blocks
    seed: int | None = None  # of the order; null: one cell after another
    # The blocks, each with the cells in the order in which they were run, as scenario and enforcement.
    order: list[list[tuple[Title, Title]]] = Field([])

    @model_validator(mode="after")
    def _has_every_cell(self) -> Matrix:
        if len({case.key for case in self.rows}) < len(self.scenarios) * len(self.enforcements):
            raise ValueError("there is no cell for some scenario and enforcement")
        return self

    @property
    def scenarios(self) -> list[str]:
        """The rows."""
        return list(dict.fromkeys(case.scenario for case in self.rows))

    @property
    def enforcements(self) -> list[str]:
        """The columns."""
        return list(dict.fromkeys(case.enforcement for case in self.rows))

    def case(self, scenario: str, enforcement: str) -> MatrixCase:
        """Return one of them."""
        return next(each for each in self.rows if each.key == (scenario, enforcement))


def read(directory: Path) -> tuple[Matrix, dict[tuple[str, str], Summary]]:
    """Return a matrix and the summaries of the cases that were run. Raises StoredError."""
    index = read_index(directory / INDEX, Matrix)
    summaries = {
        case.key: summary.read(Recording(directory / case.recording).summary_file)
        for case in index.rows
        if case.recording is not None
    }
    return index, summaries


HEADINGS = {
    "none": "none",
    "bandwidth": "reference bandwidth plugin",
    "pod": "pod (the paper's)",
    "node": "node",
}
