"""Which studies there are."""

from __future__ import annotations

from pathlib import Path

from bench.recording.directory import below
from bench.studies.backends.study import BackendsStudy
from bench.studies.devices.study import DevicesStudy
from bench.studies.matrix.study import MatrixStudy
from bench.studies.places.study import PlacesStudy
from bench.studies.promise.study import PromiseStudy
from bench.studies.services.study import ServicesStudy
from bench.studies.study import Study
from testbed.registry import Registry
from testbed.scenario.texts import is_file

STUDIES = Registry[Study]("study", "studies", word="study")


def register(study: Study) -> None:
    """Let a study be known by its name, on the command line and by its directories. Raises ValueError."""
    STUDIES.register(study.name, study)


def named(name: str) -> Study:
    """Return a study. Raises LookupError with those there are."""
    return STUDIES.named(name)


def of(directory: Path) -> Study | None:
    """Return the study whose directory it is; None: it is no study's."""
    return next((study for study in STUDIES.values() if is_file(study.index_file(directory))), None)


def find(name: str, reports: Path) -> tuple[Study, Path] | None:
    """Return the study whose directory is meant, by path or by name in ``reports``; None: there is none."""
    for directory in (Path(name), reports / name, *below(reports, name)):
        if study := of(directory):
            return study, directory
    return None


for _study in (
    MatrixStudy(),
    PlacesStudy(),
    BackendsStudy(),
    ServicesStudy(),
    DevicesStudy(),
    PromiseStudy(),
):
    register(_study)
