"""A processor that has nothing to spare for a few samples, beside one that has."""

from __future__ import annotations

import pytest

from bench.observations.saturation import WINDOW_SECONDS, SaturationWatcher
from tests.system.bench.hog import PROCESSORS, needs_root, until_noted


@needs_root
@pytest.mark.parametrize("processor", PROCESSORS)
def test_one_saturated_processor_is_noted(processor: int) -> None:
    saturation = SaturationWatcher()
    # At least one window lies in it whole, however late the watching thread gets to run.
    until_noted(saturation, lambda: saturation.stretches, processor, 4 * WINDOW_SECONDS)
