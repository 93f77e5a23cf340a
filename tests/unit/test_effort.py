"""Work that grows as its input does passes, and what compares each with all before it is found."""

from __future__ import annotations

import pytest

from tests import effort


def read(count: int) -> list[int]:
    found = []
    for number in range(count):
        if number % 7:
            found.append(number)
    return found


def in_one_line(count: int) -> int:
    return sum(number for number in range(count))


def once(_count: int) -> None:
    read(100)


@pytest.mark.parametrize("work", [read, in_one_line, once])
def test_work_that_grows_as_its_input_does_passes(work: effort.Work) -> None:
    effort.assert_in_proportion(work, 100)


def test_what_each_is_compared_with_is_found_beside_a_hundred_lines_for_each() -> None:
    def work(count: int) -> None:
        names = [str(number) for number in range(count)]
        assert not any(name == other for at, name in enumerate(names) for other in names[:at])
        for _ in names:
            read(40)

    with pytest.raises(AssertionError, match=r"lines for 200, .* for 400"):
        effort.assert_in_proportion(work, 200)
