from __future__ import annotations

from bench.observations.clocks import faults, notes
from testbed.access.clocks import Clock


def test_clocks_far_apart_are_a_note_and_late_starts_a_fault() -> None:
    clocks = {"a": Clock(0.0, 0.001), "b": Clock(3.0, 0.3)}
    assert notes(clocks, 0.1) == ["the nodes' clocks are 3.000 s apart, more than a sample of 0.1 s"]
    assert faults(clocks, 0.1) == [
        "b hears up to 0.150 s late that it is to send, more than a sample of 0.1 s"
    ]
    assert notes(clocks, 5) == faults(clocks, 5) == []
