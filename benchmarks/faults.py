"""How many random faults in analysis, verdict and plugin the unit tests notice.

A fault is another operator or constant, or a line removed. Each is tried in a copy of the tree, with the
tests of the module's own package first and the rest of ``tests/unit`` after them, until one fails. That test
then has to pass without the fault. What is no fault is not made: texts, docstrings, annotations, decorators,
``strict`` and what only the interpreter asks for.

Exit status: 0 if enough were noticed, 1 if not, 2 for bad input. One that its own package notices takes a few
seconds, one that nobody notices as long as all unit tests.
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
UNIT = Path("tests/unit")
# Of each area as many are tried as of the others; a file belongs to the first that names it.
AREAS = {
    "verdict": (
        "bench/analysis/verdict.py",
        "bench/analysis/excuses.py",
        "bench/studies/promise/checks/ceiling.py",
        "bench/studies/promise/checks/floor.py",
        "bench/studies/promise/checks/goodput.py",
        "bench/studies/promise/checks/latency.py",
        "bench/studies/promise/checks/robust.py",
    ),
    "analysis": ("bench/analysis",),
    "plugin": ("plugin/concorde",),
}
# The tests of plugin/concorde/node are tests/unit/plugin/node.
MIRRORED = {"plugin/concorde": "plugin"}
OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"),
}
DESCRIBING = ("About", "_about")  # what is made by these is for people to read: questions, links
KINDS = ("operator", "constant", "line")
LINES = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Delete)


class Fault(NamedTuple):
    """A change of one place in a file; ``begin`` and ``end`` are offsets in its bytes."""

    file: str
    line: int
    kind: str
    begin: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        change = f"{' '.join(self.old.split())} -> {self.new or '(nothing)'}"
        return f"{self.kind:8} {self.file}:{self.line}: {change}"

    def made(self, source: bytes) -> bytes:
        """Return the file with the fault in it."""
        return source[: self.begin] + self.new.encode() + source[self.end :]


def faults_in(file: str, source: bytes) -> Iterator[Fault]:
    """Yield every fault that can be made in a file."""
    starts = [0, *itertools.accumulate(len(line) for line in source.splitlines(keepends=True))]

    def begin(node: ast.expr | ast.stmt) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: PT018 (of the parser)
        return starts[node.end_lineno - 1] + node.end_col_offset

    def at(kind: str, first: int, last: int, new: str) -> Fault:
        return Fault(
            file, source.count(b"\n", 0, first) + 1, kind, first, last, source[first:last].decode(), new
        )

    def operator(kind: ast.AST, left: ast.expr, right: ast.expr) -> Iterator[Fault]:
        old, new = OPERATORS.get(type(kind), ("", ""))
        between = source[end(left) : begin(right)]
        if old and between.count(old.encode()) == 1:  # not where a comment has it, too
            first = end(left) + between.index(old.encode())
            yield at("operator", first, first + len(old), new)

    for node in _code(ast.parse(source), in_function=False):
        if isinstance(node, ast.Compare):
            for left, kind, right in zip(
                [node.left, *node.comparators], node.ops, node.comparators, strict=False
            ):
                yield from operator(kind, left, right)
        elif isinstance(node, ast.BoolOp):
            for left, right in itertools.pairwise(node.values):
                yield from operator(node.op, left, right)
        elif isinstance(node, ast.BinOp):
            yield from operator(node.op, node.left, node.right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield at("operator", begin(node), begin(node) + len("not"), "")
        elif isinstance(node, ast.Constant) and (new := _other(node.value)):
            yield at("constant", begin(node), end(node), new)
        elif isinstance(node, LINES):
            yield at("line", begin(node), end(node), "pass")
        if isinstance(node, ast.AugAssign):
            yield from operator(node.op, node.target, node.value)


def _other(value: object) -> str:
    """Return another value than a constant's; of texts none."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    return str(value * 2 or 1.0) if isinstance(value, float) else ""


def _code(node: ast.AST, in_function: bool) -> Iterator[ast.AST]:
    """Yield what is run of a tree: no texts, annotations, decorators; statements in functions alone."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg == "strict"):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DESCRIBING:
        return
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.If) and isinstance(node.test, ast.Compare | ast.Name):
        asked = node.test.left if isinstance(node.test, ast.Compare) else node.test
        if isinstance(asked, ast.Name) and asked.id in ("__name__", "TYPE_CHECKING"):
            return
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if not is_text and (in_function or not isinstance(node, LINES)):
        yield node
    if isinstance(node, ast.FunctionDef) and ast.unparse(node.body[-1]) in ("return", "return None"):
        node.body.pop()  # it returns None without that, too
    within = in_function or isinstance(node, ast.FunctionDef)
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _code(child, within)


@functools.cache
def _places() -> dict[tuple[str, str], tuple[Fault, ...]]:
    """Return all faults of each area and kind."""
    found: dict[tuple[str, str], tuple[Fault, ...]] = {}
    taken: set[str] = set()
    for area, names in AREAS.items():
        files = [file for name in names for file in sorted((ROOT / name).rglob("*.py")) or [ROOT / name]]
        for file in files:
            name = str(file.relative_to(ROOT))
            for fault in [] if name in taken else faults_in(name, file.read_bytes()):
                found[area, fault.kind] = (*found.get((area, fault.kind), ()), fault)
            taken.add(name)
    return found


def chosen(seed: int, count: int) -> list[Fault]:
    """Return the faults of a seed: areas and kinds by turns, each place of a kind as likely as another.

    Raises LookupError if there are not so many.
    """
    places = {turn: list(faults) for turn, faults in _places().items()}
    turns = itertools.cycle(itertools.product(AREAS, KINDS))
    chance, found = random.Random(seed), list[Fault]()
    for turn in itertools.islice(turns, count):
        if not places[turn]:
            raise LookupError(f"must be at most {len(found)}: no more faults of kind {turn[1]} in {turn[0]}")
        found.append(places[turn].pop(chance.randrange(len(places[turn]))))
    return found


def own_tests(file: str) -> Path:
    """Return the directory that mirrors a module's package, or the nearest above it that is there."""
    for source, mirror in MIRRORED.items():
        file = re.sub(rf"^{source}(?=/)", mirror, file)
    package = (UNIT / file).parent
    while not (ROOT / package).is_dir():
        package = package.parent
    return package


