"""The command line's door: ``./invokew`` runs this file as a program, and any ``invoke`` finds it.

The verbs are in ``bench/cli/table.py``. An invoke does not get them, for it may be of any version, in a
Python that has none of our packages: when it asks for them it becomes ``./invokew`` with the same arguments.
Who merely imports this module gets nothing but the module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
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
    from bench.cli import bugs

    with bugs.reported():
        if sys.argv[1:2] == ["--complete"]:  # a key was pressed: nothing more is imported
            from bench.cli import completion

            completion.main(sys.argv[1:])
            sys.exit()
        from bench.cli import program

        program.main()


if __name__ == "__main__":
    main()
