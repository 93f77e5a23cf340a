"""Builds the wheel, for tests of what is in it and of where it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT


def build(directory: Path) -> Path:
    """Build the wheel of this tree into a directory and return it; nothing is fetched for that."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = directory.glob("*.whl")
    return wheel