def copied(to: Path) -> Path:
    """Return a copy of the tree as it is, changes that are not committed included."""

    def git(*arguments: str, at: Path = to) -> str:
        return subprocess.run(["git", *arguments], cwd=at, check=True, capture_output=True, text=True).stdout

    git("clone", "-q", "--local", str(ROOT), str(to), at=ROOT)
    for name in git("ls-files", "-z", "-mo", "--exclude-standard", at=ROOT).split("\0")[:-1]:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy2(ROOT / name, to / name)
        elif not (ROOT / name).exists():
            (to / name).unlink()
    (to / ".venv").unlink(missing_ok=True)
    (to / ".venv").symlink_to(Path(sys.prefix).resolve())
    return to


class Tried(NamedTuple):
    """What became of a fault."""

    noticed_by: str  # a test, "(time limit)", or nothing
    seconds: float


def tried(fault: Fault, tree: Path, limit: float, own_alone: bool) -> Tried:
    """Make a fault in a copy, look who notices, and undo it."""
    begin, file, own = time.monotonic(), tree / fault.file, own_tests(fault.file)
    sound = file.read_bytes()
    nearest = own / f"test_{Path(fault.file).stem}.py"
    first = [nearest, own] if (tree / nearest).exists() else [own]
    passes = [[str(one)] for one in first] + [[str(UNIT), f"--ignore={own}"]] * (not own_alone)
    try:
        file.write_bytes(fault.made(sound))
        for tests in passes:
            name = _failing(tree, tests, limit)
            if name:
                file.write_bytes(sound)
                if name.startswith("(") or not _failing(tree, [name.partition("::")[0]], limit):
                    return Tried(name, time.monotonic() - begin)
                file.write_bytes(fault.made(sound))  # it fails by itself, and has noticed nothing
    finally:
        file.write_bytes(sound)
    return Tried("", time.monotonic() - begin)


def _failing(tree: Path, tests: Sequence[str], limit: float) -> str:
    """Return the first test that fails, "(time limit)", or nothing."""
    argv = [sys.executable, "-m", "pytest", "-qx", "--tb=no", "-rfE", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "400"}
    environment.pop("PYTHONPATH", None)
    with subprocess.Popen(
        argv, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as run:  # fmt: skip
        try:
            said, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return "(time limit)"
        finally:
            if run.poll() is None:
                os.killpg(run.pid, 9)
    if run.returncode in (0, 5):  # 5: there are no tests
        return ""
    match = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return match[1] if match else f"({said.strip().splitlines()[-1]})"


def options() -> argparse.ArgumentParser:
    """Return what can be asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="of what is chosen (default: 1)")
    parser.add_argument("--count", type=int, default=60, help="how many faults (default: 60)")
    parser.add_argument("--missed", type=int, default=10, help="how many may go unnoticed (default: 10)")
    parser.add_argument("--only", metavar="FROM-TO", default="", help="try a part of them, by their numbers")
    parser.add_argument("--own", action="store_true", help="ask the tests of the module's own package alone")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time (default: 1)")
    parser.add_argument(
        "--limit", type=float, default=900, help="seconds for one run of tests (default: 900)"
    )
    parser.add_argument("--list", action="store_true", help="name the faults, and try none")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Try, print, and return the exit status."""
    parser = options()
    asked = parser.parse_args(arguments)
    part = re.fullmatch(r"(\d+)-(\d+)", asked.only or f"1-{asked.count}")
    first, last = map(int, part.groups()) if part else (0, 0)
    if not 1 <= first <= last <= asked.count:
        parser.error(f"argument --only: must be FROM-TO, within 1-{asked.count}")
    if asked.jobs < 1:
        parser.error("argument --jobs: must be at least 1")
    try:
        numbered = list(enumerate(chosen(asked.seed, asked.count), 1))[first - 1 : last]
    except LookupError as error:
        parser.error(f"argument --count: {error.args[0]}")
    print(f"seed {asked.seed}, faults {first} to {last} of {asked.count}", flush=True)
    if asked.list:
        print(*(f"{number:3} {fault}" for number, fault in numbered), sep="\n")
        return 0
    missed = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as directory, ThreadPoolExecutor(asked.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(asked.jobs):
            trees.put(copied(Path(directory, str(number))))

        def one(fault: Fault) -> Tried:
            tree = trees.get()
            try:
                return tried(fault, tree, asked.limit, asked.own)
            finally:
                trees.put(tree)

        for (number, fault), done in zip(
            numbered, pool.map(one, [fault for _, fault in numbered]), strict=True
        ):
            missed += not done.noticed_by
            print(
                f"{number:3} {fault}\n    {done.noticed_by or 'NOT NOTICED'}, {done.seconds:.0f} s",
                flush=True,
            )
    print(f"noticed {len(numbered) - missed} of {len(numbered)}; {asked.missed} may be missed")
    return 1 if missed > asked.missed else 0


if __name__ == "__main__":
    sys.exit(main())
