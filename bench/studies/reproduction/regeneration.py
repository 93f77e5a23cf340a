"""Everything that is kept, made again: which files differ from what follows from the recordings?

Below the directory of the recordings are recordings and studies as runs leave them, and packed ones, beside
which summaries, indexes and the pictures that pages show are kept: a recording's summary always, the rest
where it is there. All is made elsewhere, from copies of what was recorded alone, so that a check writes
nothing that stays.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench import pipeline
from bench.analysis.summary import Summary
from bench.recording import archive, atomic
from bench.recording.atomic import StoredError
from bench.recording.directory import BESIDE, UNFINISHED, Recording, is_recording
from bench.studies import known
from bench.studies.study import REQUEST
from testbed.scenario import ScenarioError, texts

# How a user may have set up matplotlib; nothing of it may show.
MATPLOTLIBRC = "backend: svg\nfont.size: 23\nlines.linewidth: 7\nsavefig.facecolor: red\nsvg.hashsalt: mine\n"
MATPLOTLIBRC_FILE = "matplotlibrc"
# A machine that differs from most in all that bytes must not depend on.
UNUSUAL: Mapping[str, str] = {
    "TZ": "Asia/Tokyo",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONHASHSEED": "1",
    # The names of numpy 2.4 and later; others have nothing of that name, and say so.
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
    "MATPLOTLIBRC": MATPLOTLIBRC_FILE,
}
OBJECTS_BETWEEN_COLLECTIONS = 100_000
TELL_S = 1.0  # how long nothing is told at most
DEPTH = 2  # reports/reference/NAME

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Kept:
    """A recording or a study that is kept, packed or not, and what is made of it."""

    directory: Path
    packed: bool
    files: (
        Files  # all that follows from what was recorded, by path in the directory of the recording or study
    )

    @property
    def summaries(self) -> list[bytes]:
        """What each recording shows, as its file."""
        return [content for path, content in self.files.items() if Path(path).name == "summary.json"]

    @property
    def differing(self) -> dict[Path, bytes | None]:
        """The files that are not what follows, with what does; None: nothing makes such a file."""
        differing = {file: content for file, content in self._expected() if _content(file) != content}
        return dict(sorted(differing.items()))

    def _expected(self) -> Iterator[tuple[Path, bytes | None]]:
        if not self.packed:
            yield from ((self.directory / path, content) for path, content in self.files.items())
            return
        beside = {file.relative_to(self.directory) for file in self.directory.rglob("*") if file.is_file()}
        made = set(filter(_is_made, beside))
        if Path(archive.PACKED) in beside:
            made.discard(Path(archive.TABLE))
            yield self.directory / archive.TABLE, archive.table(self.summaries)
        if Path(archive.ARCHIVE) in beside:
            made.add(Path("summary.json"))
        for path in made:
            drawn = path.parent / "figures" / path.name  # a copy, where a page shows it
            content = self.files.get(str(path), self.files.get(str(drawn)))
            if content is not None and path.suffix == ".json":  # the index, which is kept without them
                content = archive.without_results(content)
            yield self.directory / path, content


def everything(reports: Path) -> list[Path]:
    """Return the directories of all finished recordings and studies, those that take longest first.

    Raises LookupError if there is none.
    """
    found = list(_found(reports, DEPTH))
    if not found:
        raise LookupError(f"{reports}: no recordings or studies; --reports says where they are")
    return sorted(found, key=lambda directory: (-runs(directory), directory))


def _found(directory: Path, depth: int) -> Iterator[Path]:
    for child in sorted(directory.glob("*")):
        if child.is_symlink() or not child.is_dir():  # reports/latest is one of the others
            continue
        if child.name.startswith(".") or child.name.endswith(UNFINISHED):
            continue
        if is_recording(child) or known.of(child) or archive.is_packed(child):
            yield child
        elif depth > 1:
            yield from _found(child, depth - 1)


Counted = Callable[[int, int], None]  # told how many runs are done, and of how many
Made = TypeVar("Made")


def again(
    directories: Sequence[Path],
    environment: Mapping[str, str],
    prepare: Callable[[], None],
    counted: Counted = lambda *_: None,
) -> list[Kept]:
    """Make all again of each recording and study, on all processors, by processes with this environment.

    ``prepare`` is what each process does first. Raises LookupError for what cannot be read.
    """
    return _each(make, directories, environment, (prepare, pipeline.prepare), counted)


def summaries(
    directories: Sequence[Path], prepare: Callable[[], None], counted: Counted = lambda *_: None
) -> dict[Path, list[Summary]]:
    """Return what each recording, and each of a study's, shows; made again, but nothing is drawn of it.

    See ``again``.
    """
    first = (prepare, pipeline.prepare_to_judge)
    return dict(zip(directories, _each(summarise, directories, {}, first, counted), strict=True))


def _each(
    function: Callable[[Path, Path], Made],
    directories: Sequence[Path],
    environment: Mapping[str, str],
    first: Sequence[Callable[[], None]],
    counted: Counted,
) -> list[Made]:
    """Return what a function makes of each directory, given another to work in, in other processes.

    ``first`` is what each of them does before.
    """
    if not directories:
        return []
    with tempfile.TemporaryDirectory(prefix="figures-") as scratch:
        (Path(scratch) / MATPLOTLIBRC_FILE).write_text(MATPLOTLIBRC)
        workers = min(len(directories), len(os.sched_getaffinity(0)))
        context = multiprocessing.get_context("spawn")
        with (
            _environment(environment, Path(scratch)),
            ProcessPoolExecutor(workers, context, initializer=partial(_begin, first)) as pool,
        ):
            started = {pool.submit(function, one, Path(scratch)): runs(one) for one in directories}
            _follow(started, counted)
            return [each.result() for each in started]


def _begin(first: Sequence[Callable[[], None]]) -> None:
    """Prepare a process that makes many recordings again.

    Python looks for circles in all that there is as often as there is a little more of it: that took a tenth.
    """
    for prepare in first:
        prepare()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


def _follow(runs: Mapping[Future[Made], int], counted: Counted) -> None:
    """Wait until all is done, and tell meanwhile how many runs are; end at the first error."""
    pending = set(runs)
    while pending:
        ended, pending = wait(pending, timeout=TELL_S, return_when=FIRST_COMPLETED)
        for failed in (each for each in ended if each.exception()):
            for each in pending:
                each.cancel()
            failed.result()  # which raises it
        counted(sum(count for each, count in runs.items() if each not in pending), sum(runs.values()))


def make(directory: Path, scratch: Path) -> Kept:
    """Make all that follows from a recording or a study, from copies below ``scratch``.

    Raises LookupError for what cannot be read.
    """
    with _copy(directory, scratch) as copied:
        _analyse(copied)
        files = {file.relative_to(copied): file for file in sorted(copied.rglob("*")) if file.is_file()}
        made = {str(path): file.read_bytes() for path, file in files.items() if _is_made(path)}
    return Kept(directory, archive.is_packed(directory), made)


def summarise(directory: Path, scratch: Path) -> list[Summary]:
    """Return what a recording shows, or each of a study's; see ``make``."""
    with _copy(directory, scratch) as copied:
        return [pipeline.summarise(recording) for recording in _recordings(copied)]


