"""A glob of several numbers' names covers each of them, whatever they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

from bench.studies.nightly import metrics


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["small/up"], "small/up"),
        (["small/A -> C/quiet/mean", "small/A -> C/disturbed/mean"], "small/A -> C/*/mean"),
        (["small/A -> C/quiet/mean", "small/B -> D/disturbed/mean"], "small/*/mean"),
        (["small/A -> C/quiet/mean", "small/A -> C/retransmissions"], "small/A -> C/*"),
        (["small/A/quiet/mean", "large/A/quiet/mean"], "*/A/quiet/mean"),
        (["small/up", "small/A/up"], "small/*"),
        (["small/A/up", "small/A/A/up"], "small/A/*"),
        (["small/[A]*/quiet/mean", "small/[A]*/disturbed/mean"], "small/[[]A][*]/*/mean"),
        (["small/up", "large/down"], "*"),
    ],
)
def test_a_pattern_covers_all_its_names(names: Sequence[str], pattern: str) -> None:
    assert metrics.pattern(names) == metrics.pattern(names[::-1]) == pattern
    assert all(fnmatchcase(name, pattern) for name in names)


def test_values_side_by_side_have_one_unit() -> None:
    assert metrics.shown("small/A/quiet/mean", 954.9e6, 1.004e9, None) == [
        "0.9549 Gbit/s",
        "1.004 Gbit/s",
        "–",
    ]
    assert metrics.shown("small/up", 0.25) == ["0.25 s"]


def test_whose_a_number_is() -> None:
    assert metrics.owner("small/A -> C/quiet/mean") == "small/A -> C"
    assert metrics.owner("small/A -> C/retransmissions") == "small/A -> C"
    assert metrics.owner("small/up") == "small"
