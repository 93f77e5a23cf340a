"""Invoke as this program uses it: with a first page, help, words for mistakes and completion of its own.

Imports invoke and nothing heavier, for it is all that ``--list`` and a mistake in an option need.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from invoke.collection import Collection
from invoke.exceptions import CommandTimedOut, Exit, ParseError, UnknownFileType
from invoke.parser.argument import Argument
from invoke.program import Program
from invoke.tasks import Task

from bench.cli import pages, words
from bench.cli.exits import BAD_INPUT, FAILED, HELD, INTERRUPTED, UNREAD, status_of
from bench.cli.groups import Verbs
from bench.cli.line import Line
from testbed import resources

NAME = Path(resources.PROGRAM).name

# The program's own short options. Invoke has more, which would take those of verbs for theirs.
SHORT = {"dry": "R", "help": "h", "list": "l", "version": "V"}

# Most of what is made lives as long as the process: modules, mainly. Looking for circles in it as often as
# Python does by itself, and once more at the end, took 0.2 s of a run.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main(verbs: Verbs) -> None:
    """Run the verb that the command line names. Does not return."""
    program = _Program(
        namespace=collected(verbs.tasks()), binary=NAME, name=NAME, version=resources.version(),
        binary_names=["invoke", "inv", NAME, resources.PROGRAM],  # of which a shell completes the arguments
    )  # fmt: skip
    program.verbs = Line.verbs = verbs
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)

    def run() -> int:
        try:
            program.run(sys.argv)
        except SystemExit as end:
            status = int(end.code or 0)
            if sys.stdout is not None and status not in (FAILED, UNREAD):
                sys.stdout.flush()  # when Python does it, at the very end, an error has a status of its own
            return status
        return HELD

    status = status_of(run)
    _drop_what_cannot_be_said()
    gc.freeze()
    sys.exit(status)


def _drop_what_cannot_be_said() -> None:
    """Keep Python from trying once more at its very end: it would end with status 120."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def collected(tasks: Sequence[Task[Any]]) -> Collection:
    """Return tasks as invoke wants them; ``kubernetes.get`` is, to it, ``get`` in a part ``kubernetes``.

    Where there are ``test`` and ``test.e2e``, the first is what the part does if nothing of it is named.
    """
    root = Collection()
    parts = {task.name.rpartition(".")[0] for task in tasks} - {""}
    for part in parts:
        root.add_collection(Collection(part))
    for task in tasks:
        part, _, name = task.name.rpartition(".")
        if name in parts:
            root.collections[name].add_task(task, name="default", default=True)
        else:
            (root.collections[part] if part else root).add_task(task, name=name)
    return root


class _Program(Program):
    """Invoke, but a command line it cannot parse is bad input like any other."""

    verbs: Verbs

    def core_args(self) -> list[Argument]:
        """Return invoke's own options, and those of an invoke that has found us by them and handed over."""
        known = [*super().core_args(), *self.task_args()]
        for argument in known:
            long = argument.names[0]
            argument.names = (long, SHORT[long]) if long in SHORT else (long,)
        return known

    def normalize_argv(self, argv: list[str] | None) -> None:
        """Take the line as it was typed: invoke's first look at it may take options of a command apart."""
        super().normalize_argv(argv)
        program, *line = self.argv
        if line[:1] == ["help"]:
            line = ["--help", *line[1:2]]
        at = words.verb_at(line, self.initial_context.flags)
        task = self._task(line[at]) if at is not None else None
        if at is not None and task is not None and words.HELP & set(line[:at]):
            line = ["--help", task.name]
        elif at is not None and task is not None:
            line = self._rewritten(line[:at], task, line[at + 1 :])
        _, command = words.split(line)
        Line.command = command
        self.argv = [program, *line]

    def parse_core(self, argv: list[str] | None) -> None:
        self._refusing(super().parse_core, argv)

    def parse_tasks(self) -> None:
        self._refusing(super().parse_tasks)

    def parse_cleanup(self) -> None:
        Line.dry = bool(self.args.dry.value)
        self._refusing(super().parse_cleanup)

    def print_help(self) -> None:
        """Say what this is and how to begin, and not which options a library has."""
        print(resources.as_typed(pages.front(self.verbs, NAME)))  # noqa: T201 (as invoke says things)

    def print_task_help(self, name: str) -> None:
        """Say what a verb does, what it takes, what that is without being said, and how it ends."""
        task = self._task(name)
        assert task is not None
        arguments = list(self.parser.contexts[name].args.values())
        print(resources.as_typed(pages.verb(task, arguments, self.verbs, NAME)))  # noqa: T201

    def update_config(self, merge: bool = True) -> None:
        self._refusing(super().update_config, merge)

    def execute(self) -> None:
        if Line.dry:
            for context in self.tasks:
                task = self._task(context.name or "")
                assert task is not None
                print(resources.as_typed(pages.would(task)))  # noqa: T201
        try:
            super().execute()
        except CommandTimedOut as error:
            raise Exit(message=str(error), code=FAILED) from None
        except KeyboardInterrupt:  # of which invoke would make status 1
            raise Exit(code=INTERRUPTED) from None

    def _task(self, name: str) -> Task[Any] | None:
        typed = name.removesuffix(".default")  # as ``collected`` calls what a part does by itself
        return next((task for task in self.verbs.tasks() if task.name == typed), None)

    def _rewritten(self, before: Sequence[str], task: Task[Any], given: Sequence[str]) -> list[str]:
        """Return a line as invoke takes it; ``before`` is what stands before the verb."""
        if task.name in self.verbs.commanding:
            given = words.with_command(given, task, self.verbs.commanding[task.name])
        if words.HELP & set(words.split(given)[0]):
            return [*before, "--help", task.name]  # first, lest invoke takes it for a word that is needed
        given = words.places_first(given, task)
        own, command = words.split(given)
        words.check_options(own, task)
        words.check_numbers(own, task)
        if (option := self.verbs.alone(task.name)) is not None:
            own = words.as_options(own, option, task)
        return [*before, task.name, *own, *([words.DASHES, *command] if words.DASHES in given else [])]

    def _refusing(self, parse: Callable[..., Any], *arguments: Any) -> None:
        try:
            parse(*arguments)
        except ParseError as error:
            raise Exit(message=self._explained(error), code=BAD_INPUT) from None
        except (ValueError, UnknownFileType) as error:
            raise Exit(message=str(error), code=BAD_INPUT) from None
        except Exit as end:  # --list=nothing
            raise Exit(message=end.message, code=BAD_INPUT if end.code else 0) from None

    def _explained(self, error: ParseError) -> str:
        """Return what could not be understood, with what comes nearest."""
        unknown = re.fullmatch(r"No idea what '(.*)' is!", str(error))
        lacking = re.fullmatch(r"Flag <Argument: ([\w-]+).*> needed value and was not given one!", str(error))
        if lacking is not None:
            return f"--{lacking[1]}: a value is missing"
        if unknown is None:
            return str(error)
        word, _, _ = unknown[1].partition("=")
        task = self._task(error.context.name or "") if error.context is not None else None
        if word.startswith("-"):
            near = words.meant(word, self.initial_context.flags)
            return f"no option {word} before a verb{near or '; those of a verb come after it'}"
        if task is not None:
            return f"{task.name}: {word!r} is one word too many; {NAME} {task.name} --help says what it takes"
        known = [one.name for one in self.verbs.tasks()]
        return f"no verb {word!r}{words.meant(word, known)}"
