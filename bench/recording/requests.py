"""Which scenario is meant: a file, a name in ``scenarios/``, or a recording, whose scenario as run it is."""

from __future__ import annotations

from pathlib import Path

from bench.recording import directory
from bench.recording.records import Asked, Request
from testbed.resources import SCENARIOS
from testbed.scenario import Scenario, load
from testbed.scenario.texts import is_file

REPORTS = Path(Asked().reports)


def read(request: Request) -> Scenario:
    """Return the scenario that a request means. Raises LookupError, or ScenarioError for what cannot be."""
    file = scenario_file(request.scenario, Path(request.reports))
    return load(file, request.overrides, request.scale)


def scenario_file(name: str, reports: Path = REPORTS) -> Path:
    """Return the file of the scenario that is meant. Raises LookupError."""
    for candidate in (Path(name), SCENARIOS / f"{name}.yaml"):
        if is_file(candidate):
            here = Path.cwd()
            return candidate.relative_to(here) if candidate.is_relative_to(here) else candidate
    try:
        return directory.find(name, reports).scenario_file
    except LookupError:
        known = ", ".join(sorted(file.stem for file in SCENARIOS.glob("*.yaml")))
        raise LookupError(f"--scenario: no scenario {name!r} (a file, or one of: {known})") from None
