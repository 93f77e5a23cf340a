"""The plugin as a program for people and installers: `concorde ledger` and its like."""

from __future__ import annotations

import os
import sys

from . import VERSION, names, tools
from .cni import INVALID_CONFIGURATION, NO_BANDWIDTH, UNDECODABLE, CniError, in_words, write
from .configuration import DEFAULT_STATE, node_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .changes import Wanted

USAGE = """\
usage: concorde ledger [--json] [--state-dir DIR]   who was promised what on this node's uplinks
       concorde metrics [--output FILE] [--state-dir DIR]
                                                    promises and classes' counters as OpenMetrics
                                                    text; FILE is replaced at once
       concorde reconcile [--state-dir DIR]         make the kernel's state what the ledger says
       concorde rebuild [--state-dir DIR] [--cache DIR ...]
                                                    make the ledger again: from the kernel, and from
                                                    what runtimes keep of attachments (/var/lib/cni/results,
                                                    /run/concorde-networks/attached)
       concorde change POD {egress,ingress}-guarantee[.INTERFACE]=RATE ...
                       [--state-dir DIR] [--cache DIR ...]
                                                    promise a pod that runs something else, all of it
                                                    at once or nothing; without RATE as without
                                                    annotation; POD is namespace/name, or its container's id
       concorde --version
       concorde examine <CONFLIST                   what this node lacks for pods of a network
       concorde chain <NETWORKS                     another's list with ours behind: of an object whose
                                                    `network` is that list, and `behind` is ours
       concorde renew <CONFLIST                     give pods that run what this version gives them
       concorde dismantle <CONFLIST                 remove what a network without pods left on this node
       concorde agent [--listen ADDRESS:PORT] [--every SECONDS] [--account DIR] [--key FILE]
                      [--record FILE] [--node NAME] [--cache DIR ...] <CONFLIST
                                                    stay, repair what differs from the ledger, serve metrics,
                                                    tell the cluster of pods that were refused, change what
                                                    annotations of the cluster's node NAME say, and with the
                                                    cluster's key grant other nodes what they may send
As a CNI plugin it takes no arguments; a runtime calls it with CNI_COMMAND in the environment.
"""


REFUSED, BAD_INPUT, FAILED = 1, 2, 4
_MOST_SECONDS = 3600  # between two looks of an agent


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
        asked = parse(arguments)
    except UsageError as error:
        return _said(BAD_INPUT, f"concorde: {error}\n{USAGE}")
    run, _ = _COMMANDS[asked.command]
    try:
        answer = run(asked)
    except RefusalError as error:
        return _said(REFUSED, f"concorde: {error}\n")
    except (CniError, OSError, tools.CommandError) as error:
        given = isinstance(error, CniError) and error.code in (UNDECODABLE, INVALID_CONFIGURATION)
        return _said(BAD_INPUT if given else FAILED, f"concorde: {in_words(error)}\n")
    return _said(0, answer)