@contextmanager
def _copy(directory: Path, scratch: Path) -> Iterator[Path]:
    """Lend a copy of what was recorded; what cannot be read of it is named by where it is kept."""
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        try:
            yield _copied(directory, Path(place))
        except (StoredError, ScenarioError) as error:  # as words, which get from one process to another
            copies = str(Path(place) / directory.name)
            raise LookupError(str(error).replace(copies, str(directory))) from None


def _recordings(directory: Path) -> list[Recording]:
    return [Recording(directory)] if is_recording(directory) else archive.recordings(directory)


def _analyse(directory: Path) -> None:
    for recording in _recordings(directory):
        pipeline.analyse(recording)
    if study := known.of(directory):
        study.analyse(directory)


def _copied(directory: Path, place: Path) -> Path:
    """Copy what was recorded, and nothing that is made of it; return the copy, of the same name."""
    if archive.is_packed(directory):
        return archive.unpack(directory, place)
    copy = place / directory.name
    if is_recording(directory):
        _copy_recording(Recording(directory), copy)
        return copy
    copy.mkdir()
    for file in directory.glob("*.json"):
        shutil.copyfile(file, copy / file.name)
    if (directory / BESIDE).is_dir():
        shutil.copytree(directory / BESIDE, copy / BESIDE)
    for recording in archive.recordings(directory):
        _copy_recording(recording, copy / recording.directory.name)
    return copy


def _copy_recording(recording: Recording, copy: Path) -> None:
    shutil.copytree(recording.raw_directory, copy / recording.raw_directory.name)
    files = [recording.scenario_file, recording.environment_file]
    if not recording.analysis_file.exists():
        files.append(recording.summary_file)  # recordings from before have the analysis' seconds there
    for file in files:
        if file.is_file():
            shutil.copyfile(file, copy / file.name)


def write(kept: Kept) -> list[Path]:
    """Write what differs; return the files. Raises OSError."""
    written = []
    for file, content in kept.differing.items():
        if content is not None:
            atomic.write(file, content)
            written.append(file)
    return written


def runs(directory: Path) -> int:
    """Return of how many runs a recording or a study is."""
    if archive.is_packed(directory):
        return archive.count(directory)
    if is_recording(directory):
        return 1
    return len([child for child in directory.iterdir() if child.is_dir()])


def _is_made(path: Path) -> bool:
    """Tell whether a file is made of what was recorded; ``path`` is that in the recording or the study."""
    packed = (archive.PACKED, archive.ARCHIVE, archive.MEASURED)
    recorded = ("raw", BESIDE, *packed, archive.SCENARIO, "environment.json", REQUEST)
    return path.name == "analysis.json" or not set(path.parts) & set(recorded)


def _content(file: Path) -> bytes | None:
    try:
        return texts.read_bytes(file)
    except texts.TextError:
        return None


@contextmanager
def _environment(changed: Mapping[str, str], scratch: Path) -> Iterator[None]:
    """Let processes that are started meanwhile have an environment."""
    before = dict(os.environ)
    os.environ.pop("MATPLOTLIBRC", None)
    os.environ.update(changed)
    if "MATPLOTLIBRC" in changed:
        os.environ["MATPLOTLIBRC"] = str(scratch / changed["MATPLOTLIBRC"])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
