"""Which scenario is meant: a file, a name in ``scenarios/``, or a recording, whose scenario as run it is."""

from __future__ import annotations

from pathlib import Path

from bench.recording import (
    directory,
    queues,  # noqa: F401 - it has a say in what a scenario may ask for
)
from bench.recording.records import Asked, Request
from testbed.registry import nearest
from testbed.resources import SCENARIOS, shown
from testbed.scenario import Scenario, load
from testbed.scenario.texts import is_file

REPORTS = Path(Asked().reports)
FOLDERS = (SCENARIOS, SCENARIOS / "examples")


def read(request: Request) -> Scenario:
    """Return the scenario that a request means. Raises LookupError, or ScenarioError for what cannot be."""
    file = scenario_file(request.scenario, Path(request.reports))
    return load(file, request.overrides, request.scale, request.duration)


def scenario_file(name: str, reports: Path = REPORTS) -> Path:
    """Return the file of the scenario that is meant. Raises LookupError."""
    for candidate in (Path(name), *(folder / f"{name}.yaml" for folder in FOLDERS)):
        if is_file(candidate):
            return shown(candidate)
    try:
        return directory.find(name, reports).scenario_file
    except LookupError:
        known = [sorted(file.stem for file in folder.glob("*.yaml")) for folder in FOLDERS]
        near = nearest(Path(name).stem, [one for names in known for one in names])
        raise LookupError(
            f"--scenario: no scenario {name!r}{f'; did you mean {near}?' if near else ''} (a file, or one "
            f"of: {', '.join(known[0])}; examples: {', '.join(known[1])})"
        ) from None
