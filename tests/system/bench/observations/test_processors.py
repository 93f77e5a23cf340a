"""A processor that stands still while another runs on."""

from __future__ import annotations

import pytest

from bench.observations.processors import WINDOW_SECONDS, SaturationWatcher, StallWatcher
from tests.system.bench.hog import PROCESSORS, needs_root, until_noted


@needs_root
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_stall_of_one_processor_is_noted(processor: int) -> None:
    watcher = StallWatcher()
    until_noted(watcher, lambda: watcher.stalls, processor, 0.1)


@needs_root
@pytest.mark.parametrize("processor", PROCESSORS)
def test_one_saturated_processor_is_noted(processor: int) -> None:
    saturation = SaturationWatcher()
    # At least one window lies in it whole, however late the watching thread gets to run.
    until_noted(saturation, lambda: saturation.stretches, processor, 4 * WINDOW_SECONDS)
