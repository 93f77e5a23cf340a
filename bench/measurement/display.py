"""What a run tells while it goes on, whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from bench.measurement.rates import OnRates
from testbed.scenario import Scenario


class Display(Protocol):
    """Where a run says how far it is."""

    def stage(self, text: str) -> None:
        """Tell what is being done now."""

    def traffic(self, scenario: Scenario, repetition: int) -> AbstractContextManager[OnRates]:
        """Show a repetition's traffic while it lasts; gives what to call with the current rates."""

    def measured(self) -> None:
        """Take note that all traffic has ended: what is begun now disturbs nothing."""

    def settle(self) -> None:
        """Come to an end with what was begun then: there will be probes once more."""


# Makes the display of one run after another, by what each is called.
Displays = Callable[[str], Display]
