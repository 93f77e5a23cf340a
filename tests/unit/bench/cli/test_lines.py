"""What is answered to command lines that start nothing: text and exit status, as ``lines.json`` has them.

``python -m tests.unit.bench.cli.test_lines`` writes that file anew, for the same lines; its differences are
what has changed for people who type. Long answers are digests; docs/reference/commands.md shows help.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
from pathlib import Path

import pytest

from tests import verbs
from tests.paths import ROOT

FILE = Path(__file__).with_name("lines.json")
LINES: dict[str, list[int | str]] = json.loads(FILE.read_text(encoding="utf-8"))
LONGEST = 120  # characters of an answer that is kept word for word
DIGITS = 16  # of the digest of what is longer


def answer(line: str, cwd: Path) -> list[int | str]:
    """Return a line's exit status, and what it says on standard output and standard error."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("CONCORDE_")}
    done = verbs.run(*shlex.split(line), cwd=cwd, env={**env, "COLUMNS": "80"})
    out = done.stdout
    if line.startswith("--complete"):  # in the order in which a shell shows them
        out = "".join(sorted(out.splitlines(keepends=True)))
    return [done.returncode, *(_short(text, cwd) for text in (out, done.stderr))]


def _short(text: str, cwd: Path) -> str:
    text = text.replace(str(ROOT), "ROOT").replace(str(cwd), "HERE")
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.long(one_in=3)
def test_a_line_is_answered_as_before(line: str, tmp_path: Path) -> None:
    assert answer(line, tmp_path) == LINES[line]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as nowhere:
        answers = {line: answer(line, Path(nowhere)) for line in LINES}
    rows = (f"{json.dumps(line)}: {json.dumps(one)}" for line, one in answers.items())
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
