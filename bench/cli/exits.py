"""How commands end: every outcome has its exit status, and every error a message instead of a traceback.

An error that no status is for (statuses.py) is a bug: it goes on to where bugs are reported (tasks.py).

Imports invoke and nothing heavier, for it is all that ``--list`` and a mistake in an option need.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import NoReturn, ParamSpec

from invoke.exceptions import Exit

from bench.console.messages import complain, say
from bench.console.statuses import BAD_INPUT, FAILED, HELD
from testbed import registry

P = ParamSpec("P")

INTERRUPTED, UNREAD = 128 + signal.SIGINT, 128 + signal.SIGPIPE


class Line:
    """What the command line asks of the program as a whole; set once, before a verb is run."""

    dry = False  # --dry: nothing is to be done, but what would be may be said
    command: Sequence[str] = ()  # what a verb is to run somewhere, as exec does: word by word


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C: everything that was begun is taken down on the way out."""


def end_with_status(command: Callable[[], int], plans: bool = False) -> NoReturn:
    """End invoke with the exit status that a command returns, whatever happens in it.

    With ``--dry`` nothing is done; a command is called then only if it ``plans``, and says what would be.
    """
    signal.signal(signal.SIGTERM, _go_down)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is for what runs in the background
        signal.signal(signal.SIGINT, _go_down)

    def extended() -> int:
        registry.load()
        status = command() if plans or not Line.dry else HELD
        if Line.dry and status == HELD:
            say("--dry: nothing was done")
        return status

    raise Exit(code=status_of(extended))


def must(command: Callable[P, int], *args: P.args, **kwargs: P.kwargs) -> None:
    """Run a command that others build on: end as it does, unless it is done."""
    status = HELD if Line.dry else status_of(functools.partial(command, *args, **kwargs))
    if status != HELD:
        raise Exit(code=status)


def status_of(command: Callable[[], int]) -> int:
    """Return the exit status of a command, whatever happens in it, and say what went wrong."""

    def fail(message: object, status: int) -> int:
        with suppress(OSError):  # a status can be told where nothing can be said
            complain(str(message))
        return status

    try:
        return command()
    except (KeyError, IndexError, NotImplementedError, RecursionError):
        raise  # LookupErrors and RuntimeErrors too, but of ours and not of who gave the command
    except LookupError as error:
        message = error.args[0] if error.args else error
        return fail("\n".join([str(message), *getattr(error, "__notes__", ())]), BAD_INPUT)
    except Terminated:
        return fail("terminated; nothing is left running", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return fail("interrupted; nothing is left running", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # which rich makes of the former, with status 1
        return fail("the output is no longer read", UNREAD)
    except (RuntimeError, OSError) as error:
        # Taking the testbed down may fail too, after what made it necessary.
        former = None if error.__suppress_context__ else error.__context__
        return fail(f"{former}\n{error}" if isinstance(former, RuntimeError) else error, FAILED)


def _go_down(number: int, _frame: FrameType | None) -> None:
    # Some send it twice, as timeout does, to a process and to its group, and as people do who are in a hurry:
    # that must not end the way down.
    signal.signal(number, lambda *_: None)  # ignored, it would be by what is started, too
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt
