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

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testbed.access.place import CommandError, Node
from testbed.providers.ssh import artefacts
from testbed.providers.ssh.artefacts import Artefact
from testbed.providers.ssh.node import MARK, mark
from testbed.providers.ssh.survey import MOUNTED, root_handles
from testbed.runtime.cni import Attachment, CniError, NetworkList, Runtime
from testbed.scenario.addressing import NAMESPACES

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
        words = f"{directory(run)}/ledger cannot be read: {error}"
        raise CommandError(node.name, ["cat", f"{directory(run)}/ledger"], "an error", words) from None


def _boot(node: Node) -> str:
    return node.run(["cat", BOOT]).stdout.strip()


# Arguments: the setting, what it was set to, what it was. To take away what is gone already is no fault: a
# crash may have come before it was made, and somebody may have done it by hand.
RESTORE = '[ "$(cat "$1")" != "$2" ] || printf "%s\\n" "$3" >"$1"'
UNMOUNT = f'[ ! -d "$1" ] || ! {MOUNTED} || [ -n "$(ls -A "$1")" ] || umount "$1"'
REMOVE_EMPTY = '[ ! -d "$1" ] || rmdir --ignore-fail-on-non-empty "$1"'


def remove(node: Node, thing: artefacts.Artefact) -> None:
    """Take a thing away, if it is there. Raises CommandError."""
    match thing:
        case artefacts.Link(name=name):
            _delete(node, ["ip", "link", "delete", "dev", name], ["ip", "link", "show", "dev", name])
        case artefacts.Namespace(name=name):
            _delete(node, ["ip", "netns", "delete", name], ["test", "-e", f"{NAMESPACES}/{name}"])
        case artefacts.Table(family=family, name=name):
            _delete(node, ["nft", "delete", "table", family, name], ["nft", "list", "table", family, name])
        case artefacts.Attached():
            _detach(node, thing)
        case artefacts.Tree(interface=interface):
            if interface in root_handles(node.run(["tc", "-j", "qdisc", "show"])):
                node.run(["tc", "qdisc", "delete", "dev", interface, "root"])
        case artefacts.Routes(network=network, interface=interface):
            node.run(["ip", "route", "flush", "root", network, "dev", interface])
        case artefacts.Setting(path=path, value=value, former=former):
            node.run(["sh", "-c", RESTORE, "sh", path, value, former])
        case artefacts.File(path=path):
            node.run(["rm", "-f", path])
        case artefacts.State(path=path):
            node.run(["rm", "-rf", path])
        case artefacts.Directory(path=path):
            node.run(["sh", "-c", REMOVE_EMPTY, "sh", path])
        case artefacts.Mount(path=path):
            node.run(["sh", "-c", UNMOUNT, "sh", path])


def _delete(node: Node, delete: list[str], show: list[str]) -> None:
    """Delete what may be gone; it is if it cannot be shown."""
    done = node.run(delete, check=False)
    if done.status != 0 and node.run(show, check=False).status == 0:
        raise CommandError(node.name, delete, done.status, done.stderr)


def _detach(node: Node, attached: artefacts.Attached) -> None:
    """Let the plugins undo an attachment; a pod without a namespace has none."""
    attachment = Attachment(**attached.attachment)
    if node.run(["test", "-e", attachment.namespace], check=False).status != 0:
        return
    try:
        Runtime(node, attached.directories).delete(NetworkList(**attached.network), attachment, None)
    except CniError as error:
        raise CommandError(node.name, ["CNI", "DEL", attachment.container_id], 1, str(error)) from None
