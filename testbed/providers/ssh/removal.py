"""How the things of a ledger are taken away again, kind by kind.

To take away what is gone already is no fault: a crash may have come before it was made, and somebody may
have done it by hand.
"""

from __future__ import annotations

from testbed.access.place import CommandError, Node
from testbed.providers.ssh import artefacts
from testbed.providers.ssh.survey import MOUNTED, root_handles
from testbed.runtime.cni import Attachment, CniError, NetworkList, Runtime
from testbed.scenario.addressing import NAMESPACES

# Arguments: the setting, what it was set to, what it was.
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