class Asked:
    """A command and its options: whether JSON is wanted, and paths, of which `caches` may be several."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.as_json = False
        self.state = DEFAULT_STATE
        self.caches: list[str] = []
        self.wanted: Wanted | None = None
        self.output = ""
        self.listen: tuple[str, int] | None = None
        self.every = 60.0  # seconds
        self.account = self.key = self.record = self.node = ""


def parse(arguments: list[str]) -> Asked:
    """What a command line asks for. Raises UsageError."""
    asked, left = Asked(arguments[0]), arguments[1:]
    if asked.command not in _COMMANDS:
        raise UsageError(f"unknown command {asked.command!r}")
    _, options = _COMMANDS[asked.command]
    if asked.command == "change":
        given = next((at for at, word in enumerate(left) if word.startswith("--")), len(left))
        asked.wanted, left = _wanted(left[:given]), left[given:]
    while left:
        option = left.pop(0)
        name, equals, value = option.partition("=")
        if name not in options or (name == "--json" and equals):
            raise UsageError(f"unknown option {option!r} of {asked.command}")
        if name == "--json":
            asked.as_json = True
            continue
        if not equals and not left:
            raise UsageError(f"option {option!r} requires a value")
        _set(asked, name, value if equals else left.pop(0))
    return asked


def _wanted(given: list[str]) -> Wanted:
    from . import changes

    if len(given) < 2:
        raise UsageError(f"change requires a pod and {changes.EXAMPLE}")
    try:
        return changes.Wanted(given[0], given[1:])
    except ValueError as error:
        raise UsageError(str(error)) from None


def _set(asked: Asked, option: str, value: str) -> None:
    if option == "--listen":
        asked.listen = _place(value)
        return
    if option == "--every":
        if not value.isdecimal() or not 0 < int(value) <= _MOST_SECONDS:
            raise UsageError(f"--every must be an integer from 1 to {_MOST_SECONDS} (seconds), not {value!r}")
        asked.every = int(value)
        return
    if option == "--node":
        if not names.is_identifier(value):
            raise UsageError(f"{value!r} is not a node's name")
        asked.node = value
        return
    if not names.is_path(value):
        raise UsageError(f"{value!r} is not a plain absolute path")
    if option == "--cache":
        asked.caches.append(value)
    elif option == "--output":
        asked.output = value
    elif option in ("--account", "--key", "--record"):
        setattr(asked, option[2:], value)
    else:
        asked.state = value


def _place(text: str) -> tuple[str, int]:
    from . import exporter

    try:
        return exporter.place(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is not an address and port of this node, such as {exporter.USUAL}"
        ) from None


def _ledger(asked: Asked) -> str:
    from .node import attachments, ledger, report

    attachments.take_over(asked.state)
    book = ledger.opened(node_directory(asked.state))
    if book is None:
        return report.as_json([], [], {}) if asked.as_json else report.NOTHING
    with book:  # one moment's trees and entries
        trees, entries = book.trees(), book.entries()
    dropped = report.dropped(entries)
    written = report.as_json if asked.as_json else report.as_table
    return written(trees, entries, dropped)


def _metrics(asked: Asked) -> str:
    from . import files, metrics

    text = metrics.collect(asked.state)
    if not asked.output:
        return text
    files.replace(asked.output, text.encode())
    return ""


def _reconcile(asked: Asked) -> str:
    from . import agent
    from .node import report

    repaired = agent.repair(asked.state)
    return report.NOTHING if repaired is None else _repaired(repaired)


def _repaired(words: list[str]) -> str:
    return "".join(f"repaired: {text}\n" for text in words) or "nothing to repair\n"


def _rebuild(asked: Asked) -> str:
    from . import cache, rebuild

    said = rebuild.rebuild(asked.state, asked.caches or cache.usual())
    return "".join(f"{line}\n" for line in said) or "nothing to rebuild\n"


def _change(asked: Asked) -> str:
    from . import cache, changes

    assert asked.wanted is not None
    try:
        return changes.change(asked.state, asked.caches or cache.usual(), asked.wanted)
    except CniError as error:
        if error.code != NO_BANDWIDTH:
            raise
        raise RefusalError(error.msg) from error


def _examine(_asked: Asked) -> str:
    from . import installation

    directory, network = os.path.dirname(os.path.realpath(sys.argv[0])), _given()
    found = installation.lacking(network, directory)
    if found:
        raise RefusalError("\nconcorde: ".join(found))
    # What pods do without: a node is not to be without pods for that.
    notes = installation.notes(network)
    return "nothing is lacking\n" + "".join(f"note: {words}\n" for words in notes)


def _chain(_asked: Asked) -> str:
    import json

    from . import installation
    from .configuration import table

    given = _given()
    lists = [table(given, key) or {} for key in ("network", "behind")]
    return json.dumps(installation.chained(*lists), indent=2) + "\n"


def _renew(_asked: Asked) -> str:
    from . import agent, installation

    states = dict.fromkeys(network.state for network in installation.identities(_given()))
    return _repaired([text for state in states for text in agent.repair(state) or ()])


def _dismantle(_asked: Asked) -> str:
    from . import installation

    try:
        removed = installation.dismantle(_given())
    except (installation.InUseError, installation.NotOursError) as error:
        raise RefusalError(str(error)) from error
    return "".join(f"removed: {text}\n" for text in removed) or "nothing to remove\n"


def _agent(asked: Asked) -> str:
    from . import agent, installation, refusals

    networks = installation.identities(_given())
    account = asked.account or refusals.ACCOUNT
    watched = (asked.node, asked.caches) if asked.node else None
    agent.Agent(networks, asked.listen, asked.every, account, asked.key, asked.record, watched).run()
    return ""


def _given() -> dict[str, Any]:
    """The object on standard input. Raises CniError 5 and 6."""
    from . import requests, strict_json

    return strict_json.decode(requests.read_input())


# Options but --json have a value, which is a path unless _set() says otherwise.
_COMMANDS: dict[str, tuple[Callable[[Asked], str], tuple[str, ...]]] = {
    "ledger": (_ledger, ("--json", "--state-dir")),
    "metrics": (_metrics, ("--output", "--state-dir")),
    "reconcile": (_reconcile, ("--state-dir",)),
    "rebuild": (_rebuild, ("--cache", "--state-dir")),
    "change": (_change, ("--cache", "--state-dir")),
    "examine": (_examine, ()),
    "chain": (_chain, ()),
    "renew": (_renew, ()),
    "dismantle": (_dismantle, ()),
    "agent": (_agent, ("--listen", "--every", "--account", "--key", "--record", "--node", "--cache")),
}


def _said(status: int, text: str) -> int:
    """Say it, errors on standard error, and return the status; 4 if nobody could hear an answer."""
    # Not by sys.stdout, which is None where it is closed.
    try:
        write(1 if status == 0 else 2, text.encode(errors="replace"))
    except OSError as error:
        return _said(FAILED, f"concorde: standard output: {error.strerror}\n") if status == 0 else status
    return status
