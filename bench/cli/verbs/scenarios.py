"""What editors are told of scenarios."""

from __future__ import annotations

from bench.cli.exits import HELD
from bench.cli.terminal import say
from testbed.resources import HOME, SCENARIOS
from testbed.scenario import render_schema

SCHEMA_FILE = SCENARIOS / "scenario.schema.json"


def write_schema() -> int:
    """Write the JSON Schema of scenarios for editors."""
    SCHEMA_FILE.write_text(render_schema(), encoding="utf-8")
    say(f"wrote {SCHEMA_FILE.relative_to(HOME)}")
    return HELD
