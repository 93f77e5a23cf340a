from __future__ import annotations

import inspect

import pytest

from bench.cli import program
from bench.cli.table import VERBS
from bench.console.verb import Verb


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_what_does_a_verb_is_there_and_takes_its_options(verb: Verb) -> None:
    given = {one.into or one.name for one in verb.options}
    given |= {name for name, there in {"name": verb.study, "command": verb.command}.items() if there}
    given |= {"dry"} if verb.plans else set()
    names = given - {"json"} | ({"document"} if "json" in given else set())
    context = [None] if verb.runs_programs else []
    inspect.signature(program._function(verb.function)).bind(*context, **dict.fromkeys(names))


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_words_alone_are_values_of_an_option_that_there_is(verb: Verb) -> None:
    assert verb.alone in {"", *(one.name for one in verb.options if not one.place)}
