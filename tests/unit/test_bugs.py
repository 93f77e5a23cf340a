"""Errors that nobody foresaw, wherever they come up: real programs are run, and their ends looked at."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

Done = subprocess.CompletedProcess[str]
Ends = dict[str, tuple[Done, Path]]

KINDS = [
    "KeyError('kubernetes')",
    "IndexError(1)",
    "TypeError('a\\nb\\x1b[31m')",
    "AttributeError()",
    "AssertionError()",
    "ValueError('x')",
    "NotImplementedError()",
    "RecursionError()",
    "MemoryError()",
    "ModuleNotFoundError('rich')",
]
FORESEEN = {
    "OSError(28, 'No space left on device')": 4,
    "RuntimeError('down')": 4,
    "LookupError('no such pod')": 2,
    "KeyboardInterrupt()": 130,
    "BrokenPipeError()": 141,
}
# The verb `status`, but what it does is an error.
IN_A_VERB = """
import tasks
from bench.cli.verbs import testbeds
def fail(**_): raise {error}
testbeds.show_status = fail
tasks.main()
"""
# The same with each error, in a process of its own that has all imports already.
IN_VERBS = """
import os, sys, tasks
from bench.cli import program
from bench.cli.verbs import testbeds
def fail(**_): raise eval(error)
testbeds.show_status = fail
place, *errors = sys.argv.pop(), *{errors!r}
for number, error in enumerate(errors):
    child = os.fork()
    if child == 0:
        os.environ["TMPDIR"] = f"{{place}}/{{number}}"
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{{place}}/{{number}}.{{name}}", os.O_WRONLY | os.O_CREAT), stream)
        tasks.main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# The verbs themselves cannot be had, as where a package is missing.
BEFORE_ANY_VERB = """
import sys, tasks
sys.modules["invoke"] = None
tasks.main()
"""
PARSING = """
import tasks
from invoke.program import Program
def fail(*_): raise {error}
Program.parse_collection = fail
tasks.main()
"""


def run(program: str, tmp_path: Path, *arguments: str) -> Done:
    return subprocess.run(
        [sys.executable, "-c", program, "status", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Ends:
    """How the verb ends by each error, and the directory that was its own for temporary files."""
    place = tmp_path_factory.mktemp("ends")
    errors = [*KINDS, *FORESEEN]
    for number in range(len(errors)):
        (place / str(number)).mkdir()
    done = run(IN_VERBS.format(errors=errors), place, str(place))
    assert done.returncode == 0, done.stderr
    found = {}
    for number, (error, status) in enumerate(zip(errors, done.stdout.split(), strict=True)):
        out, err = ((place / f"{number}.{name}").read_text(encoding="utf-8") for name in ("out", "err"))
        found[error] = subprocess.CompletedProcess(error, int(status), out, err), place / str(number)
    return found


def details(done: Done, directory: Path) -> str:
    """What is in the file that the one line names."""
    assert done.returncode == 70, done.stderr
    assert done.stdout == ""
    words = re.fullmatch(r"this is a bug in the testbed \(\w+\): the details are in (.*)\n", done.stderr)
    assert words, done.stderr
    assert [Path(words[1])] == list(directory.iterdir())
    return Path(words[1]).read_text(encoding="utf-8")


@pytest.mark.parametrize("error", KINDS)
@pytest.mark.long(one_in=4)
def test_a_bug_in_a_verb_is_no_verdict(error: str, ends: Ends) -> None:
    told = details(*ends[error])
    assert error.partition("(")[0] in told
    assert "Traceback (most recent call last):" in told
    assert "in fail" in told
    assert "status" in told.splitlines()[1]  # the command line


def test_so_is_one_before_any_verb(tmp_path: Path) -> None:
    assert "ModuleNotFoundError" in details(run(BEFORE_ANY_VERB, tmp_path), tmp_path)


def test_so_is_one_while_the_command_line_is_read(tmp_path: Path) -> None:
    assert "KeyError: 'a'" in details(run(PARSING.format(error="KeyError('a')"), tmp_path), tmp_path)


def test_where_no_file_can_be_written_the_details_are_said(tmp_path: Path) -> None:
    program = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    done = run(program + IN_A_VERB.format(error="KeyError('a')"), tmp_path)
    assert done.returncode == 70
    assert done.stderr.startswith("this is a bug in the testbed (KeyError): no file")
    assert "KeyError: 'a'" in done.stderr


@pytest.mark.parametrize(("error", "status"), FORESEEN.items())
def test_an_error_that_is_foreseen_is_none(error: str, status: int, ends: Ends) -> None:
    done, directory = ends[error]
    assert done.returncode == status
    assert "bug" not in done.stderr
    assert list(directory.iterdir()) == []
