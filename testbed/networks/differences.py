"""From one set of entries to another: what is to be run so that a node has the second instead of the first.

Texts are those that pod networks render for ``ip -batch`` and ``bridge -batch``: a line an entry, ``route add
...``. So whoever can say what a node has among certain nodes has said, too, what changes there when one of
them joins, leaves, or has another address.
"""

from __future__ import annotations

from collections.abc import Collection

# Objects whose lines are entries: ``X add ...`` is undone by ``X del ...``, of the same words.
REPLACED = ("route", "neighbour", "fdb", "address")
ENTRIES = (*REPLACED, "rule")


def difference(before: str, after: str) -> str:
    """Return the batch text that makes the entries of ``before`` those of ``after``.

    What goes, goes first, for a kernel refuses a second route to the same network; last in, first out. What
    comes may be there already, as a packet on its way brings back a neighbour that was just removed.
    """
    old, new = before.splitlines(), after.splitlines()
    kept = set(old) & set(new)
    gone = [undone(line) for line in reversed(old) if line not in kept and _is_entry(line)]
    return _text([*gone, *(written(line) for line in new if line not in kept)])


def removal(text: str, devices: Collection[str]) -> str:
    """Return the text that removes all of a node's own; with a device goes what is on it."""
    lines = [line for line in reversed(text.splitlines()) if _is_entry(line)]
    elsewhere = [undone(line) for line in lines if not set(line.split()) & set(devices)]
    return _text([*elsewhere, *(f"link del {device}" for device in devices)])


def undone(line: str) -> str:
    """Return the line that undoes an entry's."""
    kind, _, *words = line.split()
    return " ".join([kind, "del", *words])


def written(line: str) -> str:
    """Return the line that writes an entry, whether it is there or not."""
    kind, verb, *words = line.split()
    return " ".join([kind, "replace" if verb == "add" and kind in REPLACED else verb, *words])


def _is_entry(line: str) -> bool:
    words = line.split()
    return len(words) > 2 and words[0] in ENTRIES and words[1] == "add"


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
