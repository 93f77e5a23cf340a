"""The directory one run leaves, and the record of what happened in it.

``reports/<run-id>/`` holds everything figures and verdicts are made of; nothing downstream of it needs the
testbed. While the run goes on the directory is called ``<run-id>.unfinished``; only a complete recording
gets its final name, so one that was interrupted is recognisable by its name alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from bench.recording import atomic
from bench.recording.records import (
    Beginning,
    Finished,
    Request,
    RunRecord,
)
from testbed.scenario import Scenario, load, texts
from testbed.scenario.addressing import Found

UNFINISHED = ".unfinished"
BESIDE = "measured"  # in a study's directory: what it measured beside its recordings, if it did
Moment = Literal["before", "after"]  # the traffic
# In the raw files: what the paths carried unshaped, and what requests took while nothing else was under way.
CALIBRATION: dict[Moment, str] = {"before": "calibration", "after": "calibration-after"}
IDLE: dict[Moment, str] = {"before": "idle", "after": "idle-after"}
CRATE = "ro-crate-metadata.json"  # what RO-Crate calls it, in whatever directory
UNKNOWN = "unknown"
_RELEASE = re.compile(r"[0-9]+\.[0-9]+")
# A scenario as run has every default filled in, and this is its last field.
_SCENARIO_END = re.compile(r"\n  attainment: \S+\n\Z")


def begin_directory(reports: Path, name: str, now: datetime | None = None) -> Path:
    """Make and return a new directory, marked as unfinished; its name, with the time, is unique there."""
    base = f"{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"
    reports.mkdir(parents=True, exist_ok=True)
    attempt = 1
    while True:
        unique = base if attempt == 1 else f"{base}-{attempt}"
        attempt += 1
        if (reports / unique).exists():
            continue
        try:
            (reports / (unique + UNFINISHED)).mkdir()
        except FileExistsError:
            continue
        return reports / (unique + UNFINISHED)


def finish_directory(directory: Path) -> Path:
    """Take the mark of an unfinished one from a directory's name, if it has it; return the new path."""
    return directory.rename(directory.with_name(directory.name.removesuffix(UNFINISHED)))


