"""The ledger as a table for people and as JSON for programs."""

from __future__ import annotations

from .. import addresses
from ..leases import INGRESS
from . import htb, messages, nfnetlink
from .records import of_tree, promised
from .tables import counting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Entry, Tree

NOTHING = "the ledger is empty: no pod is attached\n"
_NONE = "-"
_HEADINGS = (
    *("CLASS", "NETWORK", "POD", "ADDRESS", "UPLINK"),
    *("GUARANTEE", "ANSWERS", "ON UPLINK", "CEIL", "INGRESS", "DROPPED"),
)


def dropped(entries: list[Entry]) -> dict[tuple[str, str, str], int]:
    """How many packets of each attachment the guard has dropped; without those it counts nothing of.

    Raises OSError; EPERM without CAP_NET_ADMIN.
    """
    owners = {element: entry.key for entry in entries for element in counting(entry)}
    total: dict[tuple[str, str, str], int] = {}
    for element, packets in nfnetlink.counted(owners).items():
        total[owners[element]] = total.get(owners[element], 0) + packets
    return total


def as_json(trees: list[Tree], entries: list[Entry], dropped: dict[tuple[str, str, str], int]) -> str:
    """One object; rates in bits per second of layer 2 on the uplink in full frames, promised ones as given.

    `capacity`, `reserve` and `default` are of the wire.
    """
    import json  # not above: `concorde metrics` does without

    attachments = [{**_attachment(entry), "dropped": dropped.get(entry.key, 0)} for entry in entries]
    told = {"trees": [_tree(tree, entries) for tree in trees], "attachments": attachments}
    return json.dumps(told, indent=1) + "\n"


def as_table(trees: list[Tree], entries: list[Entry], dropped: dict[tuple[str, str, str], int]) -> str:
    """The trees' sums, then a row for each attachment, those with a guarantee there first."""
    if not (trees or entries):
        return NOTHING
    rows: list[tuple[str, ...]] = [_HEADINGS]
    for entry in sorted(entries, key=lambda entry: (not entry.rate, entry.minor or 0)):
        rows.append((*_row(entry), str(dropped.get(entry.key, 0))))
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([*(line for tree in trees for line in _sums(tree, entries)), *lines]) + "\n"


def _tree(tree: Tree, entries: list[Entry]) -> dict[str, object]:
    own = of_tree(tree, entries)
    total, received = promised(own), promised(own, INGRESS)
    return {
        "uplink": tree.uplink,
        "capacity": tree.capacity,
        "reserve": tree.reserve,
        "controlPorts": list(tree.ports),
        "frameOverhead": tree.overhead,
        "segment": bool(tree.segment),
        "promised": total,
        "free": tree.promisable - total,
        "default": htb.default_rate(tree, total),
        "fabric": _fabric(tree),
        "ingressPromised": received if tree.fabric else None,
        "ingressFree": tree.downlink.promisable - received if tree.fabric else None,
    }


def _fabric(tree: Tree) -> dict[str, object] | None:
    """What is said of other nodes, and which of them have a class here; null without a fabric."""
    if tree.fabric is None:
        return None
    nodes = {addresses.dotted(node): htb.handle(minor) for node, minor in tree.peers.items()}
    return {
        "networks": list(tree.fabric.nodes),
        "safeRate": tree.fabric.safe,
        "port": tree.fabric.port,
        "nodes": nodes,
    }


def _sums(tree: Tree, entries: list[Entry]) -> list[str]:
    own, down = of_tree(tree, entries), tree.downlink
    total, received = promised(own), promised(own, INGRESS)
    ingress = f"{messages.rate(received)} promised, {messages.rate(max(0, down.promisable - received))} free"
    return [
        f"uplink    {tree.uplink}",
        f"capacity  {messages.rate(tree.capacity)}",
        f"reserve   {messages.rate(tree.reserve)}",
        f"promised  {messages.rate(total)}",
        f"free      {messages.rate(max(0, tree.promisable - total))}",
        *([f"ingress   {ingress}"] if tree.fabric else ()),
        "",
    ]


def _row(entry: Entry) -> tuple[str, ...]:
    address = _NONE if entry.address is None else addresses.dotted(entry.address)
    who = entry.network, entry.pod or entry.container, address
    if entry.minor is None or not entry.rate:
        return (_NONE, *who, *(_NONE,) * 6)
    promised = [messages.rate(given) if given else _NONE for given in (entry.guarantee, entry.answers)]
    rates = messages.rate(entry.rate), messages.rate(entry.ceil)
    ingress = messages.rate(entry.ingress) if entry.ingress else _NONE
    return (htb.handle(entry.minor), *who, entry.uplink, *promised, *rates, ingress)


def _attachment(entry: Entry) -> dict[str, object]:
    return {
        "network": entry.network,
        "container": entry.container,
        "interface": entry.interface,
        "pod": entry.pod or None,
        "address": None if entry.address is None else addresses.dotted(entry.address),
        "class": None if entry.minor is None or not entry.rate else htb.handle(entry.minor),
        "uplink": entry.uplink or None,
        "bestEffort": None if entry.minor is None else htb.handle(htb.best_effort(entry.minor)),
        "guarantee": entry.guarantee,
        "answers": entry.answers,
        "rate": entry.rate,
        "ceil": entry.ceil,
        "ingress": entry.ingress,
        "ingressRate": entry.inward,
    }
