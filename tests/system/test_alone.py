"""What runs alone is judged twice before it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

JUDGES = """
import pytest
from pathlib import Path

@pytest.fixture
def times():
    seen = Path("seen")
    seen.write_text((seen.read_text() if seen.exists() else "") + "x")
    return len(seen.read_text())

{mark}
def test_it(times):
    assert times > {least}
"""


@pytest.mark.parametrize(
    ("mark", "least", "passes", "made"),
    [
        ("@pytest.mark.alone", 0, True, 1),
        ("@pytest.mark.alone", 1, True, 2),
        ("@pytest.mark.alone", 2, False, 2),
        ("", 1, False, 1),
    ],
)
@pytest.mark.long(one_in=2)
def test_the_second_time_counts(mark: str, least: int, passes: bool, made: int, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(JUDGES.format(mark=mark, least=least))
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "test_it.py",
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is passes, done.stdout
    assert (tmp_path / "seen").read_text() == "x" * made
    assert ("it failed before" in done.stdout) is (made == 2 and not passes)