class _Within:
    """Where something is in a recording."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, recording: Recording, owner: type[Recording]) -> Path:
        return recording.directory / self._path


class Recording:
    """The paths within one recording, and its stored parts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def begin(cls, reports: Path, scenario: Scenario, now: datetime | None = None) -> Recording:
        """Make the directory of a new, unfinished recording; its name is unique under ``reports``."""
        return cls(begin_directory(reports, f"{scenario.name}-{scenario.kept_by}", now))

    def finish(self) -> Recording:
        """Give a complete recording its final name, and let ``latest`` lead to it."""
        finished = finish_directory(self.directory)
        point_latest_to(finished)
        return Recording(finished)

    @property
    def run_id(self) -> str:
        """The recording's name, without the mark of an unfinished one."""
        return self.directory.name.removesuffix(UNFINISHED)

    scenario_file = _Within("scenario.yaml")  # as it was asked for, defaults filled in
    # Host, kernel, processors, tools, offloads, sysctls, tc and nft dumps, commit.
    environment_file = _Within("environment.json")
    samples_file = _Within("samples.parquet")  # one row a sample
    exchanges_file = _Within("exchanges.parquet")  # one row an exchange; only of a scenario with requests
    summary_file = _Within("summary.json")  # the contract other tools read
    figures_directory = _Within("figures")  # throughput.svg, .pdf, .png
    report_file = _Within("report.html")  # one self-contained page
    crate_file = _Within(CRATE)  # what the files are and what made them, for other people's programs
    raw_directory = _Within("raw")  # what the tools themselves wrote, untouched
    run_file = _Within("raw/run.json")  # the RunRecord
    beginning_file = _Within("raw/beginning.json")  # the Beginning; whoever works on it has it locked
    found_file = _Within("raw/found.json")  # what nodes that were there before turned out to have, if any
    request_file = _Within("raw/request.json")  # the Request
    # The Analysed; written by the first analysis, and no part of what the run left.
    analysis_file = _Within("raw/analysis.json")

    def repetition_directory(self, repetition: int) -> Path:
        """The generators' output of one repetition."""
        return self.raw_directory / f"repetition-{repetition}"

    def raw_file(self, repetition: int, slug: str, role: str, suffix: str = "json") -> Path:
        """The untouched output of one side of a transfer; ``role`` is ``receiver`` or ``sender``.

        ``suffix`` is its generator's.
        """
        return self.repetition_directory(repetition) / f"{slug}.{role}.{suffix}"

    def finished_file(self, repetition: int) -> Path:
        """The Finished of one repetition."""
        return self.repetition_directory(repetition) / "finished.json"

    def finished(self) -> list[Finished]:
        """Read back the repetitions that are complete, the first one first, up to the first that is not.

        Raises StoredError.
        """
        found: list[Finished] = []
        while os.path.lexists(file := self.finished_file(len(found))):
            with atomic.remedy("remove it, and its repetition is made again"):
                found.append(atomic.read(file, Finished))
        return found

    def beginning(self) -> Beginning:
        """Read ``raw/beginning.json`` back. Raises StoredError."""
        with atomic.remedy(f"restore it, or {self._anew}"):
            return atomic.read(self.beginning_file, Beginning)

    def request(self) -> Request | None:
        """Read ``raw/request.json`` back; None: it is from before there was one. Raises StoredError."""
        return atomic.read(self.request_file, Request) if os.path.lexists(self.request_file) else None

    def scenario(self) -> Scenario:
        """Read the scenario back, with what its nodes turned out to have.

        Raises ScenarioError, and StoredError for a file that is not as it was written.
        """
        scenario = self.asked_scenario()
        if not os.path.lexists(self.found_file):
            return scenario
        with atomic.remedy(f"restore it, or {self._anew}"):
            return atomic.read(self.found_file, Found).applied(scenario)

    def asked_scenario(self) -> Scenario:
        """Read back what was asked for. Raises ScenarioError, StoredError if its end is missing."""
        with atomic.remedy("restore it: nothing else says what was run"):
            scenario = load(self.scenario_file)
            # Everything has a default, so what is left of a scenario may be one, but another.
            if not _SCENARIO_END.search(texts.read(self.scenario_file)):
                raise atomic.StoredError(
                    self.scenario_file, "it is cut off: thresholds.attainment is not its end"
                )
        return scenario

    def run_record(self) -> RunRecord:
        """Read ``raw/run.json`` back. Raises StoredError."""
        with atomic.remedy(f"restore it, or {self._anew}"):
            return atomic.read(self.run_file, RunRecord)

    @property
    def _anew(self) -> str:
        """What to do about a recording of which too much is lost."""
        return f"run its scenario again: ./invokew bench --scenario {shlex.quote(str(self.directory))}"


def find(run: str, reports: Path) -> Recording:
    """Return the recording that a user means: a directory, or a run id under ``reports``.

    A run id finds its recording wherever below it is kept, be it under another name. Raises LookupError with
    the recordings there are.
    """
    for named in (Path(run), reports / run, *below(reports, run), *_made_as(run, reports)):
        if is_recording(directory := followed(named)):
            return Recording(directory)
    known = sorted(d.name for d in reports.glob("*") if is_recording(d))
    raise LookupError(f"no recording {run!r} (recordings: {', '.join(known[-5:]) or 'none yet'})")


def below(reports: Path, name: str) -> Iterator[Path]:
    """Return what has this name in a directory within ``reports``, as a study's cases have."""
    if name not in ("", "..") and Path(name).name == name:
        for depth in ("*", "*/*"):
            yield from (parent / name for parent in sorted(reports.glob(depth)))


def _made_as(run: str, reports: Path) -> Iterator[Path]:
    """Return the recordings within ``reports`` that had this name when they were made."""
    for depth in ("*", "*/*", "*/*/*"):
        for file in sorted(reports.glob(f"{depth}/summary.json")):
            with suppress(atomic.StoredError):
                summary = atomic.read_json(file)
                if isinstance(summary, dict) and summary.get("run_id") == run:
                    yield file.parent


def is_recording(directory: Path) -> bool:
    """Tell whether a directory is one, be it with something missing; ``latest`` is none, it leads to one."""
    parts = (directory / part for part in ("scenario.yaml", "raw"))
    return not is_latest(directory) and any(map(os.path.lexists, parts))


def find_unfinished(run: str, reports: Path) -> Recording:
    """Return the recording of a run that did not end, with or without the mark of an unfinished one.

    Raises LookupError with those there are.
    """
    for name in (run, run + UNFINISHED):
        for directory in (Path(name), reports / name):
            if is_recording(directory):
                return Recording(directory)
    known = sorted(d.name for d in reports.glob(f"*{UNFINISHED}"))
    raise LookupError(f"--resume: no run {run!r} (unfinished: {', '.join(known[-5:]) or 'none'})")


