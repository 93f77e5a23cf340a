"""What one run has made on one machine, written there before the first of it is made.

A run's ledger lies in the run's own directory on the machine, beside what was copied there. ``/var/lib``,
because ``/run`` is often mounted so that no program in it can be started, and because a machine that was
restarted has lost everything in a ledger but these files. Nothing but what is in a ledger is ever removed.
"""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testbed.access.place import CommandError, Node, Result
from testbed.providers.ssh.node import MARK, mark
from testbed.runtime.cni import Attachment, CniError, NetworkList, Runtime
from testbed.scenario.addressing import NAMESPACES
from testbed.scenario.descriptions import StateDirectory


class _Artefact(BaseModel):
    """A kind of thing that a testbed makes on a machine; as text it is what people know it by."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    shown: ClassVar[str]

    def __str__(self) -> str:
        return self.shown.format_map(dict(self))


class Link(_Artefact):
    """A network interface; its other end, and what is routed over it, go with it."""

    kind: Literal["link"] = "link"
    name: str
    shown: ClassVar[str] = "interface {name}"


class Namespace(_Artefact):
    """A named network namespace: a pod or a container."""

    kind: Literal["namespace"] = "namespace"
    name: str
    shown: ClassVar[str] = "network namespace {name}"


class Attached(_Artefact):
    """A pod's attachment to its network, which the CNI plugins undo: leases, classes, devices."""

    kind: Literal["attachment"] = "attachment"
    network: dict[str, Any]  # of testbed.runtime.cni.NetworkList
    attachment: dict[str, Any]  # of testbed.runtime.cni.Attachment
    directories: list[str]
    shown: ClassVar[str] = "attachment of {attachment[container_id]}"


class Table(_Artefact):
    """An nftables table."""

    kind: Literal["table"] = "table"
    family: str
    name: str
    shown: ClassVar[str] = "nftables table {family} {name}"


class Tree(_Artefact):
    """What shapes an interface of the machine's own; without it the kernel's default is back."""

    kind: Literal["tree"] = "tree"
    interface: str
    shown: ClassVar[str] = "root qdisc of {interface}"


class Routes(_Artefact):
    """Routes by an interface of the machine's own into a network that had none."""

    kind: Literal["routes"] = "routes"
    network: str
    interface: str
    shown: ClassVar[str] = "routes into {network} by {interface}"


class Setting(_Artefact):
    """A kernel setting, to be given back its former value unless somebody else has changed it since."""

    kind: Literal["setting"] = "setting"
    path: str
    value: str
    former: str
    shown: ClassVar[str] = "{path} = {value} (was {former})"


class File(_Artefact):
    """A file."""

    kind: Literal["file"] = "file"
    path: str
    shown: ClassVar[str] = "{path}"


class State(_Artefact):
    """A directory in which CNI plugins keep their state, with all in it."""

    kind: Literal["state"] = "state"
    path: StateDirectory
    shown: ClassVar[str] = "{path}"


class Directory(_Artefact):
    """A directory that was not there; it stays if somebody else has put something into it."""

    kind: Literal["directory"] = "directory"
    path: str
    shown: ClassVar[str] = "{path}"


class Mount(_Artefact):
    """The mount that ``ip netns`` makes of its directory at first; it stays as long as that is used."""

    kind: Literal["mount"] = "mount"
    path: str
    shown: ClassVar[str] = "mount {path}"


Artefact = Link | Namespace | Attached | Table | Tree | Routes | Setting | File | State | Directory | Mount


ROOT = "/var/lib/concorde-testbed"
BOOT = "/proc/sys/kernel/random/boot_id"
RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")

# Arguments: the run's directory, and who may put files into it. A ledger is there whole or not at all.
WRITE = """
umask 022
mkdir -p "$1" && mkdir "$1/incoming" && chown "$2" "$1/incoming" || exit
cat >"$1/ledger.new" && sync "$1/ledger.new" && mv "$1/ledger.new" "$1/ledger"
"""
# Prints, for each run's directory below its argument, a line with its name and one with its ledger.
READ = """
cd "$1" 2>/dev/null || exit 0
for run in *; do
    [ -d "$run" ] || continue
    echo "$run"
    cat "$run/ledger" 2>/dev/null || echo
done
"""
DROP = 'rm -rf "$1/$2" && rmdir --ignore-fail-on-non-empty "$1"'
# Kills every process with its argument in the environment it was started with; again, for some beget others.
KILL = """
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    found=$(grep -lszxF -e "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || exit 0
    for file in $found; do
        pid=${file#/proc/}
        kill -KILL "${pid%/environ}" 2>/dev/null
    done
    sleep 0.05
done
echo "processes do not end: $found" >&2
exit 1
"""


class Ledger(BaseModel):
    """One run's ledger on one machine."""

    model_config = ConfigDict(extra="forbid")

    run: str
    node: str
    by: str  # whose run it is
    since: str  # UTC, ISO 8601
    boot: str  # when the machine was started last, by its own identifier for that
    things: list[Artefact] = Field(default=[])

    @property
    def title(self) -> str:
        """What people know the run by."""
        return f"run {self.run} of {self.by}, since {self.since}"


def open_ledger(node: Node, run: str, user: str, things: Sequence[Artefact]) -> Ledger:
    """Write a new ledger; from then on things may be made. Raises CommandError."""
    ledger = Ledger(
        run=run,
        node=node.name,
        by=f"{getpass.getuser()}@{socket.gethostname()}",
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        boot=_boot(node),
        things=list(things),
    )
    text = ledger.model_dump_json() + "\n"
    node.run(["sh", "-c", WRITE, "sh", directory(run), user], stdin=text)
    return ledger


