"""Help as it is asked for, of every verb and in every way."""

from __future__ import annotations

import gc
import sys

import pytest

from bench.cli import program
from bench.cli.table import VERBS


@pytest.fixture(autouse=True)
def _usual_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that ends looks for circles seldom; this one goes on."""
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("line", ["VERB --help", "VERB -h", "--help VERB", "-h VERB", "help VERB"])
def test_every_verb_says_what_it_takes(
    line: str, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["invokew", *line.replace("VERB", verb).split()])
    with pytest.raises(SystemExit) as end:
        program.main()
    said = capsys.readouterr()
    assert (end.value.code, said.err) == (0, "")
    assert said.out.split()[:3] == ["Usage:", "invokew", verb]
    assert "\nExit statuses:\n" in said.out
