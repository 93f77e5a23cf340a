"""A processor that has nothing to spare for a few samples, beside one that has."""

from __future__ import annotations

import time

import pytest

from bench.saturation import WINDOW_SECONDS, Saturation
from tests.system.bench.hog import PROCESSORS, hog, needs_root


@needs_root
@pytest.mark.parametrize("processor", PROCESSORS)
def test_one_saturated_processor_is_noted(processor: int) -> None:
    zero = time.monotonic()
    with Saturation() as saturation:
        saturation.start(zero)
        # At least one window lies in it whole, however late the watching thread gets to run.
        begun, ended = hog(processor, 4 * WINDOW_SECONDS)
        middle = (begun + ended) / 2 - zero
        deadline = time.monotonic() + 5
        while not noted(saturation, middle) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert noted(saturation, middle)


def noted(saturation: Saturation, moment: float) -> bool:
    return any(stretch.start_s < moment < stretch.end_s for stretch in saturation.stretches)