def directory(run: str) -> str:
    """Return the directory of a run on every machine."""
    return f"{ROOT}/{run}"


def ledgers(node: Node) -> list[Ledger]:
    """Return every ledger on a machine; a run that got no further than its directory has an empty one."""
    lines = node.run(["sh", "-c", READ, "sh", ROOT]).stdout.splitlines()
    return [_parse(node, run, text) for run, text in zip(lines[::2], lines[1::2], strict=True)]


def undo(node: Node, ledger: Ledger) -> list[str]:
    """Take away what is in a ledger, then the ledger; return in words what could not be taken away.

    The run's processes come first. Raises CommandError when the machine does not answer.
    """
    faults: list[str] = []
    kill(node, mark(ledger.run, ledger.node))
    # A machine that was restarted since has lost it all; what has these names now is somebody else's.
    for thing in reversed(ledger.things) if ledger.boot == _boot(node) else ():
        try:
            remove(node, thing)
        except CommandError as error:
            if not isinstance(error.status, int):
                raise
            faults.append(f"{thing}: {error}")
    if not faults:
        node.run(["sh", "-c", DROP, "sh", ROOT, ledger.run])
    return faults


def kill(node: Node, marked: str) -> None:
    """Kill the processes that were started with a mark in their environment. Raises CommandError."""
    node.run(["sh", "-c", KILL, "sh", f"{MARK}={marked}"], env={MARK: "undo"})


def _parse(node: Node, run: str, text: str) -> Ledger:
    if not RUN.fullmatch(run):
        raise CommandError(node.name, ["ls", ROOT], "an error", f"{run!r} is not a run of a testbed")
    if not text:
        return Ledger(run=run, node=node.name, by="unknown", since="unknown", boot="unknown")
    try:
        return Ledger.model_validate_json(text)
    except ValidationError as error:
        message = f"{directory(run)}/ledger cannot be read: {error}"
        raise CommandError(node.name, ["cat", f"{directory(run)}/ledger"], "an error", message) from None


def _boot(node: Node) -> str:
    return node.run(["cat", BOOT]).stdout.strip()


# Whether something is mounted at a path, as one gets there: the kernel has the mount's number for every
# open file (proc(5), /proc/pid/fdinfo). ``mountpoint`` looks paths up in the table of mounts, where what a
# later mount hides still stands. In a process of its own, for a mount on which something is open is in use.
MOUNTED = """(
    number() { grep mnt_id "/proc/self/fdinfo/$1"; }
    exec 3<"$1" 4<"$1/.." && [ "$(number 3)" != "$(number 4)" ]
)"""
# Arguments: the setting, what it was set to, what it was. To take away what is gone already is no fault: a
# crash may have come before it was made, and somebody may have done it by hand.
RESTORE = '[ "$(cat "$1")" != "$2" ] || printf "%s\\n" "$3" >"$1"'
UNMOUNT = f'[ ! -d "$1" ] || ! {MOUNTED} || [ -n "$(ls -A "$1")" ] || umount "$1"'
REMOVE_EMPTY = '[ ! -d "$1" ] || rmdir --ignore-fail-on-non-empty "$1"'


def remove(node: Node, thing: Artefact) -> None:
    """Take a thing away, if it is there. Raises CommandError."""
    match thing:
        case Link(name=name):
            _delete(node, ["ip", "link", "delete", "dev", name], ["ip", "link", "show", "dev", name])
        case Namespace(name=name):
            _delete(node, ["ip", "netns", "delete", name], ["test", "-e", f"{NAMESPACES}/{name}"])
        case Table(family=family, name=name):
            _delete(node, ["nft", "delete", "table", family, name], ["nft", "list", "table", family, name])
        case Attached():
            _detach(node, thing)
        case Tree(interface=interface):
            if interface in root_handles(node.run(["tc", "-j", "qdisc", "show"])):
                node.run(["tc", "qdisc", "delete", "dev", interface, "root"])
        case Routes(network=network, interface=interface):
            node.run(["ip", "route", "flush", "root", network, "dev", interface])
        case Setting(path=path, value=value, former=former):
            node.run(["sh", "-c", RESTORE, "sh", path, value, former])
        case File(path=path):
            node.run(["rm", "-f", path])
        case State(path=path):
            node.run(["rm", "-rf", path])
        case Directory(path=path):
            node.run(["sh", "-c", REMOVE_EMPTY, "sh", path])
        case Mount(path=path):
            node.run(["sh", "-c", UNMOUNT, "sh", path])


def root_handles(shown: Result) -> dict[str, str]:
    """Return the handle of each interface's root qdisc, from ``tc -j qdisc show``.

    The kernel's own choice has none.
    """
    roots = (qdisc for qdisc in shown.json() if qdisc.get("root"))
    return {qdisc["dev"]: qdisc["handle"] for qdisc in roots if qdisc["handle"] != "0:"}


def _delete(node: Node, delete: list[str], show: list[str]) -> None:
    """Delete what may be gone; it is if it cannot be shown."""
    done = node.run(delete, check=False)
    if done.status != 0 and node.run(show, check=False).status == 0:
        raise CommandError(node.name, delete, done.status, done.stderr)


def _detach(node: Node, attached: Attached) -> None:
    """Let the plugins undo an attachment; a pod without a namespace has none."""
    attachment = Attachment(**attached.attachment)
    if node.run(["test", "-e", attachment.namespace], check=False).status != 0:
        return
    try:
        Runtime(node, attached.directories).delete(NetworkList(**attached.network), attachment, None)
    except CniError as error:
        raise CommandError(node.name, ["CNI", "DEL", attachment.container_id], 1, str(error)) from None