LATEST = "latest"
# What begin_directory calls a recording, and nothing with a slash.
_COMPLETE = re.compile(r"\d{8}T\d{6}Z-[^/]+")


def point_latest_to(directory: Path) -> None:
    """Let ``latest`` lead to a recording that is complete, if it may and can be made.

    Whoever looks sees the former one or this one; of several runs that end at once, it is that of either.
    """
    link = directory.with_name(LATEST)
    new = link.with_name(f".{LATEST}.{secrets.token_hex(8)}")
    with suppress(OSError):  # as where there are no links, or no space
        try:
            link.symlink_to(directory.name)  # which replaces nothing
        except FileExistsError:
            if not is_latest(link):
                return
            new.symlink_to(directory.name)
            try:
                new.replace(link)
            finally:
                new.unlink(missing_ok=True)


def is_latest(path: Path) -> bool:
    """Tell whether a path is our link, or what a run that was killed has left of one."""
    if path.name != LATEST and not path.name.startswith(f".{LATEST}."):
        return False
    try:
        return _COMPLETE.fullmatch(str(path.readlink())) is not None
    except (OSError, ValueError):  # ValueError: a name with a null character
        return False


def followed(path: Path) -> Path:
    """Return where our link leads; every other path as it is."""
    return path.with_name(str(path.readlink())) if is_latest(path) else path


def digests(recording: Recording) -> dict[str, str]:
    """Return the SHA-256 digest of every file that a run left but the record itself, by its path there."""
    files = [recording.scenario_file, recording.environment_file, *recording.raw_directory.rglob("*")]
    return {
        str(file.relative_to(recording.directory)): _digest(file)
        for file in sorted(files)
        if file.is_file() and file not in (recording.run_file, recording.analysis_file)
    }


def faults(recording: Recording, record: RunRecord) -> list[str]:
    """Return every file that is missing or is no longer as the run left it, with what is wrong."""
    return [f"{path}: {problem}" for path, problem in _problems(recording, record)]


def _problems(recording: Recording, record: RunRecord) -> Iterator[tuple[str, str]]:
    for path, digest in (record.files or {}).items():
        try:
            if _digest(recording.directory / path) != digest:
                yield path, "it is not as the run left it"
        except texts.TextError as error:
            yield path, str(error)
    if record.files is None:
        yield from _environment(recording)


def _environment(recording: Recording) -> Iterator[tuple[str, str]]:
    file = recording.environment_file
    try:
        surroundings = atomic.read_json(file)
    except atomic.StoredError as error:
        yield file.name, str(error).removeprefix(f"{file}: ")
        return
    if not isinstance(surroundings, dict) or not isinstance(surroundings.get("tools"), dict):
        yield file.name, "it says nothing of the tools"


def _digest(file: Path) -> str:
    return hashlib.sha256(texts.read_bytes(file)).hexdigest()


def part_of(environment: Any, name: str) -> Mapping[str, Any]:
    """Return a part of what ``environment.json`` says, such as ``host``; an empty one if there is none.

    What is not there, in recordings of earlier versions or in a damaged file, is simply not known.
    """
    found = environment.get(name) if isinstance(environment, dict) else None
    return found if isinstance(found, dict) else {}


def machine_traits(environment: Any) -> dict[str, Any]:
    """Return by what a machine is known, as far as it is: nothing that another boot changes."""
    host = part_of(environment, "host")
    memory, kernel = host.get("memory_bytes"), _RELEASE.match(str(host.get("kernel")))
    found = {
        "architecture": host.get("machine"),
        "processors": host.get("processors_usable"),
        "processor models": sorted({str(model) for model in host.get("processors") or ()}),
        "memory in GiB": round(memory / 2**30) if isinstance(memory, int) else None,
        "hypervisor": host.get("hypervisor"),
        "kernel": kernel[0] if kernel else None,
    }
    return {name: value for name, value in found.items() if value is not None} if host else {}


def commit_of(environment: Any) -> str:
    """Return the commit of the harness, and whether there was more than that."""
    harness = part_of(environment, "harness")
    changed = " with uncommitted changes" if harness.get("uncommitted_changes") else ""
    return f"{harness.get('commit', UNKNOWN)}{changed}"
