"""How many cases are tried, and which."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests import cases
from tests.paths import ROOT

NUMBERS = list(range(95))


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (cases.LONG, cases.SHARD, cases.TURN):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("share", "expected"), [("", 50), ("1", 50), ("10", 300), ("100", 3000)])
def test_a_count_is_a_share_of_the_full_one(
    monkeypatch: pytest.MonkeyPatch, share: str, expected: int
) -> None:
    if share:
        monkeypatch.setenv(cases.LONG, share)
    assert cases.count("CONCORDE_STEPS", 50, 3000) == expected
    monkeypatch.setenv("CONCORDE_STEPS", "7")
    assert cases.count("CONCORDE_STEPS", 50, 3000) == 7


def test_ten_seeds_in_a_row_choose_every_case_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cases.LONG, "10")
    tried: list[int] = []
    for seed in range(123, 133):
        monkeypatch.setenv(cases.SEED, str(seed))
        some = cases.chosen(NUMBERS)
        assert len(some) in (9, 10)
        tried += some
    assert sorted(tried) == NUMBERS


def test_seeds_in_a_row_have_each_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cases.whose_turn_it_is(NUMBERS) == NUMBERS
    monkeypatch.setenv(cases.TURN, "1")
    assert cases.whose_turn_it_is([]) == []
    taken: list[int] = []
    for seed in range(123, 123 + len(NUMBERS)):
        monkeypatch.setenv(cases.SEED, str(seed))
        taken += cases.whose_turn_it_is(NUMBERS)
    assert sorted(taken) == NUMBERS


def test_shards_are_all_of_it_and_each_case_is_in_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cases.shard(NUMBERS) == NUMBERS
    parts = []
    for number in range(1, 5):
        monkeypatch.setenv(cases.SHARD, f"{number}/4")
        parts += cases.shard(NUMBERS)
    assert sorted(parts) == NUMBERS


@pytest.mark.parametrize("asked", ["0/4", "5/4", "2", "a/b", "-1/4", "/"])
def test_a_shard_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv(cases.SHARD, asked)
    with pytest.raises(ValueError, match=f"^CONCORDE_SHARD: must be like 2/4, not '{asked}'$"):
        cases.shard(NUMBERS)


def test_more_samples_are_taken_until_it_passes_and_the_last_word_counts() -> None:
    tried = []

    def passes_by_two(factor: int) -> None:
        tried.append(factor)
        assert factor == 2

    cases.with_more_samples(passes_by_two)
    assert tried == [1, 2]

    def fails(factor: int) -> None:
        tried.append(factor)
        assert not factor, f"by {factor}"

    with pytest.raises(AssertionError, match="by 4"):
        cases.with_more_samples(fails)
    assert tried == [1, 2, 1, 2, 4]


TESTS = """
import pytest
from hypothesis import given, strategies
from tests import cases

pytestmark = pytest.mark.long(one_in=4)

@pytest.mark.parametrize("number", range(8))
def test_one(number):
    assert number != 4

@given(number=strategies.integers())
def test_other(number):
    print(number)
"""


@pytest.mark.parametrize(
    ("share", "counted", "enough"),
    [(0, {"a": 1}, True), (0, {"c": 1}, False), (10, {"a": 1}, False), (10, {"a": 1, "b": 2}, True)],
)
def test_what_is_done_at_random_is_about_something(
    share: int, counted: dict[str, int], enough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cases.LONG, str(share))
    with nullcontext() if enough else pytest.raises(AssertionError):
        cases.about(Counter(counted), "a", "b")


def collected(directory: Path, *arguments: str, **variables: str) -> str:
    """Run pytest on some tests with this project's conftest, and return what it says."""
    (directory / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (directory / "test_some.py").write_text(TESTS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"),
         "--rootdir", str(directory), *arguments],
        cwd=directory, env={**os.environ, "PYTHONPATH": str(ROOT), cases.SEED: "3", **variables},
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "chosen"), [([], "3/9"), (["-m", "not alone"], "6/9"), (["-m", "long and not alone"], "4/9")]
)
@pytest.mark.long(one_in=3)
def test_with_a_share_each_nth_case_is_tried_beside_it_and_no_case_twice(
    asked: list[str], chosen: str, tmp_path: Path
) -> None:
    share = {cases.LONG: "50"} if asked else {}
    assert f"{chosen} tests collected" in collected(
        tmp_path, "test_some.py", "--collect-only", "-q", *asked, **share
    )


@pytest.mark.long(one_in=0)
def test_what_fails_is_said_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    told = collected(tmp_path, "test_some.py")
    assert "seed: 3 (CONCORDE_SEED; by default of the commit), 0 % of full counts" in told
    assert "1 failed, 2 passed, 6 deselected" in told
    assert "CONCORDE_SEED=3 .venv/bin/pytest 'test_some.py::test_one[4]'" in told
    assert "1 passed" in collected(tmp_path, "test_some.py::test_one[3]")  # what is named is not left out


@pytest.mark.long(one_in=0)
def test_hypothesis_generates_the_same_for_a_seed_and_others_for_another(tmp_path: Path) -> None:
    def generated(seed: str) -> list[str]:
        told = collected(tmp_path, "-s", "-q", "test_some.py::test_other", CONCORDE_SEED=seed)
        return [line for line in told.splitlines() if line.lstrip("-").isdigit()]

    assert generated("3") == generated("3") != generated("4")
