from __future__ import annotations

from pathlib import Path

import pytest

from testbed.access.batch import Step, take
from testbed.access.local import Local
from testbed.access.place import CommandError, Result
from tests.doubles import RecordingNode


def test_each_command_gets_its_words_and_its_input(tmp_path: Path) -> None:
    script = 'cat >"$1"; printf "%s|" "$2" >>"$1"'
    texts = ["", "no newline at its end", "$HOME `id` \\ 'quoted'\n\n", "line\n" * 20_000]
    words = ["a b", "$HOME", "'", "*"]
    steps = [
        Step(["sh", "-c", script, "sh", str(tmp_path / str(number)), words[number]], text)
        for number, text in enumerate(texts)
    ]
    take(Local(), steps)
    for number, text in enumerate(texts):
        assert (tmp_path / str(number)).read_text() == f"{text}{words[number]}|"


def test_a_command_that_fails_is_named_in_its_own_words_and_ends_it(tmp_path: Path) -> None:
    steps = [
        Step(["echo", "0"]),  # what is said is no failure's number
        Step(["sh", "-c", "read -r word; echo wrong: $word >&2; exit 3"], "this"),
        Step(["touch", str(tmp_path / "later")]),
    ]
    with pytest.raises(CommandError, match=r"^this machine: sh -c .* ended with 3: wrong: this$") as caught:
        take(Local(), steps)
    assert caught.value.status == 3
    assert list(tmp_path.iterdir()) == []


def test_what_a_command_leaves_of_its_input_is_not_for_the_next(tmp_path: Path) -> None:
    file = tmp_path / "read"
    take(
        Local(),
        [Step(["true"], "line\n" * 100_000), Step(["sh", "-c", 'cat >"$1"', "sh", str(file)], "mine")],
    )
    assert file.read_text() == "mine"


def test_a_program_there_is_not_is_named() -> None:
    with pytest.raises(CommandError, match=r"no-such-program --now ended with 127: .*not found"):
        take(Local(), [Step(["true"]), Step(["no-such-program", "--now"], "text\n")])


def test_what_runs_them_may_fail() -> None:
    lost = RecordingNode(answer=lambda _: Result(1, "", "no way there"))
    with pytest.raises(CommandError, match=r"^worker-01: sh -c .* ended with 1: no way there"):
        take(lost, [Step(["true"])])


def test_all_cost_one_way() -> None:
    node = RecordingNode()
    take(node, [Step(["true"]), Step(["cat"], "text")])
    (command,) = node.commands
    assert command[:2] == ["sh", "-c"]
