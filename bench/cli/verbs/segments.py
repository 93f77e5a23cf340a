"""What verbs with ``--dry`` say of segments, devices and connections."""

from __future__ import annotations

from bench.console.messages import say
from testbed.scenario import Scenario


def say_segments(scenario: Scenario) -> None:
    """Say which segments, devices and connections would be built."""
    if scenario.segments:
        from bench.presentation import segments

        for line in segments.said(scenario):
            say(line)
