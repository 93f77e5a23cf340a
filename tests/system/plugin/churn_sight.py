"""What a node's stores and kernel hold with enforcement `node`, and what a promise takes there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from tests.system.plugin.conftest import Document

CAPACITY, RESERVE = 1_000_000_000, 20_000_000  # bits per second, as everywhere below
FRAME, FRAME_ON_UPLINK = 1464, 1514  # an MTU of 1450, and VXLAN around it
FRAME_ON_WIRE = 1538  # with what Ethernet adds to it
USABLE = CAPACITY * FRAME_ON_UPLINK // FRAME_ON_WIRE // 8 * 8  # the kernel holds bytes
PROMISABLE = (USABLE - RESERVE) * FRAME_ON_UPLINK // FRAME_ON_WIRE

QDISC, FAMILIES = "qdisc", frozenset({"ip", "ip6", "bridge"})
PARTS = FAMILIES | {QDISC}


@dataclass(frozen=True)
class Promise:
    """A pod's annotations, in Mbit/s."""

    guarantee: int | None = None
    ceiling: int | None = None

    @property
    def contradicts_itself(self) -> bool:
        return None not in (self.guarantee, self.ceiling) and (self.guarantee or 0) > (self.ceiling or 0)

    @property
    def rate(self) -> int:
        return on_uplink(self.guarantee or 0)

    @property
    def ceil(self) -> int:
        ceil = CAPACITY
        if self.guarantee is not None and self.ceiling is not None:
            ceil = min(ceil, on_uplink(self.ceiling))
        return max(self.rate, ceil)

    @property
    def touched(self) -> frozenset[str]:
        """The parts an ADD changes, so that it notices when one is missing: all of them."""
        return PARTS


def on_uplink(mbits: int) -> int:
    """What a promise takes where its frames have grown by the overlay's headers."""
    return -(-mbits * 1_000_000 * FRAME_ON_UPLINK // FRAME)


def on_wire(rate: int) -> int:
    """The same with what Ethernet adds, which classes count."""
    return rate * FRAME_ON_WIRE // FRAME_ON_UPLINK


@dataclass(frozen=True)
class Row:
    """An attachment in the ledger, as `concorde ledger --json` tells it."""

    address: str
    handle: str | None
    effort: str | None
    guarantee: int | None
    rate: int
    ceil: int


class Sight:
    """What a node holds at a moment of rest."""

    def __init__(self, raw: Document) -> None:
        self.tree: Document | None = next(iter(raw["ledger"]["trees"]), None)
        self.rows = {
            entry["container"]: Row(
                *(entry[key] for key in ("address", "class", "bestEffort", "guarantee", "rate", "ceil"))
            )
            for entry in raw["ledger"]["attachments"]
        }
        self.leases = {
            pod: str(ipaddress.IPv4Address(address))
            for leases in raw["leases"].values()
            for pod, address in leases.items()
        }
        self.classes = rates(raw["classes"])
        tables = {entry["table"]["family"] for entry in raw["ruleset"] if "table" in entry}
        there = tables | ({QDISC} if "qdisc htb c0de: root" in raw["qdiscs"] else set())
        self.missing = PARTS - there
        self.elements: dict[tuple[str, str], set[tuple[str, ...]]] = {}
        for entry in raw["ruleset"]:
            for found in (entry.get("map"), entry.get("set")):
                if found is not None:
                    texts = {as_tuple(element) for element in found.get("elem", ())}
                    self.elements[found["family"], found["name"]] = texts


def as_tuple(element: Any) -> tuple[str, ...]:
    """An element of a set, or of a map with its value: `nft` prints a concatenation as an object."""
    if isinstance(element, dict) and "elem" in element:  # one that counts
        element = element["elem"]["val"]
    key, *value = element if isinstance(element, list) else [element]
    return (*(key["concat"] if isinstance(key, dict) else [key]), *value)


def rates(shown: str) -> dict[str, tuple[int, int]]:
    """Rate and ceil of each class in what `tc class show` prints."""
    found = {}
    for words in map(str.split, shown.splitlines()):
        if words[1] != "htb":
            continue  # of a queue
        rate, ceil = (words[words.index(word) + 1] for word in ("rate", "ceil"))
        found[words[2]] = bits(rate), bits(ceil)
    return found


def bits(rate: str) -> int:
    number = rate.rstrip("KMGbit")
    return int(number) * {"bit": 1, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}[rate[len(number) :]]
