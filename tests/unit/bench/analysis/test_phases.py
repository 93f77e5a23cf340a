from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.analysis.phases import (
    WARM_UP,
    Disturbed,
    Span,
    classify,
    disturbances,
    planned,
    required,
    span_of,
)
from testbed.scenario import Scenario
from tests.unit.bench.builders import repetition, scenario

TIMES = st.floats(min_value=0, max_value=100).map(lambda value: round(value, 3))
SPANS = st.lists(st.tuples(TIMES, TIMES).map(lambda pair: Span(min(pair), max(pair))), max_size=8)


def phases(starts: list[float], ends: list[float], judged_from: float, disturbed: list[Span]) -> list[str]:
    stretches = [Disturbed(*span) for span in disturbed]
    return [str(phase) for phase in classify(np.array(starts), np.array(ends), judged_from, stretches)]


def noisy(*spans: tuple[float, float]) -> Scenario:
    """Return a scenario with disturbances, called a, b and so on, that are on from start to end."""
    ends = {"from": "one", "to": "two"}
    return scenario(
        disturbances=[
            {"name": name, "start": start, "duration": round(end - start), **ends}
            for name, (start, end) in zip("abcd", spans, strict=False)
        ]
    )


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
    got = phases(starts, [start + length for start in starts], warm, spans)
    for start, phase in zip(starts, got, strict=True):
        touched = any(start < span.end and start + length > span.start for span in spans)
        assert phase == (WARM_UP if start < warm else "disturbed" if touched else "quiet")


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 70), st.integers(1, 3)).map(lambda one: (one[0] / 10, one[0] / 10 + one[1])),
        max_size=4,
    ),
    moment=TIMES,
)
def test_stretches_keep_every_disturbed_moment_and_do_not_overlap(
    spans: list[tuple[float, float]], moment: float
) -> None:
    stretches = planned(noisy(*spans))
    inside = any(start <= moment <= end for start, end in spans)
    assert inside == any(one.start <= moment <= one.end for one in stretches)
    assert all(a.end <= b.start for a, b in pairwise(stretches))
    assert all(a.end < b.start or a.phase != b.phase for a, b in pairwise(stretches))


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(3, 6)], [Disturbed(3, 6, "disturbed")]),
        ([(3, 6), (3, 6)], [Disturbed(3, 6, "disturbed")]),
        # One after the other, with a time in which neither is on.
        ([(2, 4), (6, 8)], [Disturbed(2, 4, "disturbed by a"), Disturbed(6, 8, "disturbed by b")]),
        (
            [(2, 6), (4, 8)],
            [
                Disturbed(2, 4, "disturbed by a"),
                Disturbed(4, 6, "disturbed by a and b"),
                Disturbed(6, 8, "disturbed by b"),
            ],
        ),
        # A fifth of a second together is no phase of its own: of two that are as near, the earlier.
        ([(2.2, 4.2), (4, 8)], [Disturbed(2.2, 4.2, "disturbed by a"), Disturbed(4.2, 8, "disturbed by b")]),
        # Nor is a fifth of a second alone.
        ([(2, 6), (2.2, 6.2)], [Disturbed(2, 6.2, "disturbed")]),
        (
            [(2, 8), (3, 8), (4, 8)],
            [
                Disturbed(2, 3, "disturbed by a"),
                Disturbed(3, 4, "disturbed by a and b"),
                Disturbed(4, 8, "disturbed by a, b and c"),
            ],
        ),
    ],
)
def test_each_set_of_disturbances_is_a_phase(
    spans: list[tuple[float, float]], expected: list[Disturbed]
) -> None:
    assert [stretch.phase for stretch in planned(noisy(*spans))] == [one.phase for one in expected]
    assert [time for one in planned(noisy(*spans)) for time in one[:2]] == pytest.approx(
        [time for one in expected for time in one[:2]]
    )


def test_a_late_disturbance_makes_no_phase_of_its_own() -> None:
    experiment = noisy((3, 6), (3, 6))
    made = repetition(experiment)
    made.transfers["b"].started_s = 3.2
    first = experiment.flows[0]
    assert disturbances(experiment, first, made) == [Disturbed(3, 6.2)]


def test_a_flow_that_sees_only_one_of_them_has_one_phase() -> None:
    experiment = noisy((2, 4), (6, 8))
    short = experiment.flows[0].model_copy(update={"duration": 5})
    found = disturbances(experiment, short, repetition(experiment))
    assert {one.phase for one in found} == {"disturbed by a"}
    assert required(Span(0.5, 5), found, 0.1) == ["quiet", "disturbed by a"]


def test_a_disturbance_lasts_from_when_it_really_began() -> None:
    experiment = scenario()
    made = repetition(experiment, late=0.25)
    assert disturbances(experiment, experiment.flows[0], made) == [Disturbed(3.25, 6.25)]


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
    assert required(judged, [Disturbed(*span) for span in disturbed], 0.1) == expected
