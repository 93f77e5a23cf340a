"""The command line's door: ``./invokew`` runs this file as a program, and any ``invoke`` finds it.

The verbs are in ``bench/cli/table.py``. An invoke does not get them, for it may be of any version, in a
Python that has none of our packages: when it asks for them it becomes ``./invokew`` with the same arguments.
Who merely imports this module gets nothing but the module.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

# By what an invoke finds this file; before a verb we have no short option but our own.
FINDING = {"-c": "--collection", "-r": "--search-root"}


def __getattr__(name: str) -> object:
    """Hand over to ``./invokew``; ``ns`` is what every invoke asks a module of tasks for, before all else."""
    if name == "ns":
        script = str(Path(__file__).resolve().with_name("invokew"))
        os.execv(script, [script, *_handed_over(sys.argv[1:])])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _handed_over(words: Sequence[str]) -> list[str]:
    """Return an invoke's command line with the long forms of the options by which it has found us."""
    line, rest = [], list(words)
    while rest and rest[0].startswith("-"):
        line.append(FINDING.get(rest[0], rest[0]))
        del rest[0]
        if line[-1] in FINDING.values():
            line += rest[:1]
            del rest[:1]
    return [*line, *rest]


def main() -> None:
    """Run the verb that the command line names. Does not return."""
    with _bugs_reported():
        if sys.argv[1:2] == ["--complete"]:  # a key was pressed: nothing more is imported
            from bench.cli import completion

            completion.main(sys.argv[1:])
            sys.exit()
        from bench.cli import program

        program.main()


@contextmanager
def _bugs_reported() -> Iterator[None]:
    """End the program with status 70 at an error that nobody foresaw, and say where it is told.

    It is a bug, and never a verdict nor the user's mistake. The standard library alone has a say here, for a
    missing package may be the error.
    """
    try:
        yield
    except Exception as error:
        from bench.console.statuses import BUG

        details = f"{sys.version}\n{shlex.join(sys.argv)}\n{''.join(traceback.format_exception(error))}"
        with suppress(OSError):  # the status is told even where nothing can be said
            # Its type alone: its words may be of any length, and hold what a terminal would obey.
            sys.stderr.write(f"this is a bug in the testbed ({type(error).__name__}): {_kept(details)}\n")
        sys.exit(BUG)


def _kept(details: str) -> str:
    """Write details to a file and return where that is; or return them, where none can be written."""
    try:
        descriptor, path = tempfile.mkstemp(prefix="concorde-testbed-bug-", suffix=".txt", text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(details)
    except OSError:
        return f"no file for the details can be written, so here they are\n{details}"
    return f"the details are in {path}"


if __name__ == "__main__":
    main()
