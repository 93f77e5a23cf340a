"""``docs/reference/promises.md``: a table of the reports that are kept in ``reports/promise/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.studies.promise import index, report
from bench.studies.promise.check import PROFILES, State
from bench.studies.promise.index import INDEX, Promise, Result
from testbed.resources import HOME

FILE = HOME / "docs" / "reference" / "promises.md"
DIRECTORY = "promise"  # in that of the recordings
SHORT: Mapping[State, str] = {"held": "held", "violated": "**violated**", "invalid": "?", "not claimed": "–"}
HEAD = """# What networks keep

<!-- Made of reports/promise/ by ./invokew figures --all; what is changed here by hand is lost. -->

Each network was asked by [`./invokew promise`](../howto/promise.md). `–` is not claimed, and has numbers in
the report; `?` is invalid: the machine may have been the limit. A ceiling says that a pod never gets more,
and no more than that. A report's pages are made by `./invokew figures reports/promise/NAME`.
"""


def render(reports: Path) -> str:
    """Return the page. Raises StoredError."""
    files = sorted((reports / DIRECTORY).glob(f"*/{INDEX}"))
    if not files:
        return f"{HEAD}\nNo report is kept yet.\n"
    found = {file.parent.name: index.read(file.parent) for file in files}
    parts = [HEAD, _table(found, reports)]
    for profile in PROFILES:
        results = {name: one.of(profile) for name, one in found.items()}
        claimed = {name: [one for one in each if one.claim] for name, each in results.items()}
        unclaimed = {name: [one for one in each if not one.claim] for name, each in results.items()}
        if any(results.values()):
            parts.append(f"## {profile.capitalize()}\n")
        parts += [_checks(claimed)] if any(claimed.values()) else []
        parts += _seen(unclaimed)
    return "\n".join(parts)


def _table(found: Mapping[str, Promise], reports: Path) -> str:
    lines = ["| Report | Network | Claims | " + " | ".join(PROFILES) + " |"]
    lines.append("|---" * (3 + len(PROFILES)) + "|")
    for name, one in found.items():
        link = f"[{name}](../../{reports.name}/{DIRECTORY}/{name})"
        cells = [_counted(one.of(profile)) for profile in PROFILES]
        claims = ", ".join(one.claims) or "nothing"
        lines.append(f"| {link} | {one.network} | {claims} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _counted(results: list[Result]) -> str:
    counted = report.statistics(results)
    return ", ".join(f"{number} {state}" for state, number in counted.items() if number) or "not asked"


def _checks(found: Mapping[str, Sequence[Result]]) -> str:
    """Return a table of states."""
    asked = {result.name: result.asks for results in found.values() for result in results}
    states = {
        name: {result.name: SHORT[result.state] for result in results} for name, results in found.items()
    }
    lines = ["| Check | " + " | ".join(found) + " |", "|---" * (1 + len(found)) + "|"]
    for check, asks in asked.items():
        cells = [states[name].get(check, "") for name in found]
        lines.append(f"| {check}: {asks} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _seen(found: Mapping[str, Sequence[Result]]) -> list[str]:
    """Return what was seen of each check that no network can claim, one table a check."""
    asked = {result.name: result.asks for results in found.values() for result in results}
    tables = []
    for check, asks in asked.items():
        lines = [f"{check}: {asks}", "", "| Report | Seen |", "|---|---|"]
        lines += [
            f"| {name} | {result.words} |"
            for name, results in found.items()
            for result in results
            if result.name == check
        ]
        tables.append("\n".join(lines) + "\n")
    return tables
