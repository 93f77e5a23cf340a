"""What a node has because of blocks, as lines for ``ip -batch`` and ``bridge -batch``, and as texts of files.

Pure. Whoever knows a pod network renders its texts before the blocks are known: with placeholders for them,
each line with the other node because of which it is there. What a node has then follows from the blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network

# Lines with their ends, each with the name of the node that must have a block for it; empty if only the own.
Template = Sequence[tuple[str, str]]

SUBNET, LENGTH = "subnet", "length"
_PLACEHOLDER = re.compile(rf"\$\{{(\S+) ({SUBNET}|{LENGTH}|-?[0-9]+)\}}")

# Objects whose lines are entries: ``X add ...`` is undone by ``X del ...``, of the same words; links by name.
REPLACED = ("route", "neighbour", "fdb", "address")
ENTRIES = (*REPLACED, "rule", "link")


def placeholder(node: str, what: str | int) -> str:
    """Return what stands for a node's block, its prefix length, or the address at a position in it."""
    return f"${{{node} {what}}}"


def filled(template: Template, blocks: Mapping[str, IPv4Network]) -> str:
    """Return a text for nodes that have blocks, by name; the lines of other nodes are left out.

    Raises KeyError for a placeholder of a node without block, IndexError for an address outside of it.
    """

    def value(found: re.Match[str]) -> str:
        block, what = blocks[found[1]], found[2]
        if what == SUBNET:
            return str(block)
        return str(block.prefixlen if what == LENGTH else block[int(what)])

    return "".join(_PLACEHOLDER.sub(value, line) for node, line in template if not node or node in blocks)


def difference(before: str, after: str) -> str:
    """Return the batch text that makes the entries of ``before`` those of ``after``.

    What goes, goes first, for a kernel refuses a second route to the same network; last in, first out. What
    comes may be there already, as a packet on its way brings back a neighbour that was just removed.
    """
    old, new = before.splitlines(), after.splitlines()
    kept = set(old) & set(new)
    gone = [undone(line) for line in reversed(old) if line not in kept and is_entry(line)]
    return joined([*gone, *(written(line) for line in new if line not in kept)])


def undone(line: str) -> str:
    """Return the line that undoes an entry's."""
    kind, _, *fields = line.split()
    return " ".join([kind, "del", *(fields[:1] if kind == "link" else fields)])


def written(line: str) -> str:
    """Return the line that writes an entry, whether it is there or not."""
    kind, verb, *fields = line.split()
    return " ".join([kind, "replace" if verb == "add" and kind in REPLACED else verb, *fields])


def is_entry(line: str) -> bool:
    """Tell whether a line makes an entry that has to be undone when it is not wanted any more."""
    fields = line.split()
    return len(fields) > 2 and fields[0] in ENTRIES and fields[1] == "add"


def joined(lines: Sequence[str]) -> str:
    """Return lines as one text."""
    return "".join(f"{line}\n" for line in lines)
