"""The commands of the pages, typed as they stand there, in a copy of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.console.statuses import BAD_INPUT, HELD
from tests.pages import PAGES
from tests.paths import ROOT
from tests.system.docs.typing_it import BLOCKS, places, run, typed

# Verbs that ask what is up, and end with a status of their own: there is nothing they could say beforehand.
ASKING = re.compile(r"\./invokew (exec|ssh|capture|status|kubeconfig)\b")
LINES = sorted(
    {
        command.strip()
        for block in BLOCKS.values()
        for text, _ in block.commands()
        for command in text.replace("\\\n", " ").splitlines()
        if re.match(r"(sudo )?\./invokew ", command.strip()) and not ASKING.search(command)
    }
)


@pytest.mark.parametrize("place", places(""))
@pytest.mark.long(one_in=2)
def test_what_takes_seconds_does_what_the_page_says(place: str, project: Path) -> None:
    run([BLOCKS[place]], project)


@pytest.mark.long(one_in=60)
@pytest.mark.parametrize("line", LINES)
def test_every_command_is_understood(line: str, project: Path) -> None:
    """Also those that no test can run: each verb, option, scenario and override is one that there is."""
    command, _, _ = line.removeprefix("sudo ").partition("  #")
    command = re.sub(r"<([a-z-]+)>", r"\1", command.split(" | ")[0].split(" >")[0].split(" 2>")[0])
    faulty = any(line in text and printed for text, printed in SHOWN)
    status, said = typed(f"{command} --dry", project)
    # What stands for a run of the reader's own is understood, and not found.
    assert faulty or status == HELD or (status == BAD_INPUT and "no run 'run-id'" in said[-1]), said
    assert (project / "reports").is_dir()


SHOWN = [pair for block in BLOCKS.values() for pair in block.commands() if "no " in pair[1] or ":" in pair[1]]


def test_there_are_commands() -> None:
    assert len(LINES) > 40
    assert {ROOT / place.rpartition(":")[0] for place in BLOCKS} <= set(PAGES)
