"""The ledger as a table for people and as JSON for programs."""

from __future__ import annotations

import json

from .. import addresses
from . import htb, words
from .terms import promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .terms import Entry, Tree

NOTHING = "the ledger is empty: no pod was attached with enforcement node\n"


def as_json(tree: Tree | None, entries: list[Entry]) -> str:
    """One object; rates in bits per second of layer 2 on the uplink, `guarantee` as promised."""
    whole = None
    if tree is not None:
        whole = {
            "uplink": tree.uplink,
            "capacity": tree.capacity,
            "reserve": tree.reserve,
            "controlPorts": list(tree.ports),
            "promised": promised(entries),
            "free": tree.promisable - promised(entries),
            "default": htb.default_rate(tree, promised(entries)),
        }
    return (
        json.dumps({"tree": whole, "attachments": [_attachment(entry) for entry in entries]}, indent=1) + "\n"
    )


def as_table(tree: Tree | None, entries: list[Entry]) -> str:
    """The tree's sums, then a row for each guarantee."""
    if tree is None:
        return NOTHING
    total = promised(entries)
    lines = [
        f"uplink    {tree.uplink}",
        f"capacity  {words.rate(tree.capacity)}",
        f"reserve   {words.rate(tree.reserve)}",
        f"promised  {words.rate(total)}",
        f"free      {words.rate(max(0, tree.promisable - total))}",
        "",
    ]
    rows = [("CLASS", "NETWORK", "POD", "ADDRESS", "GUARANTEE", "ON UPLINK", "CEIL")]
    for entry in entries:
        if entry.minor is not None and entry.address is not None:
            rows.append(
                (
                    htb.handle(entry.minor),
                    entry.network,
                    entry.pod or entry.container,
                    addresses.dotted(entry.address),
                    words.rate(entry.guarantee or 0),
                    words.rate(entry.rate),
                    words.rate(entry.ceil),
                )
            )
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    without = sum(entry.minor is None for entry in entries)
    if without:
        lines += ["", f"pods without a guarantee: {without}"]
    return "\n".join(lines) + "\n"


def _attachment(entry: Entry) -> dict[str, object]:
    return {
        "network": entry.network,
        "container": entry.container,
        "interface": entry.interface,
        "pod": entry.pod or None,
        "address": None if entry.address is None else addresses.dotted(entry.address),
        "class": None if entry.minor is None else htb.handle(entry.minor),
        "guarantee": entry.guarantee,
        "rate": entry.rate,
        "ceil": entry.ceil,
    }
