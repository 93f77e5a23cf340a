"""What the kernel alone tells of attachments, where no ledger does, and taking one away by that.

It knows nothing of the tables but their name: whatever element names a port of the node, or the address that
stands beside it, is of that port's attachment.
"""

from __future__ import annotations

from .. import addresses, run
from . import htb
from .observe import FAMILIES
from .tables import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Element:
    """An element of a set or a map of our tables: the parts it is made of, and its text for nft."""

    def __init__(self, family: str, name: str, parts: list[str], text: str) -> None:
        self.family = family
        self.name = name
        self.parts = parts
        self.text = text


def elements() -> list[Element]:
    """All elements of all our tables. Raises run.CommandError."""
    import json

    found = []
    for family in FAMILIES:
        try:
            shown = run.run("nft", "-j", "list", "table", family, TABLE)
        except run.CommandError as failure:
            if "No such file" not in failure.output:
                raise
            continue
        except FileNotFoundError:
            return []  # without nft there never was a table of ours
        for entry in json.loads(shown)["nftables"]:
            for kind in entry.keys() & {"map", "set"}:
                for element in entry[kind].get("elem", ()):
                    parts = _parts(element)
                    found.append(Element(family, entry[kind]["name"], parts, _text(element)))
    return found


def minors(found: Iterable[Element]) -> dict[int, int]:
    """The minor of the class that the map gives each address."""
    return {
        addresses.parse(element.parts[0]): int(element.parts[1].partition(":")[2], 16)
        for element in found
        if (element.family, element.name) == ("ip", "classes")
    }


def forget(ports: Iterable[str], known: Iterable[int] = ()) -> None:
    """Take away what the kernel has of an attachment: the elements, and the class if there is one.

    `ports` are the node's ends of it, `known` its addresses as far as somebody knows them. What is left to
    everybody else is not raised: how much that is, only a ledger tells. Raises run.CommandError.
    """
    found = elements()
    if not found:
        return
    names = set(ports)
    texts = {addresses.dotted(address) for address in known}
    for element in found:
        if names.intersection(element.parts):
            texts |= {part for part in element.parts if _is_address(part)}
    gone = [element for element in found if (names | texts).intersection(element.parts)]
    given = minors(element for element in gone)
    run.batches(
        ("nft", "".join(f"delete element {e.family} {TABLE} {e.name} {{ {e.text} }}\n" for e in gone))
    )
    uplink = uplink_of_tree()
    if uplink is None or not given:
        return
    present = run.run("tc", "class", "show", "dev", uplink).split()
    lines = [
        f"class delete dev {uplink} classid {htb.handle(minor)}\n"
        for minor in given.values()
        if htb.handle(minor) in present
    ]
    run.batches(("tc", "".join(lines)))


def uplink_of_tree() -> str | None:
    """The interface that has our tree. Raises run.CommandError."""
    words = run.run("tc", "qdisc", "show").splitlines()
    for line in map(str.split, words):
        if line[:3] == ["qdisc", "htb", htb.MAJOR] and "dev" in line and "root" in line:
            return line[line.index("dev") + 1]
    return None


def _parts(element: Any) -> list[str]:
    if isinstance(element, dict):
        inner = element["elem"]["val"] if "elem" in element else element.get("concat", ())
        return _parts(inner)
    if isinstance(element, (list, tuple)):
        return [part for inner in element for part in _parts(inner)]
    return [str(element)]


def _text(element: Any) -> str:
    """An element as nft reads it."""
    if isinstance(element, dict):
        return (
            _text(element["elem"]["val"]) if "elem" in element else " . ".join(map(_text, element["concat"]))
        )
    if isinstance(element, list):  # of a map: key and value
        return " : ".join(map(_text, element))
    text = str(element)
    plain = ":" in text or text.isdigit() or text.startswith("0x") or _is_address(text)
    return text if plain else f'"{text}"'


def _is_address(text: str) -> bool:
    try:
        addresses.parse(text)
    except ValueError:
        return False
    return True
