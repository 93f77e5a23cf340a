"""What takes long to make, and is made once for all processes of a test run that have tests of it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a directory that ``make`` fills, by whichever process asks first; others wait for it.

    Nobody may change what is in it. A directory that could not be made is made anew for who asks next.
    """
    own = factory.getbasetemp()
    # xdist gives each of its processes a directory in that of the run.
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    place, made_here = common / f"once-{name}", common / f"once-{name}.made"
    with (common / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made_here.exists():
            make(place)
            made_here.touch()
    return place
