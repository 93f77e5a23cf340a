"""A claim on trial, for the terminal: what is expected beside what was observed."""

from __future__ import annotations

import math

from rich.table import Table
from rich.text import Text

from bench.presentation.words import verbatim
from bench.studies.reproduction.claims import Expected
from bench.studies.reproduction.trial import Trial
from testbed.scenario.units import format_share

STYLES = {"confirmed": "green", "outside": "red", "invalid": "yellow"}


def of(trial: Trial) -> Table:
    """Return the table of one claim."""
    table = Table(
        title=Text.assemble(verbatim(f"{trial.claim.id}: "), (trial.outcome, STYLES[trial.outcome])),
        title_justify="left", title_style="", box=None, pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
    for heading in ("", "flow", "phase"):
        table.add_column(heading, overflow="fold")
    for heading in ("expected", "observed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in trial.observed:
        outside = "" if one.inside else "red"
        value = Text(_value(one.value), outside)
        table.add_row(
            one.expected.what, verbatim(one.flow), verbatim(one.phase), tolerated(one.expected), value
        )
    table.add_row()
    return table


def tolerated(expected: Expected) -> str:
    """Return what is expected, with what is tolerated: ``100 % (99 % to 101 %)``, ``99 % or more``."""
    if isinstance(expected.value, str):
        return expected.value
    least, most = expected.least, expected.most
    if math.isinf(most):
        return f"{_value(least)} or more"
    if math.isinf(least):
        return f"{_value(most)} or less"
    return f"{_value(expected.value)} ({_value(least)} to {_value(most)})"


def _value(value: float | str | None) -> str:
    if value is None:
        return "not measured"
    return value if isinstance(value, str) else format_share(value)
