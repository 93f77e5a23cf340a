"""How long tests wait for what surely comes, so that nothing is judged by it."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 60.0  # seconds; half of what a test may take


def until(
    what: Callable[[], object],
    hint: Callable[[], str] = lambda: "",
    *,
    patience: float = PATIENCE,  # seconds
    every: float = 0.01,
) -> float:
    """Wait until something is true that is announced to nobody, and return how long that took (seconds).

    What costs something to ask is asked now and then: the answer takes processors that those waited for need.
    """
    begin = time.monotonic()
    while not what():
        assert time.monotonic() - begin < patience, f"not after {patience:g} s: {hint()}"
        time.sleep(every)
    return time.monotonic() - begin
