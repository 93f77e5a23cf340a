"""How commands end: every outcome has its exit status, and every error a message instead of a traceback.

0 held; 1 a guarantee was violated; 2 bad input, nothing was started; 3 the run is invalid and proves nothing;
4 it failed, because something could not be brought up; 5 something is worse than in the nights before;
128 + n ended by signal n. An error that is none of these is a bug: it goes on to where bugs are reported
(bugs.py).

Imports invoke and nothing heavier, for it is all that ``--list`` and a mistake in an option need.
"""

from __future__ import annotations

import functools
import gc
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import FrameType, ModuleType
from typing import Any, ParamSpec

from invoke.collection import Collection
from invoke.exceptions import CommandTimedOut, Exit, ParseError, UnknownFileType
from invoke.parser.argument import Argument
from invoke.program import Program
from invoke.tasks import Task

from bench.cli import extensions
from bench.cli.terminal import complain

P = ParamSpec("P")

# Most of what is made lives as long as the process: modules, mainly. Looking for circles in it as often as
# Python does by itself, and once more at the end, took 0.2 s of a run.
OBJECTS_BETWEEN_COLLECTIONS = 100_000

HELD, VIOLATED, BAD_INPUT, INVALID, FAILED, CHANGED = 0, 1, 2, 3, 4, 5
STATUS_OF_VERDICT = {"held": HELD, "violated": VIOLATED, "invalid": INVALID}
INTERRUPTED, UNREAD = 128 + signal.SIGINT, 128 + signal.SIGPIPE


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C: everything that was begun is taken down on the way out."""


def ends_with_status(command: Callable[P, int]) -> Callable[P, None]:
    """Make a function that returns an exit status into one that ends invoke with it, whatever happens."""

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        signal.signal(signal.SIGTERM, _go_down)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is for what runs in the background
            signal.signal(signal.SIGINT, _go_down)

        def extended() -> int:
            extensions.load()
            return command(*args, **kwargs)

        raise Exit(code=_status(extended))

    return wrapper


def worst(verdicts: Iterable[str]) -> int:
    """Return the exit status of several runs: that of the worst verdict."""
    statuses = {STATUS_OF_VERDICT[verdict] for verdict in verdicts}
    return next((bad for bad in (VIOLATED, INVALID) if bad in statuses), HELD)


def must(command: Callable[P, int], *args: P.args, **kwargs: P.kwargs) -> None:
    """Run a command that others build on: end as it does, unless it is done."""
    status = _status(functools.partial(command, *args, **kwargs))
    if status != HELD:
        raise Exit(code=status)


def _status(command: Callable[[], int]) -> int:
    def fail(words: object, status: int) -> int:
        with suppress(OSError):  # a status can be told where nothing can be said
            complain(str(words))
        return status

    try:
        return command()
    except (KeyError, IndexError, NotImplementedError, RecursionError):
        raise  # LookupErrors and RuntimeErrors too, but of ours and not of who gave the command
    except LookupError as error:
        words = error.args[0] if error.args else error
        return fail("\n".join([str(words), *getattr(error, "__notes__", ())]), BAD_INPUT)
    except Terminated:
        return fail("terminated; nothing is left running", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return fail("interrupted; nothing is left running", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # which rich makes of the former, with status 1
        return fail("nobody reads any more what is said", UNREAD)
    except (RuntimeError, OSError) as error:
        # Taking the testbed down may fail too, after what made it necessary.
        former = None if error.__suppress_context__ else error.__context__
        return fail(f"{former}\n{error}" if isinstance(former, RuntimeError) else error, FAILED)


def _go_down(number: int, _frame: FrameType | None) -> None:
    # Some send it twice, as timeout does, to a process and to its group, and as people do who are in a hurry:
    # that must not end the way down.
    signal.signal(number, lambda *_: None)  # ignored, it would be by what is started, too
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


class _Program(Program):
    """Invoke, but a command line it cannot parse is bad input like any other."""

    words: Mapping[str, str]  # see ``main``

    def core_args(self) -> list[Argument]:
        """Return invoke's own options, and those of an invoke that has found us by them and handed over."""
        return [*super().core_args(), *self.task_args()]

    def parse_core(self, argv: Sequence[str] | None) -> None:
        self._refusing(super().parse_core, argv)

    def parse_tasks(self) -> None:
        verb, *words = self.core.unparsed or [""]
        if verb in self.words and self.namespace is not None:
            self.core.unparsed = [verb, *as_options(words, self.words[verb], self.namespace[verb])]
        self._refusing(super().parse_tasks)

    def parse_cleanup(self) -> None:
        self._refusing(super().parse_cleanup)

    def update_config(self, merge: bool = True) -> None:
        self._refusing(super().update_config, merge)

    def execute(self) -> None:
        try:
            super().execute()
        except CommandTimedOut as error:
            raise Exit(message=str(error), code=FAILED) from None
        except KeyboardInterrupt:  # of which invoke would make status 1
            raise Exit(code=INTERRUPTED) from None

    @staticmethod
    def _refusing(parse: Callable[..., Any], *arguments: Any) -> None:
        try:
            parse(*arguments)
        except (ParseError, ValueError, UnknownFileType) as error:  # ValueError: --scale=many
            raise Exit(message=str(error), code=BAD_INPUT) from None
        except Exit as end:  # --list=nothing
            raise Exit(message=end.message, code=BAD_INPUT if end.code else 0) from None


def after_dashes() -> list[str]:
    """Return the words after a lone ``--``; invoke's own remainder has lost where each begins."""
    return sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []


def as_options(words: Sequence[str], option: str, task: Task[Any]) -> list[str]:
    """Return a task's words with those that stand alone as values of one of its options.

    To invoke every positional argument is a required one, and none can be repeated.
    """
    valued = {
        f"--{name.replace('_', '-')}" if len(name) > 1 else f"-{name}"
        for argument in task.get_arguments()
        if argument.takes_value
        for name in argument.names
    }
    found: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        alone = not word.startswith("-") and before not in valued
        found.append(f"--{option}={word}" if alone else word)
    return found


def main(tasks: ModuleType) -> None:
    """Run the tasks of a module as a program. Does not return.

    Its ``WORDS`` say for which verbs words alone mean an option, by verb: none is one, and many may be many.
    """
    program = _Program(
        namespace=collected(tasks), binary="invokew", name="invokew", version="0.1",
        binary_names=["invoke", "inv", "invokew", "./invokew"],  # of which a shell completes the arguments
    )  # fmt: skip

    program.words = tasks.WORDS
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)

    def run() -> int:
        try:
            program.run(sys.argv)
        except SystemExit as end:
            if sys.stdout is not None:
                sys.stdout.flush()  # when Python does it, at the very end, an error has a status of its own
            return int(end.code or 0)
        return HELD

    status = _status(run)
    gc.freeze()
    sys.exit(status)


def collected(tasks: ModuleType) -> Collection:
    """Return a module's tasks; ``kubernetes.get`` is, to invoke, ``get`` in a part ``kubernetes``.

    Where there are ``test`` and ``test.e2e``, the first is what the part does if nothing of it is named.
    """
    root = Collection()
    found = [task for task in vars(tasks).values() if isinstance(task, Task)]
    parts = {task.name.rpartition(".")[0] for task in found} - {""}
    for part in parts:
        root.add_collection(Collection(part))
    for task in found:
        part, _, name = task.name.rpartition(".")
        if name in parts:
            root.collections[name].add_task(task, name="default", default=True)
        else:
            (root.collections[part] if part else root).add_task(task, name=name)
    return root
