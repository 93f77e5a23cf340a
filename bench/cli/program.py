"""Invoke as this program uses it: with a first page, help, words for mistakes and completion of its own.

Imports invoke and nothing heavier, for it is all that ``--list`` and a mistake in an option need.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import CommandTimedOut, Exit, ParseError, UnknownFileType
from invoke.parser.argument import Argument
from invoke.program import Program
from invoke.tasks import Task

from bench.cli import arguments, completion, exits, pages
from bench.cli.exits import INTERRUPTED, UNREAD, Line, status_of
from bench.cli.table import VERBS
from bench.console.statuses import BAD_INPUT, FAILED, HELD
from bench.console.verb import Option, Verb
from testbed import resources

NAME = Path(resources.PROGRAM).name

# The program's own short options. Invoke has more, which would take those of verbs for theirs.
SHORT = {"dry": "R", "help": "h", "list": "l", "version": "V"}

# Most of what is made lives as long as the process: modules, mainly. Looking for circles in it as often as
# Python does by itself, and once more at the end, took 0.2 s of a run.
OBJECTS_BETWEEN_COLLECTIONS = 100_000


def main() -> None:
    """Run the verb that the command line names. Does not return."""
    program = _Program(
        namespace=collected(VERBS.values()), binary=NAME, name=NAME, version=resources.version(),
        binary_names=["invoke", "inv", NAME, resources.PROGRAM],  # of which a shell completes the arguments
    )  # fmt: skip
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


def collected(verbs: Iterable[Verb]) -> Collection:
    """Return verbs as invoke wants them; ``kubernetes.get`` is, to it, ``get`` in a part ``kubernetes``.

    Where there are ``test`` and ``test.e2e``, the first is what the part does if nothing of it is named.
    """
    root, tasks = Collection(), [_Task(verb) for verb in verbs]
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


def _verb(name: str) -> Verb | None:
    return VERBS.get(name.removesuffix(".default"))  # as ``collected`` calls what a part does by itself


class _Task(Task[Callable[..., None]]):
    """A verb as invoke wants it, that is: a function with its arguments."""

    def __init__(self, verb: Verb) -> None:
        self._verb = verb
        super().__init__(partial(_perform, verb), name=verb.name, positional=[])
        self.__doc__ = verb.about

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """Return what takes the options, and first what takes the words that are needed."""
        return [_argument(option) for option in sorted(self._verb.options, key=lambda one: not one.place)]


def _argument(option: Option) -> Argument:
    names = (option.flag.removeprefix("--"), *option.short)
    default: Any = [] if option.kind is list else None if option.place else option.default
    other = option.name if option.name != names[0] else None
    return Argument(names=names, kind=option.kind, default=default, positional=option.place, attr_name=other)


def _perform(verb: Verb, context: Context, **given: Any) -> None:
    """Do what a verb does, and end as it ends."""
    if verb.runs_programs:
        _function(verb.function)(context, **given)
        return
    options: dict[str, Any] = {"name": verb.study} if verb.study else {}
    for option in verb.options:
        value = given[option.name]
        if not option.into:
            options[option.name] = value
        elif value not in (option.default, []):
            options.setdefault(option.into, {})[option.name] = value
    if verb.command:
        options["command"] = Line.command

    json = options.pop("json", None)

    def run() -> int:
        from bench.console import documents

        with documents.document(bool(json) and not Line.dry) as document:
            more: dict[str, Any] = {} if json is None else {"document": document}
            if Line.dry:
                more["dry"] = True
            return int(_function(verb.function)(**options, **more))

    exits.end_with_status(run, verb.plans)


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(f"bench.{module}"), function)
    return found


class _Program(Program):
    """Invoke, but a command line it cannot parse is bad input like any other."""

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
        at = arguments.verb_at(line, self.initial_context.flags)
        verb = _verb(line[at]) if at is not None else None
        if at is not None and verb is not None and arguments.HELP & set(line[:at]):
            line = ["--help", verb.name]
        elif at is not None and verb is not None:
            line = self._rewritten(line[:at], verb, line[at + 1 :])
        _, command = arguments.split(line)
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
        print(resources.as_typed(pages.front(NAME)))  # noqa: T201 (as invoke says things)

    def print_task_help(self, name: str) -> None:
        """Say what a verb does, what it takes, what that is without being said, and how it ends."""
        verb = _verb(name)
        assert verb is not None
        try:
            said = pages.verb(verb, NAME, settings=completion.settings)
        except LookupError as error:
            raise Exit(message=str(error), code=BAD_INPUT) from None
        print(resources.as_typed(said))  # noqa: T201

    def update_config(self, merge: bool = True) -> None:
        self._refusing(super().update_config, merge)

    def execute(self) -> None:
        if Line.dry:
            for context in self.tasks:
                verb = _verb(context.name or "")
                assert verb is not None
                print(resources.as_typed(pages.would(verb)))  # noqa: T201
        try:
            super().execute()
        except CommandTimedOut as error:
            raise Exit(message=str(error), code=FAILED) from None
        except KeyboardInterrupt:  # of which invoke would make status 1
            raise Exit(code=INTERRUPTED) from None

    def _rewritten(self, before: Sequence[str], verb: Verb, given: Sequence[str]) -> list[str]:
        """Return a line as invoke takes it; ``before`` is what stands before the verb."""
        if verb.command:
            given = arguments.with_command(given, verb, verb.command == "option")
        if arguments.HELP & set(arguments.split(given)[0]):
            return [*before, "--help", verb.name]  # first, lest invoke takes it for a word that is needed
        arguments.check_options(arguments.split(given)[0], verb)  # first, lest its value counts as a word
        given = arguments.places_first(given, verb)
        own, command = arguments.split(given)
        arguments.check_values(own, verb)
        if verb.alone:
            own = arguments.as_options(own, verb.alone, verb)
        rest = [arguments.DASHES, *command] if arguments.DASHES in given else []
        return [*before, verb.name, *own, *rest]

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
        if unknown is None:
            return str(error)
        word, _, _ = unknown[1].partition("=")
        verb = _verb(error.context.name or "") if error.context is not None else None
        if word.startswith("-"):
            near = arguments.meant(word, self.initial_context.flags)
            return f"no option {word} before a verb{near or '; those of a verb come after it'}"
        if verb is not None:
            return f"{verb.name}: unexpected argument {word!r}; {NAME} {verb.name} --help says what it takes"
        return f"no verb {word!r}{arguments.meant(word, VERBS)}"
