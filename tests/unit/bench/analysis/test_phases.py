from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.phases import WARM_UP, Span, classify, disturbances, merge, required, span_of
from tests.unit.bench.builders import repetition, scenario

TIMES = st.floats(min_value=0, max_value=100).map(lambda value: round(value, 3))
SPANS = st.lists(st.tuples(TIMES, TIMES).map(lambda pair: Span(min(pair), max(pair))), max_size=8)


def phases(starts: list[float], ends: list[float], judged_from: float, disturbed: list[Span]) -> list[str]:
    return [str(phase) for phase in classify(np.array(starts), np.array(ends), judged_from, disturbed)]


def test_a_sample_that_touches_a_disturbance_is_disturbed() -> None:
    got = phases([0.0, 0.9, 1.0, 1.95, 2.0], [0.1, 1.0, 1.1, 2.05, 2.1], 0.0, [Span(1.0, 2.0)])
    assert got == ["quiet", "quiet", "disturbed", "disturbed", "quiet"]


def test_a_sample_that_begins_in_the_warm_up_is_neither() -> None:
    assert phases([0.4, 0.5], [0.5, 0.6], 0.5, [Span(0, 9)]) == [WARM_UP, "disturbed"]


def test_without_disturbances_all_is_quiet() -> None:
    assert set(phases([0, 1, 2], [1, 2, 3], 0, [])) == {"quiet"}


@given(starts=st.lists(TIMES, min_size=1, max_size=30), length=st.floats(0.01, 1), spans=SPANS, warm=TIMES)
def test_classes_agree_with_their_definition(
    starts: list[float], length: float, spans: list[Span], warm: float
) -> None:
    merged = merge(spans)
    got = phases(starts, [start + length for start in starts], warm, merged)
    for start, phase in zip(starts, got, strict=True):
        touched = any(start < span.end and start + length > span.start for span in merged)
        assert phase == (WARM_UP if start < warm else "disturbed" if touched else "quiet")


@given(spans=SPANS, moment=TIMES)
def test_merging_keeps_every_moment_and_leaves_no_overlap(spans: list[Span], moment: float) -> None:
    merged = merge(spans)
    assert any(s.start <= moment <= s.end for s in spans) == any(s.start <= moment <= s.end for s in merged)
    assert all(a.end < b.start for a, b in pairwise(merged))


def test_a_disturbance_lasts_from_when_it_really_began() -> None:
    experiment = scenario()
    assert disturbances(experiment, repetition(experiment, late=0.25)) == [Span(3.25, 6.25)]


def test_a_transfer_that_was_not_made_has_its_planned_time() -> None:
    experiment = scenario()
    made = repetition(experiment)
    made.transfers.clear()
    assert span_of(experiment.disturbances[0], made) == Span(3.0, 6.0)


@pytest.mark.parametrize(
    ("judged", "disturbed", "expected"),
    [
        (Span(0.5, 10), [], ["quiet"]),
        (Span(0.5, 10), [Span(3, 6)], ["quiet", "disturbed"]),
        (Span(0.5, 10), [Span(0, 10)], ["disturbed"]),
        (Span(0.52, 10.02), [Span(0.01, 9.9)], ["disturbed"]),
        (Span(0.5, 10), [Span(20, 30)], ["quiet"]),
        (Span(0.5, 10), [Span(0, 0.51)], ["quiet"]),
        (Span(0.5, 1.0), [], ["quiet"]),
    ],
)
def test_required_phases(judged: Span, disturbed: list[Span], expected: list[str]) -> None:
    assert required(judged, disturbed, 0.1) == expected
