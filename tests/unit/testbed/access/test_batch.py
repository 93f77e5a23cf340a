from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from testbed.access.batch import look
from testbed.access.local import Local
from testbed.access.place import Result


class Counting(Local):
    """This machine as a place that counts how often it was entered."""

    def __init__(self) -> None:
        self.entered = 0

    def run(self, argv: Sequence[str], **more: Any) -> Result:
        self.entered += 1
        return super().run(argv, **more)


def test_each_command_has_its_own_answer_and_all_cost_one_way() -> None:
    here = Counting()
    found = look(
        here,
        [
            ["printf", "%s|", "a b", "$HOME", "'", "-n"],
            ["true"],
            ["sh", "-c", "echo said; echo wrong >&2; exit 3"],
            ["printf", "one\n\ntwo\n"],
            ["sh", "-c", "echo unasked >&2; echo {}"],
            ["cat"],
        ],
    )
    assert found == [
        Result(0, "a b|$HOME|'|-n|", ""),
        Result(0, "", ""),
        Result(3, "said", "wrong"),
        Result(0, "one\n\ntwo", ""),
        Result(0, "{}", ""),
        Result(0, "", ""),
    ]
    assert here.entered == 1


def test_a_program_there_is_not_is_said() -> None:
    (found,) = look(Local(), [["no-such-program"]])
    assert found.status == 127
    assert "not found" in found.stderr


@pytest.mark.parametrize("count", [0, 40])
def test_any_number_of_commands(count: int) -> None:
    found = look(Local(), [["echo", str(number)] for number in range(count)])
    assert [one.stdout for one in found] == [str(number) for number in range(count)]
