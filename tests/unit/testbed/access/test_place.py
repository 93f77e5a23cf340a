from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.access.place import CommandError, Result, held_back, waits
from tests.waiting import PATIENCE


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


@pytest.mark.parametrize(
    ("said", "there"), [("", False), ("a warning\n", False), ("\n", True), ("a warning\n\n", True)]
)
def test_what_led_to_a_place_may_have_spoken_before(said: str, there: bool, tmp_path: Path) -> None:
    (tmp_path / "err").write_text(said)
    assert waits(tmp_path / "err") is there


def test_a_command_that_is_held_back_says_that_it_waits(tmp_path: Path) -> None:
    with (tmp_path / "err").open("wb") as errors:
        subprocess.run(held_back(["echo", "begun"]), stdin=subprocess.DEVNULL, stderr=errors, check=False)
    assert waits(tmp_path / "err")


def test_what_cannot_say_that_it_waits_does_not_wait() -> None:
    with Path("/dev/full").open("wb") as full:
        held = subprocess.Popen(held_back(["true"]), stdin=subprocess.PIPE, stderr=full)
    try:
        assert held.wait(timeout=PATIENCE) != 0
    finally:
        held.kill()
        held.communicate()
