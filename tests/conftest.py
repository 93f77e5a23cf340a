"""What all tests share."""

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from tests import parts

# A shell starts what is to run in the background with SIGINT ignored, and so would start whatever tests
# start, to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most cases of tests marked ``long(one_in=N)``: each N-th is run, or with 0 none.

    CONCORDE_CASES=100, in percent, runs all of them.
    """
    if int(os.environ.get("CONCORDE_CASES", "0")) >= 100:
        return
    seen: Counter[str] = Counter()
    left_out = []
    for item in items:
        mark = item.get_closest_marker("long")
        if mark is None or "one_in" not in mark.kwargs:
            continue
        test = item.nodeid.partition("[")[0]
        if mark.kwargs["one_in"] == 0 or seen[test] % mark.kwargs["one_in"]:
            left_out.append(item)
        seen[test] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


@pytest.fixture
def own_parts() -> Iterator[None]:
    """Let a test make parts known, or take them away, for itself alone."""
    with parts.put_back():
        yield
