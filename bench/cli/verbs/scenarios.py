"""Which scenario is meant, and what editors are told of scenarios."""

from __future__ import annotations

from pathlib import Path

from bench.cli.exits import HELD
from bench.cli.terminal import say
from testbed.resources import HOME, SCENARIOS
from testbed.scenario import render_schema
from testbed.scenario.texts import is_file

SCHEMA_FILE = SCENARIOS / "scenario.schema.json"


def scenario_file(name: str) -> Path:
    """Return the file of a scenario given by path or by its name in ``scenarios/``. Raises LookupError."""
    for candidate in (Path(name), SCENARIOS / f"{name}.yaml"):
        if is_file(candidate):
            here = Path.cwd()
            return candidate.relative_to(here) if candidate.is_relative_to(here) else candidate
    known = ", ".join(sorted(file.stem for file in SCENARIOS.glob("*.yaml")))
    raise LookupError(f"--scenario: no scenario {name!r} (a file, or one of: {known})")


def write_schema() -> int:
    """Write the JSON Schema of scenarios for editors."""
    SCHEMA_FILE.write_text(render_schema(), encoding="utf-8")
    say(f"wrote {SCHEMA_FILE.relative_to(HOME)}")
    return HELD
