"""No test judges a time beside others: who asserts that little of it has passed is marked ``alone``.

A clock tells of whatever else the machine does. That enough time has passed may be asserted, and so may a
deadline or somebody's patience, which are generous.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest

from tests.paths import ROOT

CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time", "getrusage"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS} | {"ru_utime", "ru_stime"}
SAID = re.compile(rf"\.({'|'.join(CLOCKS)})\b")
GENEROUS = ("patience", "deadline")
LEARNED = ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr


class Module:
    """One module, and what in it is a clock's: variables that hold a time, functions that return one."""

    def __init__(self, source: str, functions: Iterable[str] = ()) -> None:
        self.tree = ast.parse(source)
        self.above = {below: node for node in ast.walk(self.tree) for below in ast.iter_child_nodes(node)}
        self.functions = set(functions)
        self.variables: set[tuple[ast.AST | None, str]] = set()  # with the function that they are of
        self.names: set[str] = set()  # theirs
        taught = [node for node in self.above if isinstance(node, LEARNED)]
        known = -1
        while known != (known := len(self.functions) + len(self.variables)):
            for node in taught:
                self._learn(node)

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Return) and self.tells(node.value):
            self.functions.add(self.around(node)[0].name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            self._assign(node.target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Tuple):
            same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            for number, one in enumerate(target.elts):
                self._assign(one, value.elts[number] if same and isinstance(value, ast.Tuple) else value)
        elif isinstance(target, ast.Name) and self.tells(value):
            self.variables.add(((*self.around(target), None)[0], target.id))
            self.names.add(target.id)

    def tells(self, node: ast.AST | None) -> bool:
        """Whether a time is in it; what a time was compared with is none."""
        if node is None or isinstance(node, ast.Compare | ast.Lambda):
            return False
        if isinstance(node, ast.Name):
            if node.id in self.functions or node.id not in self.names:
                return node.id in self.functions
            return any((scope, node.id) in self.variables for scope in (*self.around(node), None))
        if isinstance(node, ast.Attribute) and (node.attr in CLOCKS or node.attr in self.functions):
            return True
        return any(self.tells(below) for below in ast.iter_child_nodes(node))

    def around(self, node: ast.AST) -> list[ast.FunctionDef]:
        """Return the functions that it stands in, the innermost first."""
        found = []
        while node in self.above:
            node = self.above[node]
            if isinstance(node, ast.FunctionDef):
                found.append(node)
        return found

    def is_alone(self, node: ast.AST) -> bool:
        marks: list[ast.AST] = [mark for function in self.around(node) for mark in function.decorator_list]
        marks += [one for one in self.tree.body if isinstance(one, ast.Assign) and is_for_all(one)]
        return any("pytest.mark.alone" in ast.unparse(mark) for mark in marks)

    def judged(self) -> list[int]:
        """Return the lines of assertions in which a time is the lesser side, beside other tests."""
        return [
            node.lineno
            for node in self.above
            if isinstance(node, ast.Assert) and not self.is_alone(node)
            for lesser, greater in sides(node.test)
            if self.tells(lesser) and not any(word in ast.unparse(greater).lower() for word in GENEROUS)
        ]


def is_for_all(assigned: ast.Assign) -> bool:
    """Whether it marks all tests of its module."""
    return ast.unparse(assigned.targets[0]) == "pytestmark"


def sides(test: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give the lesser and the greater side of each comparison in an assertion, ``a < b <= c`` being two."""
    for one in ast.walk(test):
        if isinstance(one, ast.Compare):
            for how, (left, right) in zip(one.ops, pairwise([one.left, *one.comparators]), strict=True):
                if isinstance(how, ast.Lt | ast.LtE):
                    yield left, right
                elif isinstance(how, ast.Gt | ast.GtE):
                    yield right, left


def test_no_test_asserts_that_little_time_has_passed_beside_others() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in sorted((ROOT / "tests").rglob("*.py"))}
    read = {file: Module(source) for file, source in sources.items() if SAID.search(source)}
    # And who calls a function that returns a time of another module's.
    for file, source in sources.items():
        known = {
            name for other, one in read.items() if f"{other.stem} import" in source for name in one.functions
        }
        if called := {name for name in known if re.search(rf"\b{name}\b", source)}:
            read[file] = Module(source, called)
    found = [
        f"{file.relative_to(ROOT)}:{line}: count the work (tests/effort.py), wait for an event"
        " (tests/waiting.py), or mark the test alone, elsewhere than in tests/unit"
        for file, one in read.items()
        for line in one.judged()
    ]
    assert not found, "\n".join(found)


BEGIN = "began = time.monotonic()\n"


@pytest.mark.parametrize(
    "source",
    [
        f"{BEGIN}assert time.monotonic() - began < 2",
        f"{BEGIN}assert 2 >= time.monotonic() - began",
        f"{BEGIN}took, other = time.process_time() - began, 1\nassert 0 < other + took < 2, took",
        "def took():\n    return time.perf_counter_ns() - 5\nassert max(took() for _ in range(3)) <= 9",
        "class A:\n    def took(self):\n        return time.time()\nassert one and A().took() < 9",
        "used = os.wait4(1, 0)[2]\nassert used.ru_utime + used.ru_stime < 2",
        f"@pytest.mark.long\ndef test():\n    {BEGIN}    assert time.monotonic() < began + 2",
    ],
)
def test_a_time_that_is_to_be_little_is_found(source: str) -> None:
    assert Module(source).judged() == [source.count("\n") + 1]


@pytest.mark.parametrize(
    "source",
    [
        f"{BEGIN}assert time.monotonic() - began >= 2",
        f"{BEGIN}assert made <= 100 * (time.monotonic() - began)",
        f"{BEGIN}deadline = began + 60\nassert time.monotonic() < deadline",
        f"{BEGIN}made, begun = 0, began\nassert made < 2",
        f"def one():\n    {BEGIN}def other(began):\n    assert began < 2",
        f"@pytest.mark.alone\ndef test():\n    {BEGIN}    def judge():\n        assert time.time() < began",
        f"pytestmark = [pytest.mark.long, pytest.mark.alone]\n{BEGIN}assert time.time() - began < 2",
    ],
)
def test_what_judges_none_beside_others_passes(source: str) -> None:
    assert Module(source).judged() == []
