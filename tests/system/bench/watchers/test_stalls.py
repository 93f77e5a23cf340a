"""A processor that stands still while another runs on."""

from __future__ import annotations

import pytest

from bench.measurement.watchers.stalls import Heartbeat
from tests.system.bench.hog import PROCESSORS, is_noted, needs_root


@needs_root
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_stall_of_one_processor_is_noted(processor: int) -> None:
    heartbeat = Heartbeat()
    assert is_noted(heartbeat, lambda: heartbeat.stalls, processor, 0.1)
