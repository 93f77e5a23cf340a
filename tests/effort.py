"""How much work something is: counted in lines of Python that run, for a clock tells of others' work too.

What one call of C does is one line, however long it takes. If that is for ever, the limit that every test has
says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

Work = Callable[[int], object]  # with so much of something

MOST = 2.2  # times the work for twice as much; two and a little, for what is done now and then


def lines(work: Callable[[], object]) -> int:
    """Return how many lines run, those of all that is called among them."""
    count = 0

    def step(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def assert_in_proportion(work: Work, few: int) -> None:
    """See that twice as much of something takes about twice the work, and not four times."""
    work(few)  # what is done once is done
    once, twice = lines(lambda: work(few)), lines(lambda: work(2 * few))
    assert twice <= MOST * once, f"{once:,} lines for {few}, {twice:,} for {2 * few}"
