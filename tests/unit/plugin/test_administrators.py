"""What the pages for administrators name is there: metrics, and the words that people will look for."""

from __future__ import annotations

import re

from concorde import metrics
from concorde.metrics import COUNTER

from tests.paths import ROOT

HOWTO = ROOT / "docs" / "howto"
SOURCES = [*(ROOT / "plugin" / "concorde").rglob("*.py"), ROOT / "plugin" / "deploy" / "install.sh"]
# What of a text differs from time to time.
HOLE = {".py": r"\{[^{}]*\}", ".sh": r"\$\([^)]*\)|\$\w+"}
# A name such as concorde_uplink_{capacity,reserve}_bits_per_second.
NAME = re.compile(r"concorde_[a-z_]+(?:\{[a-z_,]+\}[a-z_]*)?")


def expanded(name: str) -> list[str]:
    before, brace, rest = name.partition("{")
    if not brace:
        return [name]
    words, _, after = rest.partition("}")
    return [before + word + after for word in words.split(",")]


def test_every_metric_is_named_and_every_name_is_one() -> None:
    there = {family.name + ("_total" if family.kind == COUNTER else "") for family in metrics.Families()}
    named = {
        name for found in NAME.findall((HOWTO / "administer.md").read_text()) for name in expanded(found)
    }
    assert named <= there
    assert there - named == {
        "concorde_build_info",
        "concorde_attachments",
    }  # they say themselves what they are


def test_every_symptom_is_in_words_that_are_said() -> None:
    """In the table's first column stand parts of messages; three dots stand for what differs."""
    said = "\n".join(re.sub(HOLE[file.suffix], "...", file.read_text()) for file in SOURCES)
    said = re.sub(r"\"\s*\n\s*f?\"", "", said)  # one text in several lines
    tables = (HOWTO / "troubleshoot.md").read_text().partition("## A promise is not kept")[0]
    symptoms = [
        cell
        for line in tables.splitlines()
        if line.startswith("| `")
        for cell in re.findall("`([^`]+)`", line.split("|")[1])
    ]
    assert len(symptoms) >= 10
    for symptom in symptoms:
        for part in filter(None, (part.strip(" ;:") for part in symptom.replace("eth0", "...").split("..."))):
            assert part in said, symptom
