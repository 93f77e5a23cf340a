from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bench.presentation.figures.labels import LONGEST_NAME, shortened, spread


@given(
    wanted=st.lists(st.floats(min_value=0, max_value=3), min_size=1, max_size=20),
    gap=st.floats(min_value=0.05, max_value=0.4),
)
def test_labels_never_overlap_and_keep_their_order(wanted: list[float], gap: float) -> None:
    places = spread(wanted, gap, room=3.0)
    order = sorted(range(len(wanted)), key=lambda index: (wanted[index], index))
    steps = [places[b] - places[a] for a, b in pairwise(order)]
    assert all(step >= gap - 1e-9 for step in steps)
    assert min(places) >= -1e-9
    assert max(places) <= max(3.0, gap * (len(wanted) - 1)) + 1e-9


def test_labels_with_room_stay_where_they_belong() -> None:
    assert spread([2.0, 0.5, 1.0], 0.3, room=3.0) == [2.0, 0.5, 1.0]


def test_long_names_keep_both_ends() -> None:
    name = "a rather long name of the flow number 12"
    short = shortened(name)
    assert len(short) == LONGEST_NAME
    assert short.startswith("a rather")
    assert short.endswith("number 12")
    assert shortened("A-1 -> A-4") == "A-1 → A-4"
