"""The directory one run leaves, and the record of what happened in it.

``reports/<run-id>/`` holds everything figures and verdicts are made of; nothing downstream of it needs the
testbed. While the run goes on the directory is called ``<run-id>.unfinished``; only a complete recording
gets its final name, so one that was interrupted is recognisable by its name alone.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from bench import storing
from testbed import texts
from testbed.scenario import Scenario, load

UNFINISHED = ".unfinished"
# A scenario as run has every default filled in, and this is its last field.
_SCENARIO_END = re.compile(r"\n  attainment: \S+\n\Z")


class Entry(BaseModel):
    """Base of everything stored as JSON: no unknown fields, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]


class Transfer(Entry):
    """One iperf3 transfer of one repetition."""

    slug: Slug  # names the raw files: <slug>.receiver.json, <slug>.sender.json
    started_s: float  # when its client was started, seconds after the repetition's beginning
    error: str | None = None  # iperf3's own words, if it failed
    sender_interface_bytes: int | None = None  # sent by the source's eth0 meanwhile, layer 2
    class_bytes: int | None = None  # counted by the HTB class of the source, layer 2; None: no class


class Stretch(Entry):
    """Some time of a repetition, in seconds after its beginning."""

    start_s: float
    end_s: float


class CpuUse(Stretch):
    """What the machine's processors did in one stretch of time, as shares of all of them."""

    busy: float  # 1 - idle - iowait
    steal: float  # taken by the hypervisor
    busiest: float | None = None  # the same as busy of the busiest single processor; None: not recorded


class Stall(Stretch):
    """A stretch of time in which the machine ran nothing, as far as the harness could tell."""


class Repetition(Entry):
    """All transfers of one repetition, on one clock that starts at 0 with the repetition."""

    transfers: dict[str, Transfer]  # by the label of the flow or disturbance
    cpu: list[CpuUse]
    stalls: list[Stall] = []
    saturated: list[Stretch] = []  # in which a processor of the harness's machine had nothing to spare


class Calibration(Entry):
    """Throughput of the guaranteed flows' paths without any shaping, all at once, before the run."""

    seconds: float
    bits_per_second: dict[str, float]  # payload received, by flow label
    error: str | None = None


class Seconds(Entry):
    """How long the parts of the run took."""

    up: float
    calibration: float
    traffic: float
    down: float


class Beginning(Entry):
    """``raw/beginning.json``: how a run was started, so that it can be gone on with."""

    started_at: str  # UTC, ISO 8601
    provider: str  # with its source, as in ssh:inventory.yaml
    orchestrator: str


class Finished(Entry):
    """``raw/repetition-N/finished.json``: all there is of one repetition beside iperf3's own output.

    It is written when nothing of the repetition is missing, its checks included. What was made once for
    several repetitions, as the calibration was, is in each of them.
    """

    repetition: Repetition
    seconds: float  # that its traffic took
    calibration: Calibration | None
    faults: list[str]
    notes: list[str]


class RunRecord(Entry):
    """``raw/run.json``: what was done, beside iperf3's own output."""

    schema_version: Literal[1] = 1
    run_id: str  # the recording's name when it was made; it may be kept under another
    started_at: str  # UTC, ISO 8601
    provider: str
    orchestrator: str
    seconds: Seconds
    calibration: Calibration | None
    repetitions: list[Repetition]
    faults: list[str]  # kernel state that was not as configured after the traffic, in words
    notes: list[str] = []  # what else is to be known of the nodes, in words
    files: dict[str, str] | None = None  # SHA-256 of every other file, by path; None: not recorded


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
    """Take the mark of an unfinished one from a directory's name, and return its new path."""
    return directory.rename(directory.with_name(directory.name.removesuffix(UNFINISHED)))


