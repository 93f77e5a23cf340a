"""How a block of commands is typed, and compared with what its page says."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from bench.console.statuses import HELD, INVALID
from docs.parts.marks import Block
from tests.pages import all_blocks

BLOCKS = all_blocks()
LEFT_OUT = "..."


def typed(command: str, project: Path) -> tuple[int, list[str]]:
    """Type a command; return its exit status, and the lines of all that it says."""
    done = subprocess.run(
        ["/bin/bash", "-c", command], cwd=project, env={**os.environ, "COLUMNS": "120"}, text=True,
        check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


def steps(block: Block) -> Iterator[tuple[str, list[str], int | None]]:
    """Yield each command of a block, the lines that it shall print, and its status if that is shown."""
    commands = list(block.commands())
    for (command, printed), (after, status) in zip(commands, [*commands[1:], ("", "")], strict=True):
        if command.strip() != "echo $?":
            shown = [line for line in printed.splitlines() if line.strip() and line != LEFT_OUT]
            yield command, shown, int(status) if after.strip() == "echo $?" else None


def run(blocks: Iterable[Block], project: Path) -> None:
    """Type what they have, one after the other; the test is skipped if the machine was the limit of some."""
    limited = []
    for command, shown, expected in chain.from_iterable(map(steps, blocks)):
        status, said = typed(command, project)
        words = "\n".join([command, *said])
        if status == INVALID != expected:
            limited.append(command.strip())
            continue
        assert not set(map(normal, shown)) - set(map(normal, said)), words
        # What goes wrong on the page is shown there: by its status, or by what is said.
        assert status == (expected if expected is not None else HELD) or (shown and expected is None), words
    if limited:
        pytest.skip(f"the machine was the limit: {'; '.join(limited)}")


def normal(line: str) -> str:
    """Return a line without what differs from run to run."""
    return re.sub(r"\d+(\.\d+)?", "N", " ".join(line.split()))


def places(mark: str) -> list[str]:
    found = [place for place, block in BLOCKS.items() if block.mark == mark and block.language != "python"]
    assert found
    return found
