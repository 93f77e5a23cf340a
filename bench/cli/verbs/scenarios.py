"""Scenarios of one's own: a first one to change, and what editors are told of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench.console.messages import say
from bench.console.statuses import HELD
from bench.recording.requests import scenario_file
from testbed.resources import PROGRAM, SCENARIOS, shown
from testbed.scenario import load, render_schema

SCHEMA_FILE = SCENARIOS / "scenario.schema.json"

FIRST = "own"  # what a new one begins with: it says of each part what it is for
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?")  # as testbed.scenario.words has it


def write_new(name: str, from_: str) -> int:
    """Write NAME.yaml, with the comments of another scenario, and nothing if there is such a file.

    Raises LookupError for a bad name, for one that is taken, and for an unknown scenario to begin with.
    """
    name = name.removesuffix(".yaml")
    if not NAME.fullmatch(name):
        raise LookupError(f"new: {name!r} is not a valid name: use letters, digits and dashes")
    former = scenario_file(from_ or FIRST)
    load(former)  # what cannot be run is nothing to begin with
    file = Path(f"{name}.yaml")
    text = re.sub(r"(?m)^name: .*$", f"name: {name}", former.read_text(encoding="utf-8"), count=1)
    schema = os.path.relpath(SCHEMA_FILE, file.absolute().parent)
    text = re.sub(r"(?m)^(# yaml-language-server: \$schema=).*$", rf"\g<1>{schema}", text)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise LookupError(f"new: {file} already exists; give another name, or remove it") from None
    say(f"wrote {file}; now: {PROGRAM} bench {file}")
    return HELD


def write_schema() -> int:
    """Write what is made of the code: the JSON Schema, the pages of verbs and of verdicts, the rooms."""
    from bench.cli import pages
    from bench.presentation import commands
    from docs.parts import rooms

    made = (
        (SCHEMA_FILE, render_schema()),
        (pages.FILE, pages.render()),
        (commands.TROUBLESHOOT, commands.troubleshoot()),
        (rooms.PAGE, rooms.render()),
    )
    for file, text in made:
        file.write_text(text, encoding="utf-8")
        say(f"wrote {shown(file)}")
    return HELD
