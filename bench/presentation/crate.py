"""``ro-crate-metadata.json``: what a directory's files are and what made them, for other people's programs.

It is RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) in the profile Process Run Crate 0.5
(https://w3id.org/ro/wfrun/process/0.5), which extends that version: each run is a CreateAction. Every date is
one of a run's record, so the same recording gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import RunRecord

VERSION = "1.1"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
LICENSE = "https://spdx.org/licenses/Apache-2.0"
# IANA's names; PRONOM and others know no better one for those of the last two.
FORMATS = {
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".html": "text/html",
    ".xz": "application/x-xz",
    ".gz": "application/gzip",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True)
class Action:
    """Something that made files of others."""

    name: str
    program: str  # the id of a Program
    began: datetime
    ended: datetime
    used: Sequence[str]  # paths of files
    made: Sequence[str]


@dataclass(frozen=True)
class Program:
    """What an action was made with."""

    id: str
    name: str
    version: str


def render(
    name: str, description: str, files: Iterable[str], programs: Iterable[Program], actions: Sequence[Action]
) -> bytes:
    """Return the file for a directory, which is published when the last of the actions had ended."""
    from rocrate.rocrate import ROCrate  # type: ignore[import-untyped]

    crate = ROCrate(version=VERSION)
    crate.name, crate.description, crate.license = name, description, _reference(LICENSE)
    crate.root_dataset["conformsTo"] = _reference(PROFILE)
    crate.datePublished = max(action.ended for action in actions)

    def add(identifier: str, kind: str, **properties: Any) -> None:
        crate.add_jsonld({"@id": identifier, "@type": kind, **properties})

    add(PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    add(LICENSE, "CreativeWork", name="Apache License 2.0")
    for path in sorted(files):
        crate.add_file(dest_path=path, properties=_described(path))
    for program in programs:
        add(program.id, "SoftwareApplication", name=program.name, softwareVersion=program.version)
    for number, action in enumerate(actions, start=1):
        add(
            f"#action-{number}",
            "CreateAction",
            name=action.name,
            instrument=_reference(action.program),
            startTime=action.began.isoformat(),
            endTime=action.ended.isoformat(),
            actionStatus="http://schema.org/CompletedActionStatus",
            **({"object": [_reference(path) for path in action.used]} if action.used else {}),
            result=[_reference(path) for path in action.made],
        )
    crate.root_dataset["mentions"] = [_reference(f"#action-{n + 1}") for n in range(len(actions))]
    return (json.dumps(crate.metadata.generate(), indent=1, sort_keys=True) + "\n").encode()


def of_recording(recording: Recording, record: RunRecord, title: str, made: Iterable[Path]) -> bytes:
    """Return the file for a recording; ``made`` is what the analysis makes."""
    outputs = sorted(file.relative_to(recording.directory).as_posix() for file in made)
    words = f"{title}: what was recorded of a run, and what was made of that"
    used, left = programs(recording), recorded(recording)
    made_by = actions(recording, record, used[0], left, outputs)
    return render(record.run_id, words, [*left, *outputs], used, made_by)


def recorded(recording: Recording) -> list[str]:
    """Return the paths, in the recording, of what its run left."""
    files = [recording.scenario_file, recording.environment_file, *recording.raw_directory.rglob("*")]
    return [file.relative_to(recording.directory).as_posix() for file in sorted(files) if file.is_file()]


def programs(recording: Recording) -> list[Program]:
    """Return what a run was made with, as far as its environment says so."""
    surroundings: Any = {}
    with suppress(atomic.StoredError):
        surroundings = atomic.read_json(recording.environment_file)
    commit, iperf3 = _text(surroundings, "harness", "commit"), _text(surroundings, "tools", "iperf3")
    return [
        Program(f"#concorde-testbed-{commit}", "Concorde testbed", f"commit {commit}"),
        Program("#iperf3", "iperf3", iperf3),
    ]


def actions(
    recording: Recording,
    record: RunRecord,
    harness: Program,
    there: Sequence[str],
    made: Sequence[str],
    below: str = "",
) -> list[Action]:
    """Return what made a recording: the run and its analysis.

    ``there`` is what ``recorded`` found, ``below`` where it lies in the crate.
    """
    seconds = record.seconds
    began = datetime.fromisoformat(record.started_at)
    ended = began + timedelta(seconds=seconds.up + seconds.calibration + seconds.traffic + seconds.down)
    program, scenario = harness.id, recording.scenario_file.name
    # The analysis leaves one file there, which says how long it took.
    took = recording.analysis_file.relative_to(recording.directory).as_posix()
    recorded = [path for path in there if path != took]
    left = [path for path in recorded if path != scenario]
    results = [*made, *(path for path in there if path == took)]
    words = f"run {record.run_id}"
    return [
        Action(words, program, began, ended, _below(below, [scenario]), _below(below, left)),
        Action(
            f"analysis of {words}", program, ended, ended, _below(below, recorded), _below(below, results)
        ),
    ]


def _below(directory: str, found: Iterable[str]) -> list[str]:
    return [f"{directory}{path}" for path in found]


def _described(path: str) -> dict[str, str]:
    known = FORMATS.get(PurePosixPath(path).suffix)
    return {"name": path, **({"encodingFormat": known} if known else {})}


def _reference(identifier: str) -> dict[str, str]:
    return {"@id": identifier}


def _text(data: Any, *keys: str) -> str:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, str) else "unknown"
