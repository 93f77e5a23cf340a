from __future__ import annotations

import pytest

from bench.observations import kernel


def test_packets_that_passed_by_classes_are_a_fault_of_the_interface_they_left_by() -> None:
    before: kernel.Passed = {"pod A-1": 3, "node worker-01": 0}
    after: kernel.Passed = {"pod A-1": 3, "node worker-01": 7}
    assert kernel.faults(before, after) == ["node worker-01: 7 packets passed by its classes"]


@pytest.mark.parametrize(("before", "after"), [("no HTB", 5), (5, "no HTB"), ("no HTB", "no HTB")])
def test_an_interface_without_classes_at_any_time_is_a_fault(before: int | str, after: int | str) -> None:
    assert kernel.faults({"pod A-1": before}, {"pod A-1": after}) == ["pod A-1: no HTB"]


def test_a_count_that_stays_is_none() -> None:
    assert kernel.faults({"pod A-1": 3}, {"pod A-1": 3}) == []
