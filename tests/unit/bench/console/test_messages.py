from __future__ import annotations

import pytest

from bench.console.messages import complain, say


def test_words_come_out_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"ssh:x: [bold] of {'a very long path/' * 20}"
    say(words)
    complain(words)
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{words}\n", f"{words}\n")


def test_no_word_is_an_order_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    words = "iperf3: \x1b]0;title\x07\x1b[2J\r\x9b31m\u202e \udcff"
    say(words)
    complain(words)
    said = capsys.readouterr()
    assert said.out.removeprefix("iperf3: ") == "\\x1b]0;title\\x07\\x1b[2J\\r\\x9b31m\\u202e \\udcff\n"
    assert said.err == said.out
