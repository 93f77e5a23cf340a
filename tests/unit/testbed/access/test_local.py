"""This machine, where kubectl runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.access.local import ATTEMPTS, TOO_BUSY, Local
from testbed.access.place import CommandError
from tests.waiting import PATIENCE

# Fails with the words of its first argument until it was run as often as its second one says.
FAILING = """
cat
echo >>"$0"
[ "$(wc -l <"$0")" -gt "$2" ] || { echo "$1" >&2; exit 1; }
echo an answer
"""
BUSY = f"Unable to connect to the server: {TOO_BUSY}"


def command(times: Path, words: str, fails: int) -> list[str]:
    times.touch()
    return ["sh", "-c", FAILING, str(times), words, str(fails)]


def run_times(times: Path) -> int:
    return len(times.read_text().splitlines())


def test_a_server_too_busy_to_shake_hands_is_asked_again_with_the_same_words(tmp_path: Path) -> None:
    times = tmp_path / "times"
    assert Local().run(command(times, BUSY, 2), stdin="a question\n").stdout == "a question\nan answer\n"
    assert run_times(times) == 3


def test_a_server_that_stays_busy_is_not_asked_for_ever(tmp_path: Path) -> None:
    times = tmp_path / "times"
    with pytest.raises(CommandError, match="TLS handshake timeout"):
        Local().run(command(times, BUSY, 1000))
    assert run_times(times) == ATTEMPTS


@pytest.mark.parametrize("words", ["Unable to connect to the server: EOF", "Error from server (NotFound)"])
def test_what_a_server_may_have_heard_is_not_said_twice(tmp_path: Path, words: str) -> None:
    times = tmp_path / "times"
    assert Local().run(command(times, words, 1), check=False).stderr == f"{words}\n"
    assert run_times(times) == 1


def test_a_command_that_ends_well_may_speak_of_handshakes(tmp_path: Path) -> None:
    times = tmp_path / "times"
    said = ["sh", "-c", 'echo >>"$0"; echo "$1" >&2', str(times), BUSY]
    assert Local().run(said).status == 0
    assert run_times(times) == 1


@pytest.mark.parametrize(("own", "heard"), [(None, "300"), ("7", "7")])
def test_kubectl_is_patient_unless_its_caller_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, heard: str
) -> None:
    name = "HTTP2_PING_TIMEOUT_SECONDS"
    monkeypatch.delenv(name, raising=False)
    if own:
        monkeypatch.setenv(name, own)
    asked = ["printenv", name]
    assert Local().run(asked).stdout.strip() == heard
    process = Local().start(asked, stdout=tmp_path / "out", stderr=tmp_path / "err")
    process.wait(PATIENCE)
    assert (tmp_path / "out").read_text().strip() == heard
