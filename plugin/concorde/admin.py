"""The plugin as a program for people and installers: `concorde ledger` and its like."""

from __future__ import annotations

import os
import sys

from . import VERSION, names, tools
from .cni import INVALID_CONFIGURATION, UNDECODABLE, CniError, in_words, write
from .configuration import DEFAULT_STATE, node_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .node.ledger import Ledger

USAGE = """\
usage: concorde ledger [--json] [--state-dir DIR]   who was promised what on this node's uplink
       concorde reconcile [--state-dir DIR]         make the kernel's state what the ledger says
       concorde rebuild [--state-dir DIR] [--cache DIR ...]
                                                    make stores and ledger again: from the kernel, and from
                                                    what runtimes keep of attachments (/var/lib/cni/results)
       concorde --version
       concorde examine <CONFLIST                   what this node lacks for pods of a network
       concorde dismantle <CONFLIST                 remove what a network without pods left on this node
As a CNI plugin it takes no arguments; a runtime calls it with CNI_COMMAND in the environment.
"""


REFUSED, BAD_INPUT, FAILED = 1, 2, 4
OF_CONFLISTS = ("examine", "dismantle")


class UsageError(Exception):
    """A command line that says nothing this program knows."""


class RefusalError(Exception):
    """The node is not as it would have to be; the message has a line for each thing."""


def main(arguments: list[str]) -> int:
    """Run a command, and return its exit status.

    0 done; 1 a look was taken, and the node is not as it would have to be; 2 bad input; 4 it failed.
    """
    if arguments in (["--help"], ["-h"], ["help"]):
        return _said(0, USAGE)
    if arguments == ["--version"]:
        return _said(0, f"concorde {VERSION}\n")
    try:
        caches, rest = split(arguments)
        command, as_json, state = parse(rest)
    except UsageError as error:
        return _said(BAD_INPUT, f"concorde: {error}\n{USAGE}")
    try:
        if command in OF_CONFLISTS:
            answer = _examine() if command == "examine" else _dismantle()
        elif command == "rebuild":
            answer = _rebuild(state, caches)
        else:
            answer = _ledger(state, as_json) if command == "ledger" else _reconcile(state)
    except OSError as error:
        return _said(FAILED, f"concorde: {in_words(error)}\n")
    except RefusalError as error:
        return _said(REFUSED, f"concorde: {error}\n")
    except CniError as error:
        given = error.code in (UNDECODABLE, INVALID_CONFIGURATION)
        return _said(BAD_INPUT if given else FAILED, f"concorde: {error}\n")
    except tools.CommandError as error:
        return _said(FAILED, f"concorde: {error}\n")
    return _said(0, answer)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The caches that `rebuild` is to read, and the other arguments. Raises UsageError."""
    if arguments[0] != "rebuild":
        return [], arguments
    caches, others = [], []
    left = list(arguments)
    while left:
        argument = left.pop(0)
        name, equals, value = argument.partition("=")
        if name != "--cache":
            others.append(argument)
            continue
        if not equals and not left:
            raise UsageError(f"{argument!r} lacks its value")
        caches.append(value if equals else left.pop(0))
        if not names.is_path(caches[-1]):
            raise UsageError(f"{caches[-1]!r} is not a plain absolute path")
    return caches, others


def parse(arguments: list[str]) -> tuple[str, bool, str]:
    """Command, whether JSON is wanted, and the state directory. Raises UsageError."""
    command, *rest = arguments
    if command not in ("ledger", "reconcile", "rebuild", *OF_CONFLISTS):
        raise UsageError(f"{command!r} is no command")
    as_json, state = False, DEFAULT_STATE
    while rest:
        option = rest.pop(0)
        name, equals, value = option.partition("=")
        if option == "--json" and command == "ledger":
            as_json = True
        elif name == "--state-dir" and (equals or rest) and command not in OF_CONFLISTS:
            state = value if equals else rest.pop(0)
        else:
            raise UsageError(f"{option!r} is no option of {command}, or lacks its value")
    if not names.is_path(state):
        raise UsageError(f"{state!r} is not a plain absolute path")
    return command, as_json, state


def _ledger(state: str, as_json: bool) -> str:
    from .node import observe, report

    book = _open(state)
    if book is None:
        return report.as_json(None, [], {}) if as_json else report.NOTHING
    with book:  # one moment's tree and entries
        tree, entries = book.tree(), book.entries()
    dropped = report.dropped(entries, observe.counters()) if entries else {}
    written = report.as_json if as_json else report.as_table
    return written(tree, entries, dropped)


def _reconcile(state: str) -> str:
    from . import enforcements
    from .locks import NodeLock
    from .node import attachments, kernel, ledger, report
    from .store import stores

    directory = node_directory(state)
    if not os.path.exists(ledger.path(directory)) and not (os.path.isdir(state) and stores(state)):
        return report.NOTHING
    with NodeLock(directory):
        book = ledger.Ledger(directory)
        attachments.adopt(book, directory, enforcements.reserves)
        tree, entries = book.tree(), book.entries()
        if tree is None and not entries:
            return report.NOTHING
        repaired = kernel.repair(tree, entries)
    if not repaired:
        return "nothing to repair\n"
    return "".join(f"repaired: {text}\n" for text in repaired)


def _rebuild(state: str, caches: list[str]) -> str:
    from . import cache, rebuild

    said = rebuild.rebuild(state, caches or [cache.DEFAULT])
    return "".join(f"{line}\n" for line in said) or "nothing to rebuild\n"


def _examine() -> str:
    from . import installation, requests, strict_json

    directory = os.path.dirname(os.path.realpath(sys.argv[0]))
    found = installation.lacking(strict_json.decode(requests.read_input()), directory)
    if found:
        raise RefusalError("\nconcorde: ".join(found))
    return "nothing is lacking\n"


def _dismantle() -> str:
    from . import installation, requests, strict_json

    try:
        removed = installation.dismantle(strict_json.decode(requests.read_input()))
    except (installation.InUseError, installation.NotOursError) as error:
        raise RefusalError(str(error)) from error
    return "".join(f"removed: {text}\n" for text in removed) or "nothing to remove\n"


def _open(state: str) -> Ledger | None:
    from .node import ledger

    return ledger.opened(node_directory(state))


def _said(status: int, text: str) -> int:
    """Say it, errors on standard error, and return the status; 4 if nobody could hear an answer."""
    # Not by sys.stdout, which is None where it is closed.
    try:
        write(1 if status == 0 else 2, text.encode(errors="replace"))
    except OSError as error:
        return _said(FAILED, f"concorde: standard output: {error.strerror}\n") if status == 0 else status
    return status
