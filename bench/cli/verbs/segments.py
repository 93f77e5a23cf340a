"""What verbs with ``--dry`` say of segments and devices."""

from __future__ import annotations

from bench.console.messages import say
from testbed.scenario import Scenario


def say_segments(scenario: Scenario) -> None:
    """Say which segments and devices would be built."""
    if scenario.segments:
        from bench.presentation import segments

        for line in segments.said(scenario):
            say(line)
