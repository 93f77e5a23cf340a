import threading
import time

import pytest

from bench.observations.saturation import SaturationWatcher, saturated

Idle = tuple[int, int]  # ticks with nothing to do, and of waiting for disks


def stat(*processors: Idle | None) -> str:
    """Return a reading of ``/proc/stat``; None is a processor that is switched off."""
    lines = [
        f"cpu{number} 9 0 9 {idle[0]} {idle[1]} 0 9 0 0 0"
        for number, idle in enumerate(processors)
        if idle is not None
    ]
    return "\n".join(["cpu  9 0 9 100 100 0 9 0 0 0", *lines, "intr 12", ""])


@pytest.mark.parametrize(
    ("after", "full"),
    [
        (stat((11, 5), (21, 5)), False),
        (stat((11, 5), (20, 5)), True),  # one is enough
        (stat((11, 5), (20, 6)), False),  # waiting for disks is time to spare
        (stat((11, 5), None), False),  # switched off meanwhile
    ],
)
def test_a_processor_without_an_idle_tick_is_saturated(after: str, full: bool) -> None:
    assert saturated(stat((10, 5), (20, 5)), after) is full


def test_it_watches_until_the_block_ends() -> None:
    with SaturationWatcher() as saturation:
        saturation.start(time.monotonic())
        threads = threading.active_count()
    assert threading.active_count() == threads - 1
