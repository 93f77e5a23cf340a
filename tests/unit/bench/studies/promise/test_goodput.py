"""When too little, and when too much, is a broken promise."""

from __future__ import annotations

import pytest

from bench.studies.promise.check import Judgement
from bench.studies.promise.checks import goodput
from tests.unit.bench.studies.promise.known import cause, flow, ran, received


def judged(mean: float, *causes: tuple[str, str, str | None]) -> Judgement:
    run = ran([flow("100M", 95e6, 100e6, 0.0, mean)], [cause(*one) for one in causes])
    return goodput.judge({"rates": run}, [("rates", "100M", 1)])


@pytest.mark.parametrize(
    ("mean", "found"),
    [(0, "violated"), (85.4e6, "violated"), (85.6e6, "held"), (99.7e6, "held"), (99.8e6, "violated")],
)
def test_the_mean_has_to_be_in_between(mean: float, found: str) -> None:
    assert judged(mean).found == found


def test_what_it_may_be_stands_beside_what_it_is() -> None:
    (number,) = judged(90e6).numbers
    assert (number.name, number.value, number.unit) == ("100M", 90e6, "bit/s")
    assert number.least == pytest.approx(85.5e6)
    assert number.most == pytest.approx(99.75e6)
    assert judged(90e6).words == "100M: 90 Mbit/s, 94.74 % of the expected 95 Mbit/s"


def test_too_little_may_be_the_machines_fault_and_too_much_is_not() -> None:
    doubt = ("machine", "100M: the processors were busy", "100M")
    assert judged(50e6, doubt).found == "invalid"
    assert "the processors were busy" in judged(50e6, doubt).words
    assert judged(200e6, doubt).found == "violated"
    assert judged(90e6, doubt).found == "held"


def test_doubts_about_another_flow_are_none() -> None:
    assert judged(50e6, ("machine", "1G: the processors were busy", "1G")).found == "violated"


@pytest.mark.parametrize("kind", ["state", "measurement"])
def test_what_was_not_as_configured_holds_nothing_and_still_breaks_it(kind: str) -> None:
    doubt = (kind, "pod first: no class", None)
    assert [judged(mean, doubt).found for mean in (50e6, 90e6, 200e6)] == ["invalid", "invalid", "violated"]


def test_a_miss_that_the_analysis_calls_broken_is_broken() -> None:
    assert judged(50e6, ("promise", "100M: too little", "100M")).found == "violated"


def test_what_was_not_measured_proves_nothing() -> None:
    missing = goodput.judge({"rates": ran([])}, [("rates", "100M", 1)])
    assert (missing.found, missing.words) == ("invalid", "100M: nothing was measured")


def test_what_is_not_known_of_one_or_the_other_is_not_compared() -> None:
    assert goodput.got(ran([]), "100M", 0, 95e6) is None
    nothing = flow("100M", 95e6, 100e6, 95e6).model_copy(update={"expected_goodput_bps": None})
    assert goodput.got(ran([nothing]), "100M", 0) is None


def test_one_broken_rate_of_several_decides_and_is_named() -> None:
    flows = [flow("100M", 95e6, 100e6, 95e6, 95e6), flow("1M", 0.95e6, 1e6, 0.95e6, 95e6)]
    found = goodput.judge({"rates": ran(flows)}, [("rates", "100M", 1), ("rates", "1M", 1)])
    assert found.found == "violated"
    assert found.words.startswith("1M: ")
    assert "100M" not in found.words
    assert len(found.numbers) == 2


def test_the_stretches_outside_are_joined_and_the_warm_up_is_none_of_them() -> None:
    # 3 s of warm-up, then half a second as it shall be, 0.3 s too little, and again as it shall be.
    rates = [0.0] * 30 + [95e6] * 5 + [10e6] * 3 + [95e6] * 2
    run = ran([flow("100M", 95e6, 100e6, 50e6)], samples=received("100M", rates))
    (short,) = goodput.judge({"rates": run}, [("rates", "100M", 0)]).short
    assert (short.run, short.flow, short.repetition) == ("rates", "100M", 0)
    assert (short.start_s, short.end_s) == pytest.approx((3.506, 3.806))


def test_what_begins_as_the_warm_up_ends_is_judged() -> None:
    rates = [0.0] * 30 + [10e6] + [95e6] * 5
    run = ran([flow("100M", 95e6, 100e6, 50e6)], samples=received("100M", rates, begin=0.0))
    (short,) = goodput.judge({"rates": run}, [("rates", "100M", 0)]).short
    assert (short.start_s, short.end_s) == pytest.approx((3.0, 3.1))


def test_numbers_are_told_to_a_tenth_of_a_bit() -> None:
    run = ran([flow("100M", 95.1234567e6, 100e6, 95e6 + 0.26)])
    (number,) = goodput.judge({"rates": run}, [("rates", "100M", 0)]).numbers
    assert (number.value, number.least, number.most) == (95000000.3, 85611111.0, 99879629.5)
