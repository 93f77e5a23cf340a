"""Claims for people: ``docs/howto/reproduce.md``, and for the terminal one on trial.

The page is for who has to find out whether what is said here comes out again; the table has what is expected
beside what was observed.
"""

from __future__ import annotations

import math
import posixpath

from rich.table import Table
from rich.text import Text

from bench.presentation import report
from bench.presentation.sheet import borderless
from bench.presentation.wording import verbatim
from bench.studies.reproduction import claims
from bench.studies.reproduction.claims import Claims, Expected
from bench.studies.reproduction.trial import Trial
from testbed.resources import HOME
from testbed.scenario.units import format_share

FILE = HOME / "docs" / "howto" / "reproduce.md"
SEED = 1  # of the commands as they are shown


def render(known: Claims) -> str:
    """Return the page."""
    templates = report.templates().overlay(autoescape=False)
    templates.filters = {
        **templates.filters,
        "line": claims.one_line,
        "relative": _relative,
        "seeded": lambda command: claims.seeded(command, SEED),
        "tolerated": tolerated,
    }
    return templates.get_template("reproducing.md.j2").render(known=known, minutes=f"{_minutes(known):g}")


def _minutes(known: Claims) -> float:
    """Return how long it takes to try all claims that anyone can; each command is run once."""
    ordinary = [claim for claim in known.claims if known.machines[claim.machine].ordinary]
    return sum({claim.command: claim.minutes for claim in ordinary}.values())


def _relative(page: str) -> str:
    """Return how a page, a path in the project, is linked from this one."""
    return posixpath.relpath(page, posixpath.dirname(FILE.relative_to(HOME).as_posix()))


STYLES = {"confirmed": "green", "outside": "red", "invalid": "yellow"}


def of(trial: Trial) -> Table:
    """Return the table of one claim."""
    title = Text.assemble(verbatim(f"{trial.claim.id}: "), (trial.outcome, STYLES[trial.outcome]))
    table = borderless(title, gap=2)
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
