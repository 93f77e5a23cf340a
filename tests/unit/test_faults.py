"""The program that tries faults makes some of each kind, all of which a compiler takes, and no other."""

from __future__ import annotations

import ast

import pytest

from benchmarks import faults
from benchmarks.faults import ROOT, chosen, faults_in, own_tests

SOURCE = '''\
"""A text with 1 + 1."""

LIMIT: Literal[3] = 2

@cached(4)
def one(a: Literal[5], b=0.5) -> Literal[6]:
    """Return 7."""
    if not (a < b <= LIMIT) and a is not None:  # and
        raise ValueError(f"more than {8 + 1}")
    a += 1
    return [x for x in zip(a, b, strict=True) if x in a] or "9"

if __name__ == "__main__":
    one(10)
'''


def test_what_is_a_fault_and_what_is_none() -> None:
    made = {str(fault) for fault in faults_in("a.py", SOURCE.encode())}
    assert made == {
        "constant a.py:3: 2 -> 3",
        "constant a.py:6: 0.5 -> 1.0",
        "operator a.py:8: not -> (nothing)",
        "operator a.py:8: < -> <=",
        "operator a.py:8: <= -> <",
        "operator a.py:8: is not -> is",
        'line     a.py:9: raise ValueError(f"more than {8 + 1}") -> pass',
        "line     a.py:10: a += 1 -> pass",
        "operator a.py:10: + -> -",
        "constant a.py:10: 1 -> 2",
        'line     a.py:11: return [x for x in zip(a, b, strict=True) if x in a] or "9" -> pass',
        "operator a.py:11: in -> not in",
        "operator a.py:11: or -> and",
    } | {"operator a.py:8: and -> or"}


def test_every_fault_is_a_program_and_another() -> None:
    for fault in chosen(5, 45):
        source = (ROOT / fault.file).read_bytes()
        assert ast.dump(ast.parse(fault.made(source))) != ast.dump(ast.parse(source)), str(fault)


def test_a_seed_gives_the_same_faults_each_once_and_all_kinds_of_all_areas() -> None:
    found = chosen(3, 45)
    assert found == chosen(3, 45) != chosen(4, 45)
    assert len(set(found)) == 45
    assert {(fault.kind, fault.file.split("/")[0]) for fault in found} == {
        (kind, top) for kind in faults.KINDS for top in ("bench", "plugin")
    }


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("bench/analysis/verdict.py", "tests/unit/bench/analysis"),
        ("bench/studies/promise/checks/floor.py", "tests/unit/bench/studies/promise"),
        ("plugin/concorde/node/htb.py", "tests/unit/plugin/node"),
        ("plugin/concorde/verbs/add.py", "tests/unit/plugin"),
    ],
)
def test_a_module_s_own_tests_are_the_nearest(file: str, tests: str) -> None:
    assert str(own_tests(file)) == tests


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *(
            (["--only", only], "--only: must be FROM-TO, within 1-60")
            for only in ("0-3", "5-4", "7-61", "x", "1-")
        ),
        (["--jobs", "0"], "--jobs: must be at least 1"),
        (["--count", "100000"], "--count: must be at most "),
    ],
)
def test_bad_input(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        faults.main(arguments)
    said = capsys.readouterr()
    assert (caught.value.code, said.out) == (2, "")
    assert words in said.err
