"""How late what delays packets was itself."""

from __future__ import annotations

import pytest

from bench.analysis import delays
from bench.recording.records import Delayed


def delayed(**fields: object) -> Delayed:
    return Delayed.model_validate(
        {"zone": "south", "out": False, "means": "relay", "delay_s": 0.01, **fields}, strict=False
    )


@pytest.mark.parametrize(("share", "seconds"), [(0.5, 4e-6), (0.9, 4e-6), (0.99, 16e-6), (1.0, 16e-6)])
def test_a_share_of_the_frames_is_no_later_than_a_power_of_two_of_microseconds(
    share: float, seconds: float
) -> None:
    assert delays.lateness(delayed(lateness=[0, 40, 50, 0, 10]), share) == seconds


def test_nobody_knows_how_late_a_kernel_s_delay_is() -> None:
    netem = delayed(means="netem")
    assert delays.lateness(netem, 0.99) is None
    assert delays.late_share(netem) is None
    assert delays.words(netem) == "into zone south"


def test_of_no_frames_none_is_late() -> None:
    idle = delayed(frames=0, late=0, lateness=[0, 0])
    assert delays.lateness(idle, 0.99) is None
    assert delays.late_share(idle) is None
