"""Is a recording still what its run left? Everything is made of its files, so one that is not proves nothing.

The run's record has a digest of every other file. Recordings from before that have none; of theirs it is only
looked at whether the machine's tools are described.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import RunRecord
from testbed.scenario import texts


def take(recording: Recording) -> dict[str, str]:
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
