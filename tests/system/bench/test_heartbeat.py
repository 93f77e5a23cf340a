"""A processor that stands still while another runs on."""

from __future__ import annotations

import time

import pytest

from bench.heartbeat import Heartbeat
from tests.system.bench.hog import PROCESSORS, hog, needs_root


@needs_root
@pytest.mark.parametrize("processor", PROCESSORS)
def test_a_stall_of_one_processor_is_noted(processor: int) -> None:
    zero = time.monotonic()
    with Heartbeat() as heartbeat:
        heartbeat.start(zero)
        begun, ended = hog(processor, 0.1)
        middle = (begun + ended) / 2 - zero
        deadline = time.monotonic() + 5
        while not noted(heartbeat, middle) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert noted(heartbeat, middle)


def noted(heartbeat: Heartbeat, moment: float) -> bool:
    return any(stall.start_s < moment < stall.end_s for stall in heartbeat.stalls)
