"""Why a service's requests stay in their zones, or do not: for people, and for programs."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from bench.presentation.wording import verbatim
from edge.services.explanation import Expectation, Explanation, Report, lines


def headline(report: Report) -> str:
    """Say what a service asks for, and who sees to it."""
    version = ".".join(map(str, report.version))
    whose = ", by Kubernetes itself" if report.wish.built_in else ""
    return f"service {report.service}: hints {report.wish.mode}{whose} (Kubernetes {version})"


def show(console: Console, report: Report) -> None:
    """Print all that people are told of a service's hints."""
    console.print(verbatim(headline(report), "bold"), soft_wrap=True)
    for kind, explained in report.explained.items():
        if len(report.explained) > 1:
            console.print(verbatim(f"\n{kind}:"))
        for line in lines(explained):
            console.print(verbatim(line), soft_wrap=True)
    for note in report.notes:
        console.print(verbatim(f"note: {note}"), soft_wrap=True)


def document(report: Report) -> dict[str, Any]:
    """Return all that is known of a service's hints, for programs."""
    return {
        "service": report.service,
        "kubernetes": ".".join(map(str, report.version)),
        "mode": report.wish.mode,
        "built_in": report.wish.built_in,
        "addresses": [{"type": kind, **_explained(one)} for kind, one in report.explained.items()],
        "notes": list(report.notes),
    }


def _explained(one: Explanation) -> dict[str, Any]:
    why_not = one.why_not
    return {
        "zones": [
            {
                **row._asdict(),
                "share": float(row.share),
                "busiest": float(row.busiest),
                "served_by": dict(row.served_by),
                "why": row.why.value,
            }
            for row in one.rows
        ],
        "why_not": {"safeguard": why_not.safeguard.name, "message": str(why_not)} if why_not else None,
        "pending": one.pending,
        "expected": {
            **_expected(one.expected),
            "loads": {address: float(load) for address, load in one.expected.loads.items()},
        },
        "remedies": [{"what": each.what, **_expected(each.expected)} for each in one.remedies],
    }


def _expected(one: Expectation) -> dict[str, Any]:
    return {"busiest": float(one.busiest), "away": float(one.away)}
