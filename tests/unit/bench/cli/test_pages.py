from __future__ import annotations

import re
from typing import Any

import pytest
from invoke.tasks import Task

from bench.cli import exits, pages, statuses
from bench.cli.tasks import VERBS

TASKS = {one.name: one for one in VERBS.tasks()}


def page(task: Task[Any]) -> str:
    return pages.verb(task, task.get_arguments(), VERBS, "invokew")


def test_the_first_page_names_each_verb_once_and_four_commands_to_begin_with() -> None:
    front = pages.front(VERBS, "invokew")
    beginning = front.partition("To begin with:\n")[2].partition("\n\n")[0]
    assert len(re.findall(r"^  \S+ ", beginning, re.MULTILINE)) == 4
    named = re.findall(r"^  ([a-z][a-z0-9.]*) ", front, re.MULTILINE)
    assert sorted(named) == sorted(TASKS)


def test_what_one_begins_with_can_be_typed() -> None:
    assert {line.split()[0] for line, _ in pages.BEGINNINGS} <= set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_each_verb_says_its_defaults_and_how_it_ends(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_width", lambda: 1000)  # an option is a line
    text = page(TASKS[name])
    for line in re.findall(r"^  .*--\S+=(?:WORD|NUMBER) .*", text, re.MULTILINE):
        assert "(default: " in line
    assert "\nExit statuses:\n" in text
    assert set(statuses.of(name)) >= {str(exits.BAD_INPUT), "70", "128 + n"}


def test_a_default_is_the_real_one() -> None:
    text = page(TASKS["nightly"])
    assert "(default: 0.1)" in text
    assert "(default: 5)" in text


def test_only_what_judges_can_be_invalid() -> None:
    assert str(exits.INVALID) in statuses.of("bench")
    assert str(exits.INVALID) not in statuses.of("up")
    assert str(exits.CHANGED) in statuses.of("nightly")
    assert str(exits.CHANGED) not in statuses.of("bench")


def test_every_verb_with_statuses_of_its_own_is_there() -> None:
    assert set(statuses.OF) <= set(TASKS)


def test_the_page_of_all_verbs_is_made_of_them() -> None:
    """As ``./invokew schema`` writes it."""
    assert pages.FILE.read_text(encoding="utf-8") == pages.render(VERBS)
