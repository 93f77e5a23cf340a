"""Which recordings are there to be compared, of a run, a matrix, or a directory of such?

What is packed is read as it is: nothing is written where the recordings are.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import pipeline
from bench.analysis import samples, summary
from bench.recording import archive, atomic, directory
from bench.recording.directory import UNFINISHED, Recording, commit_of, machine_traits
from bench.recording.records import RunRecord
from bench.studies import known
from bench.studies.compare.comparison import Run
from testbed.scenario import Scenario
from testbed.scenario.texts import is_file

if TYPE_CHECKING:
    import pandas as pd

# Of a bundle's directory, the recordings are in reports/reference; those of the tests' data are deeper.
DEEPEST = 3


def find(name: str, reports: Path) -> Path:
    """Return the place that is meant: a path, or what has this name among the recordings.

    Raises LookupError if there is none, or if it is not finished.
    """
    for place in (Path(name), reports / name):
        if is_file(place) or place.is_dir() or archive.is_packed(place):
            return _finished(place)
        if (unfinished := place.with_name(place.name + UNFINISHED)).is_dir():
            return _finished(unfinished)
    return _finished(directory.find(name, reports).directory)


def runs(place: Path) -> dict[str, Path]:
    """Return where the recordings of a place are, by what tells them apart: nothing, if it is one.

    Raises LookupError for a place without any, StoredError for a matrix that cannot be read.
    """
    found = dict(_runs(place, "", 0))
    if not found:
        raise LookupError(f"{place}: there is no recording")
    return found


def _runs(place: Path, name: str, depth: int) -> Iterator[tuple[str, Path]]:
    if _is_run(place):
        yield name, _finished(place)
    elif (cases := _cases(place)) is not None:
        yield from ((_joined(name, case), place / recording) for case, recording in cases.items())
    elif is_file(place / archive.PACKED):
        yield from ((_joined(name, run), place / run) for run in archive.packed_recordings(place))
    elif depth < DEEPEST:
        for child in sorted(place.iterdir()):
            if child.is_dir() and not child.name.startswith("."):
                yield from _runs(child, _joined(name, child.name), depth + 1)


def _cases(place: Path) -> Mapping[str, str] | None:
    """Return the recordings of a study that tells its cases apart itself; None for any other directory."""
    study = known.of(place)
    return study.compared(_finished(place)) if study and study.compares else None


def _is_run(place: Path) -> bool:
    return is_file(place) or directory.is_recording(place) or archive.is_run(place)


def _joined(name: str, child: str) -> str:
    return f"{name}/{child}" if name else child


def _finished(place: Path) -> Path:
    """Raise LookupError for a run or a study that is not finished."""
    begun = directory.is_recording(place) and not is_file(Recording(place).run_file)
    if place.name.endswith(UNFINISHED) or begun:
        raise LookupError(f"{place} is not finished; go on with it first, by --resume of what began it")
    return place


def read(place: Path) -> Run:
    """Read what is compared of a recording, packed or not. Raises StoredError and ScenarioError."""
    with _opened(place) as recording:
        beside = place / recording.summary_file.name
        if recording.directory != place and is_file(beside):
            shutil.copyfile(beside, recording.summary_file)
        elif recording.directory != place:
            atomic.write(recording.summary_file, summary.render(pipeline.summarise(recording)).encode())
        return _read(recording)


def received(place: Path) -> tuple[Scenario, RunRecord, pd.DataFrame]:
    """Read what a recording's flows got, packed or not. Raises StoredError and ScenarioError."""
    with _opened(place) as recording:
        scenario, record = recording.scenario(), recording.run_record()
        return scenario, record, samples.read(recording, scenario, record).samples


@contextmanager
def _opened(place: Path) -> Iterator[Recording]:
    """Lend a recording, unpacked if it is packed."""
    if directory.is_recording(place):
        yield Recording(place)
        return
    with tempfile.TemporaryDirectory(prefix="concorde-compare-") as scratch:
        yield Recording(archive.unpack(place, Path(scratch)))


def _read(recording: Recording) -> Run:
    recording.run_record()
    if not is_file(recording.summary_file):
        advice = f"there is none; make it: ./invokew figures {recording.directory}"
        raise atomic.StoredError(recording.summary_file, advice)
    environment = atomic.read_json(recording.environment_file)
    return Run(
        scenario=recording.asked_scenario(),
        summary=summary.read(recording.summary_file),
        machine=machine(environment),
        commit=commit_of(environment),
    )


def machine(environment: Any) -> dict[str, Any]:
    """Return by what a machine is known, to be told what differs; nothing if nothing is known."""
    traits = machine_traits(environment)
    return {**traits, "processor models": ", ".join(traits["processor models"])} if traits else {}
