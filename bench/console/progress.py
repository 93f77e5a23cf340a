"""What a person sees while a run goes on: the stage it is in, and the current rate of every transfer.

On a terminal the lines stay in place; anywhere else they are plain lines, one a stage or every two seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import Progress
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from bench.console.messages import say
from bench.measurement.rates import OnRates, Rates, names
from bench.presentation.wording import estimate, verbatim
from testbed.resources import as_typed
from testbed.scenario import Scenario

PLAIN_SECONDS = 2.0
LINE_SECONDS = 10.0  # between two lines of what is only counted


class Display:
    """Shows the progress of one run after another on a console."""

    def __init__(self, console: Console, name: str) -> None:
        self._console = console
        self._name = name
        self._preparing: threading.Thread | None = None

    def stage(self, text: str) -> None:
        """Tell what is being done now."""
        said = Text.assemble(verbatim(f"{self._name}: ", "bold"), verbatim(as_typed(text)))
        self._console.print(said, soft_wrap=True)

    @contextmanager
    def traffic(self, scenario: Scenario, repetition: int) -> Iterator[OnRates]:
        """Show a repetition's traffic while it lasts; yields what to call with the current rates."""
        total = scenario.measurement.repetitions
        of = f", repetition {repetition + 1} of {total}" if total > 1 else ""
        self.stage(f"traffic for {scenario.duration:g} s{of}")
        called = names(scenario.transfers)
        labels = list(dict.fromkeys(called[one.label] for one in scenario.traffic))
        if not self._console.is_terminal:
            yield self._plain(labels)
            return
        with Live(console=self._console, transient=True, refresh_per_second=4) as live:

            def show(seconds: float, rates: Rates) -> None:
                live.update(_view(seconds, scenario.duration, labels, rates))

            yield show

    def measured(self) -> None:
        """Begin to import what an analysis takes, which is half a second, beside the last checks."""
        self._preparing = threading.Thread(target=_prepare, daemon=True)
        self._preparing.start()

    def settle(self) -> None:
        """Wait for it."""
        if self._preparing is not None:
            self._preparing.join()

    def _plain(self, labels: list[str]) -> OnRates:
        last = 0.0

        def show(seconds: float, rates: Rates) -> None:
            nonlocal last
            if seconds - last >= PLAIN_SECONDS:
                last = seconds
                shown = "  ".join(f"{label}: {_rate(label, rates)}" for label in labels)
                say(f"{seconds:6.1f} s  {shown}", console=self._console)

        return show


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many runs are done, on standard error; yields what to call with that, and with how many it is.

    On a terminal it is a bar, elsewhere a line every ten seconds.
    """
    console = Console(stderr=True)
    with Progress(
        *Progress.get_default_columns(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)
        begun = last = time.monotonic()

        def tell(done: int, total: int) -> None:
            nonlocal last
            bar.update(task, completed=done, total=total)
            now = time.monotonic()
            if not console.is_terminal and now - last >= LINE_SECONDS and done < total:
                last = now
                left = f", {estimate((now - begun) / done * (total - done))} left" if done else ""
                say(f"{what}: {done} of {total} runs{left}", console=console)

        yield tell


def _prepare() -> None:
    from bench import pipeline

    pipeline.prepare()


def _view(seconds: float, total: float, labels: list[str], rates: Rates) -> Group:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for label in labels:
        table.add_row(Text(label), _rate(label, rates))
    bar = Table.grid(padding=(0, 2))
    bar.add_row(ProgressBar(total=total, completed=min(seconds, total), width=40), f"{seconds:.1f} s")
    return Group(bar, table)


def _rate(label: str, rates: Rates) -> str:
    """Return a transfer's rate; of pods without an interface on their node nobody sees it (macvlan)."""
    return format_bits(rates[label]) if label in rates else "not seen meanwhile"


def format_bits(bits_per_second: float) -> str:
    """Return a rate for people: ``239 kbit/s``, ``953 Mbit/s``, ``3.82 Gbit/s``."""
    if bits_per_second >= 1e9:
        return f"{bits_per_second / 1e9:.2f} Gbit/s"
    if 0 < bits_per_second < 10e6:  # as runs on emulated machines have them
        return f"{bits_per_second / 1e3:.0f} kbit/s"
    return f"{bits_per_second / 1e6:.0f} Mbit/s"
