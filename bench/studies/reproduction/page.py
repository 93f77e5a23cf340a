"""``docs/howto/reproduce.md``: for who has to find out whether what is said here comes out again."""

from __future__ import annotations

import posixpath

from bench.presentation import report
from bench.studies.reproduction import claims, table
from bench.studies.reproduction.claims import Claims
from testbed.resources import HOME

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
        "tolerated": table.tolerated,
    }
    return templates.get_template("reproducing.md.j2").render(known=known, minutes=f"{_minutes(known):g}")


def _minutes(known: Claims) -> float:
    """Return how long it takes to try all claims that anyone can; each command is run once."""
    ordinary = [claim for claim in known.claims if known.machines[claim.machine].ordinary]
    return sum({claim.command: claim.minutes for claim in ordinary}.values())


def _relative(page: str) -> str:
    """Return how a page, a path in the project, is linked from this one."""
    return posixpath.relpath(page, posixpath.dirname(FILE.relative_to(HOME).as_posix()))
