"""What the kernel alone tells of attachments, where no ledger does, and taking one away by that.

It knows nothing of the tables but their name: whatever element names a port of the node, or the address that
stands beside it, is of that port's attachment.
"""

from __future__ import annotations

from .. import addresses, batches, tools
from . import htb
from .observe import Listed, Listing, objects, set_of
from .tables import LEARNED, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Element:
    """An element of a set or a map of our tables: the parts it is made of, and its text for nft."""

    def __init__(self, family: str, name: str, parts: list[str], text: str) -> None:
        self.family = family
        self.name = name
        self.parts = parts
        self.text = text


def elements() -> list[Element]:
    """All elements of all our tables. Raises tools.CommandError."""
    try:
        listing = Listing()
    except FileNotFoundError:
        return []  # without nft there never was a table of ours
    return [
        Element(family, found["name"], listed.parts, listed.text([_quoted(part) for part in listed.key]))
        for family, shown in listing.finish()
        for found in filter(None, map(set_of, objects(shown)))
        if (family, found["name"]) not in LEARNED
        for listed in map(Listed, found.get("elem", ()))
    ]


def minors(found: Iterable[Element]) -> dict[int, int]:
    """The pod's minor of the class that a map gives each IPv4 address, a version before's map too."""
    return {
        addresses.parse(element.parts[-2]): htb.of_pod(int(element.parts[-1].partition(":")[2], 16))
        for element in found
        if element.family == "ip" and element.name in ("promises", "efforts", "classes")
    }


def forget(ports: Iterable[str], known: Iterable[int] = ()) -> None:
    """Take away what the kernel has of an attachment: the elements, and the class if there is one.

    `ports` are the node's ends of it, `known` its addresses as far as somebody knows them. What is left to
    everybody else is not raised: how much that is, only a ledger tells. Raises tools.CommandError.
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
    batches.run_all(
        ("nft", "".join(f"delete element {e.family} {TABLE} {e.name} {{ {e.text} }}\n" for e in gone))
    )
    names = {htb.handle(of) for minor in given.values() for of in (minor, htb.best_effort(minor))}
    for uplink in uplinks_of_trees() if given else ():
        present = tools.run("tc", "class", "show", "dev", uplink).split()
        lines = [f"class delete dev {uplink} classid {name}\n" for name in sorted(names & {*present})]
        batches.run_all(("tc", "".join(lines)))


def uplinks_of_trees() -> list[str]:
    """The interfaces that have a tree of ours. Raises tools.CommandError."""
    words = tools.run("tc", "qdisc", "show").splitlines()
    return [
        line[line.index("dev") + 1]
        for line in map(str.split, words)
        if line[:3] == ["qdisc", "htb", htb.MAJOR] and "dev" in line and "root" in line
    ]


def _quoted(part: str) -> str:
    """A part of a key as nft reads it; only names stand in quotes."""
    plain = ":" in part or part.isdigit() or part.startswith("0x") or _is_address(part)
    return part if plain else f'"{part}"'


def _is_address(text: str) -> bool:
    try:
        addresses.parse(text)
    except ValueError:
        return False
    return True
