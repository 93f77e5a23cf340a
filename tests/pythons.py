"""The Pythons that a machine has besides the tests' own: by their names on PATH, or as pyenv keeps them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

OLDEST, NEWEST = 9, 15  # of 3; what the plugin is to run with


def found(minor: int) -> Path | None:
    """Return an interpreter of Python 3.``minor``, if there is one."""
    name = f"python3.{minor}"
    tried = (_itself(path) for path in (f"/usr/bin/{name}", shutil.which(name), _of_pyenv(name)) if path)
    return next(filter(None, tried), None)


def _of_pyenv(name: str) -> str:
    """Where pyenv has it; its command of that name runs only what somebody chose."""
    if shutil.which("pyenv") is None:
        return ""
    asked = ["pyenv", "prefix", name.removeprefix("python")]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return f"{done.stdout.strip()}/bin/{name}" if done.returncode == 0 else ""


def _itself(path: str) -> Path | None:
    """The program behind a name, if it starts and has SQLite, which one that was built by hand may not."""
    code = "import sqlite3, sys; print(sys.executable)"
    try:
        done = subprocess.run([path, "-IS", "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 else None
