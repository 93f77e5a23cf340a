"""One line an event, and not more of them than do good."""

from __future__ import annotations

import io

import pytest

from edge.overlay.logger import LINES_A_SECOND, Logger


def test_what_was_said_is_not_said_again() -> None:
    stream = io.StringIO()
    log = Logger(stream)
    for words in ("one", "two", "one", "two", "three"):
        log.once(words)
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == ["one", "two", "three"]


def test_lines_have_a_time_and_too_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.25]
    monkeypatch.setattr("edge.overlay.logger.time.time", lambda: now[0])
    stream = io.StringIO()
    log = Logger(stream)
    for number in range(LINES_A_SECOND + 7):
        log(f"event {number}")
    assert len(stream.getvalue().splitlines()) == LINES_A_SECOND
    assert stream.getvalue().splitlines()[0].endswith(".250 event 0")
    now[0] += 1
    log("another")
    assert [line.partition(" ")[2] for line in stream.getvalue().splitlines()[-2:]] == [
        "and 7 lines more",
        "another",
    ]
