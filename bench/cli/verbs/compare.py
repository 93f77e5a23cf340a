"""The verb that says whether one run is better than another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.cli import documents
from bench.cli.exits import HELD, INVALID, VIOLATED
from bench.cli.terminal import say

if TYPE_CHECKING:
    from bench.analysis.compare import Comparison, Finding

STATUS: dict[Finding, int] = {"same": HELD, "better": HELD, "worse": VIOLATED, "cannot tell": INVALID}


def compare(one: str, other: str, across_machines: bool, json: bool, reports: Path) -> int:
    """Compare recordings, matrices or directories of recordings, and return the worst finding's status."""
    with documents.document(json) as told:
        return _compare(one, other, across_machines, reports, told)


def _compare(one: str, other: str, across_machines: bool, reports: Path, told: documents.Document) -> int:
    from bench.analysis import compare as comparing
    from bench.studies import sides

    places = sides.find(one, reports), sides.find(other, reports)
    found, others = (sides.runs(place) for place in places)
    both = [name for name in found if name in others]
    if not both:
        raise LookupError(f"{places[0]} and {places[1]} have no recording of the same name")
    comparisons = [
        comparing.compare(sides.read(found[name]), sides.read(others[name]), name, across_machines)
        for name in both
    ]
    alone = sorted(found.keys() ^ others.keys())
    findings = [comparison.finding for comparison in comparisons]
    finding = comparing.worst([*findings, "cannot tell"] if alone else findings)
    _show(finding, comparisons, alone)
    told |= {
        "finding": finding,
        "comparisons": [
            {**comparison.model_dump(mode="json"), "finding": comparison.finding}
            for comparison in comparisons
        ],
        "alone": alone,
    }
    return STATUS[finding]


def _show(finding: Finding, comparisons: list[Comparison], alone: list[str]) -> None:
    from bench.presentation import differences

    console = Console()
    for comparison in comparisons:
        console.print(differences.table(comparison))
        for note in differences.notes(comparison):
            say(f"  note: {note}")
        console.print()
    for name in alone:
        say(f"{name}: there is nothing to compare it with")
    say(finding, differences.STYLES[finding])
