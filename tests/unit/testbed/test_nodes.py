from __future__ import annotations

import pytest

from testbed.nodes import CommandError, Result


def test_a_command_that_ended_well_is_what_it_was() -> None:
    done = Result(0, "words", "a warning")
    assert done.checked("worker-01", ["ip", "link"]) is done


@pytest.mark.parametrize(
    ("stdout", "stderr", "words"), [("out", "err", "err"), ("out", "", "out"), ("", "", "no message")]
)
def test_a_command_that_failed_is_an_error_with_its_own_words(stdout: str, stderr: str, words: str) -> None:
    with pytest.raises(CommandError, match=rf"^worker-01: ip link ended with 2: {words}$") as caught:
        Result(2, stdout, stderr).checked("worker-01", ["ip", "link"])
    assert caught.value.status == 2
