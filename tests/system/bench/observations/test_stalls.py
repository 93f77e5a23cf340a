"""A processor that stands still while another runs on."""

from __future__ import annotations

import pytest

from bench.observations.stalls import StallWatcher
from tests.system.bench.hog import PROCESSORS, needs_root, until_noted


@needs_root
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_stall_of_one_processor_is_noted(processor: int) -> None:
    watcher = StallWatcher()
    until_noted(watcher, lambda: watcher.stalls, processor, 0.1)