class Recording:
    """The paths within one recording, and its stored parts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def begin(cls, reports: Path, scenario: Scenario, now: datetime | None = None) -> Recording:
        """Make the directory of a new, unfinished recording; its name is unique under ``reports``."""
        return cls(begin_directory(reports, f"{scenario.name}-{scenario.enforcement}", now))

    def finish(self) -> Recording:
        """Give a complete recording its final name."""
        return Recording(finish_directory(self.directory))

    @property
    def run_id(self) -> str:
        """The recording's name, without the mark of an unfinished one."""
        return self.directory.name.removesuffix(UNFINISHED)

    @property
    def scenario_file(self) -> Path:
        """The scenario as run, defaults filled in."""
        return self.directory / "scenario.yaml"

    @property
    def environment_file(self) -> Path:
        """Host, kernel, processors, tools, offloads, sysctls, tc and nft dumps, commit."""
        return self.directory / "environment.json"

    @property
    def run_file(self) -> Path:
        """The RunRecord."""
        return self.directory / "raw" / "run.json"

    @property
    def beginning_file(self) -> Path:
        """The Beginning; whoever works on the recording has it locked."""
        return self.directory / "raw" / "beginning.json"

    @property
    def samples_file(self) -> Path:
        """One row a sample."""
        return self.directory / "samples.parquet"

    @property
    def summary_file(self) -> Path:
        """The contract other tools read."""
        return self.directory / "summary.json"

    @property
    def figures_directory(self) -> Path:
        """``throughput.svg``, ``.pdf``, ``.png``."""
        return self.directory / "figures"

    @property
    def report_file(self) -> Path:
        """One self-contained page."""
        return self.directory / "report.html"

    @property
    def raw_directory(self) -> Path:
        """What the tools themselves wrote, untouched."""
        return self.directory / "raw"

    def repetition_directory(self, repetition: int) -> Path:
        """iperf3's output of one repetition."""
        return self.raw_directory / f"repetition-{repetition}"

    def raw_file(self, repetition: int, slug: str, role: str) -> Path:
        """iperf3's untouched output; ``role`` is ``receiver`` or ``sender``."""
        return self.repetition_directory(repetition) / f"{slug}.{role}.json"

    def finished_file(self, repetition: int) -> Path:
        """The Finished of one repetition."""
        return self.repetition_directory(repetition) / "finished.json"

    def finished(self) -> list[Finished]:
        """Read back the repetitions that are complete, the first one first, up to the first that is not.

        Raises StoredError.
        """
        found: list[Finished] = []
        while os.path.lexists(file := self.finished_file(len(found))):
            found.append(storing.read(file, Finished))
        return found

    def beginning(self) -> Beginning:
        """Read ``raw/beginning.json`` back. Raises StoredError."""
        return storing.read(self.beginning_file, Beginning)

    def scenario(self) -> Scenario:
        """Read the scenario back. Raises ScenarioError, StoredError if its end is missing."""
        scenario = load(self.scenario_file)
        # Everything has a default, so what is left of a scenario may be one, but another.
        if not _SCENARIO_END.search(texts.read(self.scenario_file)):
            raise storing.StoredError(
                self.scenario_file, "it is cut off: thresholds.attainment is not its end"
            )
        return scenario

    def run_record(self) -> RunRecord:
        """Read ``raw/run.json`` back. Raises StoredError."""
        return storing.read(self.run_file, RunRecord)


def slug(label: str, taken: set[str]) -> str:
    """Return a file name for a flow's label that is not in ``taken``, and take it."""
    base = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "transfer"
    name, count = base, 1
    while name in taken:
        count += 1
        name = f"{base}-{count}"
    taken.add(name)
    return name


def find(run: str, reports: Path) -> Recording:
    """Return the recording that a user means: a directory, or a run id under ``reports``.

    Raises LookupError with the recordings there are.
    """
    for directory in (Path(run), reports / run):
        if _is_recording(directory):
            return Recording(directory)
    known = sorted(d.name for d in reports.glob("*") if _is_recording(d))
    raise LookupError(f"no recording {run!r} (recordings: {', '.join(known[-5:]) or 'none yet'})")


def _is_recording(directory: Path) -> bool:
    """Tell whether a directory is one, be it with something missing."""
    return any(os.path.lexists(directory / part) for part in ("scenario.yaml", "raw"))


def find_unfinished(run: str, reports: Path) -> Recording:
    """Return the recording of a run that did not end, with or without the mark of an unfinished one.

    Raises LookupError with those there are.
    """
    for name in (run, run + UNFINISHED):
        for directory in (Path(name), reports / name):
            if _is_recording(directory):
                return Recording(directory)
    known = sorted(d.name for d in reports.glob(f"*{UNFINISHED}"))
    raise LookupError(f"--resume: no run {run!r} (unfinished: {', '.join(known[-5:]) or 'none'})")


__all__ = [
    "Beginning",
    "Calibration",
    "CpuUse",
    "Finished",
    "Recording",
    "Repetition",
    "RunRecord",
    "Seconds",
    "Stall",
    "Stretch",
    "Transfer",
    "find",
    "slug",
]
