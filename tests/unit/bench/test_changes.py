"""What a change takes is what docs/explanation/architecture.md says: each is made in a copy, and works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.unit.bench.builders import DATA

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PACKAGES = ("bench", "testbed", "plugin", "docs")

Edits = Mapping[str, tuple[tuple[str, str], ...]]  # by a file's name: what stands there, and then does

COLUMN: Edits = {
    "flow_phases.py": (
        ("    p01_bps: Rate  #", "    p05_bps: Rate | None = None\n    p01_bps: Rate  #"),
        (
            "        p01_bps=statistics.p01(rates),\n",
            "        p01_bps=statistics.p01(rates),\n        p05_bps=statistics.percentile(rates, 0.05),\n",
        ),
    ),
    "report.html.j2": (
        ("<th>lowest</th>", "<th>lowest</th><th>p05</th>"),
        (
            "<td>{{ judged.lowest_bps | fixed(unit) }}</td>",
            "<td>{{ judged.lowest_bps | fixed(unit) }}</td><td>{{ judged.p05_bps | fixed(unit) }}</td>",
        ),
        ("fixed(unit) }}</td><td>–</td>", "fixed(unit) }}</td><td>–</td><td>–</td>"),
    ),
}
CAUSE: Edits = {
    "causes.py": (('    "kernel",  #', '    "cold",\n    "kernel",  #'),),
    "verdict.py": (
        ("        *_recorded(record),\n", "        *_recorded(record),\n        *_cold(record),\n"),
        (
            "def _recorded(",
            "def _cold(record: RunRecord) -> Iterator[Cause]:\n"
            '    text = f"{len(record.repetitions)} repetitions on a cold machine"\n'
            '    yield Cause(kind="machine", text=text, topics=("cold",))\n\n\n'
            "def _recorded(",
        ),
    ),
    "next_steps.py": (
        (
            "RULES: Sequence[Rule] = (\n",
            "RULES: Sequence[Rule] = (\n"
            '    Rule("invalid", ("cold",), "it was cold", "doctor", "what it lacks", lambda _: DOCTOR),\n',
        ),
    ),
    "troubleshoot.md": (),  # made again by ./invokew schema
}
ANALYSED = """
import sys
from pathlib import Path
from bench import pipeline
from bench.presentation import commands
from bench.recording.directory import Recording
recording = Recording(Path(sys.argv[1]))
summary = pipeline.analyse(recording)
print(summary.verdict, *summary.reasons)
print(commands.after_run(recording, summary).command)
print(commands.troubleshoot())
"""


def files(change: str) -> list[str]:
    """Return the files that the page says a change takes."""
    (row,) = re.findall(
        rf"^\| {re.escape(change)} \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return re.findall(r"`([^`]+)`", row)


def changed(edits: Edits, directory: Path) -> str:
    """Return what analysing a recording that held says with these edits, in a copy of bench."""
    shutil.copytree(ROOT / "bench", directory / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    for name, replaced in edits.items():
        for before, after in replaced:
            (file,) = (directory / "bench").rglob(name)
            text = file.read_text(encoding="utf-8")
            assert text.count(before) == 1, (name, before)
            file.write_text(text.replace(before, after), encoding="utf-8")
    shutil.copytree(DATA / "held", directory / "held")
    done = subprocess.run(
        [sys.executable, "-c", ANALYSED, str(directory / "held")],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": f"{directory}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("change", "most"), [("a flow's column", 4), ("a cause of *invalid*", 8), ("a class's rate", 8)]
)
def test_a_change_takes_few_files_and_there_are_all_of_them(change: str, most: int) -> None:
    named = files(change)
    assert 0 < len(named) <= most
    assert all(any(path for of in PACKAGES for path in (ROOT / of).rglob(name)) for name in named)


def test_a_column_takes_what_the_page_says(tmp_path: Path) -> None:
    assert list(COLUMN) == files("a flow's column")
    assert changed(COLUMN, tmp_path).startswith("held")
    page = (tmp_path / "held" / "report.html").read_text(encoding="utf-8")
    assert page.count("<th>p05</th>") == 1
    assert '"p05_bps": ' in (tmp_path / "held" / "summary.json").read_text(encoding="utf-8")


@pytest.mark.long(one_in=0)
def test_a_cause_takes_what_the_page_says(tmp_path: Path) -> None:
    assert sorted(CAUSE) == sorted(files("a cause of *invalid*"))
    verdict, command, *page = changed(CAUSE, tmp_path).splitlines()
    assert verdict == "invalid 2 repetitions on a cold machine"
    assert command == "./invokew doctor"
    assert "| *invalid* | it was cold | doctor | what it lacks |" in page
