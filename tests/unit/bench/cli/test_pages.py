from __future__ import annotations

import re

import pytest

from bench.cli import pages
from bench.cli.table import VERBS
from bench.console import statuses


def test_the_first_page_names_each_verb_once_and_four_commands_to_begin_with() -> None:
    front = pages.front("invokew")
    beginning = front.partition("To begin with:\n")[2].partition("\n\n")[0]
    assert len(re.findall(r"^  \S+ ", beginning, re.MULTILINE)) == 4
    named = re.findall(r"^  ([a-z][a-z0-9.]*) ", front, re.MULTILINE)
    assert sorted(named) == sorted(VERBS)


def test_what_one_begins_with_can_be_typed() -> None:
    assert {line.split()[0] for line, _ in pages.BEGINNINGS} <= set(VERBS)


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_says_its_defaults_and_how_it_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_width", lambda: 1000)  # an option is a line
    text = pages.verb(VERBS[name], "invokew")
    for line in re.findall(r"^  .*--\S+=(?:WORD|NUMBER) .*", text, re.MULTILINE):
        assert "(default: " in line
    assert "\nExit statuses:\n" in text
    assert set(statuses.said(VERBS[name].ends)) >= {str(statuses.BAD_INPUT), "70", "128 + n"}


def test_a_default_is_the_real_one() -> None:
    text = pages.verb(VERBS["nightly"], "invokew")
    assert "(default: 0.1)" in text
    assert "(default: 5)" in text


def test_only_what_judges_can_be_invalid() -> None:
    assert statuses.INVALID in VERBS["bench"].ends
    assert statuses.INVALID not in VERBS["up"].ends
    assert statuses.CHANGED in VERBS["nightly"].ends
    assert statuses.CHANGED not in VERBS["bench"].ends


def test_the_page_of_all_verbs_is_made_of_them() -> None:
    """As ``./invokew schema`` writes it."""
    assert pages.FILE.read_text(encoding="utf-8") == pages.render()
