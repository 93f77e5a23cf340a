"""How long tests wait for what surely comes, so that nothing is judged by it."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds; half of what a test may take


def until(condition: Callable[[], object]) -> bool:
    """Wait until something is true that is announced to nobody, and tell whether it was."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
