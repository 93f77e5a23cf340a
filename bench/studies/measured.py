"""Studies that measure on this machine what is no recording, and sum all of it up in their index."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from bench.recording import atomic
from bench.studies.study import Drawn, Study, read_index

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bench.presentation.figures.sheet import Sheet


class MeasuredStudy(Study):
    """A study whose package shows what its index sums up: by ``sheets(found)`` and ``markdown(found)`` of the
    module ``sheets``, and by ``render(found, sheet)`` of the module ``figure``.

    They are not imported beside traffic.
    """

    package: ClassVar[str]

    @abstractmethod
    def summed_up(self, directory: Path) -> Any:
        """Return the index with all that the recordings and the files in ``measured/`` show."""

    def tables(self, directory: Path) -> Sequence[RenderableType]:
        """Return the sheets of the index as it was written last."""
        found = read_index(self.index_file(directory), self.model)
        return [sheet.table() for sheet in self._shown_by("sheets").sheets(found)]

    def outputs(self, directory: Path, drawn: Drawn) -> Mapping[str, bytes]:
        """Return the index with what was measured, and its sheets for a page."""
        found = self.summed_up(directory)
        page = self._shown_by("sheets").markdown(found).encode()
        return {self.index_file(directory).name: atomic.model_bytes(found), f"{self.name}.md": page}

    def figures(self, directory: Path, sheet: Sheet) -> Drawn:
        """Return one figure, of the study's name."""
        return {self.name: self._shown_by("figure").render(self.summed_up(directory), sheet)}

    def _shown_by(self, module: str) -> Any:
        return import_module(f"{self.package}.{module}")
