"""What a network keeps, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from bench.studies.promise.index import Promise, Result
from bench.studies.promise.report import SENTENCES

STYLES = {"held": "green", "violated": "red", "invalid": "yellow", "not claimed": "dim"}


def tables(found: Promise) -> Sequence[Table]:
    """Return a table for each profile."""
    return [_table(found, profile, found.of(profile)) for profile in found.profiles]


def _table(found: Promise, profile: str, results: Sequence[Result]) -> Table:
    table = Table(title=f"network {found.network}, profile {profile}", title_justify="left", box=None)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was seen")
    table.add_column("CPU s/Gbit", justify="right", no_wrap=True)
    for one in results:
        cost = "–" if one.cpu_s_per_gbit is None else f"{one.cpu_s_per_gbit:.2f}"
        table.add_row(one.name, Text(one.state, STYLES[one.state]), Text(one.words), cost)
    return table


def claimed(found: Promise) -> str:
    """Return, as a sentence, what the network says of itself."""
    said = " and ".join(f"a {claim} ({SENTENCES[claim]})" for claim in found.claims)
    return f"network {found.network} claims {said or 'nothing'}"
