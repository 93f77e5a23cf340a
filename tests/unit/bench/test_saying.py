from __future__ import annotations

import pytest

from bench.saying import complain, say


def test_words_come_out_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"ssh:x: [bold] of {'a very long path/' * 20}"
    say(words)
    complain(words)
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{words}\n", f"{words}\n")
