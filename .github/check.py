#!/usr/bin/env python3
"""Say what a GitHub check shows of `bench --json`: held is success, violated failure, and invalid neutral.

A job can only pass or fail, and what proves nothing is neither. The Checks API knows more: what is written
here is the body of POST /repos/OWNER/NAME/check-runs (docs.github.com/rest/checks/runs). Python's standard
library alone, for it runs with whatever Python the runner has.
"""

from __future__ import annotations

import argparse
import html
import json
from pathlib import Path
from typing import Any

CONCLUSIONS = {"violated": "failure", "invalid": "neutral", "held": "success"}  # the worst first
MOST_CHARACTERS = 65_535  # of a summary; more is refused
TOO_LONG = "\n\nThere is more; it is in the recordings."
MBIT = 1e6


def worst(verdicts: list[str]) -> str:
    """Return the verdict of several runs, as the exit status of `bench` has it."""
    return next(verdict for verdict in CONCLUSIONS if verdict in verdicts)


def payload(document: dict[str, Any], name: str, commit: str, url: str) -> dict[str, Any]:
    """Return what creates the check, given the document of `bench --json`."""
    summaries = [run["summary"] for run in document["runs"]]
    verdict = worst([summary["verdict"] for summary in summaries])
    title = f"{verdict}: {', '.join(summary['scenario'] for summary in summaries)}"
    words = "\n\n".join(section(summary) for summary in summaries)
    if len(words) > MOST_CHARACTERS:
        words = words[: MOST_CHARACTERS - len(TOO_LONG)] + TOO_LONG
    return {
        "name": name,
        "head_sha": commit,
        "details_url": url,
        "status": "completed",
        "conclusion": CONCLUSIONS[verdict],
        "output": {"title": title, "summary": words},
    }


def section(summary: dict[str, Any]) -> str:
    """Return what is said of one run, as Markdown; rates in Mbit/s, of payload but for what is guaranteed."""
    flows = [row(flow, phase) for flow in summary["flows"] for phase in flow["phases"].items()]
    why = [f"* {escaped(reason)}" for reason in summary["reasons"]]
    table = [
        "| flow | phase | guaranteed | expected | observed | attained |",
        "|---|---|--:|--:|--:|--:|",
        *flows,
    ]
    what = f"{escaped(summary['title'])}, enforcement {escaped(summary['enforcement'])}"
    heading = f"### {summary['verdict']}: {what}"
    return "\n".join([heading, "", *table, *(["", *why] if why else [])])


def row(flow: dict[str, Any], phase: tuple[str, dict[str, Any]]) -> str:
    """Return a line of the table: a flow in a phase."""
    name, seen = phase
    attained = seen.get("attainment")
    cells = [
        escaped(flow["name"]), escaped(name), rate(flow.get("guarantee_bps")),
        rate(flow.get("expected_goodput_bps")), rate(seen.get("mean_bps")),
        "" if attained is None else f"{attained:.1%}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def rate(bps: float | None) -> str:
    """Return a rate in Mbit/s; nothing for none."""
    return "" if bps is None else f"{bps / MBIT:,.1f}"


def escaped(words: str) -> str:
    """Return words of a scenario, which may be anybody's, as Markdown shows them word for word."""
    plain = html.escape(" ".join(words.split()), quote=False)
    return "".join(f"\\{letter}" if letter in "\\`*_[]|#@!" else letter for letter in plain)


def main() -> None:
    """Read the document, write the body of the request and, for the job's page, the same as Markdown."""
    parser = argparse.ArgumentParser(description="Make a GitHub check of what bench --json says.")
    parser.add_argument("document", type=Path, help="what bench --json wrote")
    parser.add_argument("--name", required=True, help="what the check is called")
    parser.add_argument("--commit", required=True, help="the commit that it is shown at")
    parser.add_argument("--url", required=True, help="where its details are")
    parser.add_argument("--check", type=Path, required=True, help="gets the body of the request")
    parser.add_argument("--page", type=Path, required=True, help="gets its summary, at its end")
    asked = parser.parse_args()
    document = json.loads(asked.document.read_text(encoding="utf-8"))
    check = payload(document, asked.name, asked.commit, asked.url)
    asked.check.write_text(json.dumps(check), encoding="utf-8")
    with asked.page.open("a", encoding="utf-8") as page:
        page.write(f"## {check['output']['title']}\n\n{check['output']['summary']}\n")
    print(next(verdict for verdict, one in CONCLUSIONS.items() if one == check["conclusion"]))


if __name__ == "__main__":
    main()
