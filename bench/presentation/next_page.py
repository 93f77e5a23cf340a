"""The table of ``docs/howto/troubleshoot.md``: what to run after which verdict, as ``next_steps`` decides."""

from __future__ import annotations

from bench.analysis.next_steps import RULES
from testbed.resources import HOME

FILE = HOME / "docs" / "howto" / "troubleshoot.md"
BEGIN = "<!-- What follows a verdict, by ./invokew schema -->\n"
END = "<!-- The end of this table -->\n"


def render() -> str:
    """Return the page with the table as it is now."""
    before, _, rest = FILE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [f"| *{rule.verdict}* | {rule.because} | {rule.command} | {rule.reason} |\n" for rule in RULES]
    head = "| Verdict | When | Next | To find out |\n|---|---|---|---|\n"
    return f"{before}{BEGIN}\n{head}{''.join(rows)}\n{END}{after}"
