"""What a resolver is told when it is started: one JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, NamedTuple

from edge.http import json_object
from edge.overlay.answering import AHEAD, MISS, Generation
from edge.overlay.leases import parsed

IGNORE, ANSWER = "ignore", "answer"


class UnsoundError(ValueError):
    """Settings that cannot be; the message says which, and what would be right."""


class Settings(NamedTuple):
    """What one resolver needs to know."""

    device: str  # the VXLAN device, which is there already
    network: IPv4Network  # of the whole overlay
    subnet: IPv4Network  # of this node
    address: IPv4Address  # of this node on the underlay
    generation: Generation
    refresh: str  # whether entries that are in use are confirmed when the kernel asks: "ignore" or "answer"
    store: str  # a URL
    node: str  # its name in Kubernetes; empty with etcd
    identity: str  # paths of PEM files, for a store that wants to know who asks; or empty
    authority: str
    vni: int
    lifetime: int  # of the own lease in etcd, seconds
    report: str  # the path of a file that is to hold what was learned and done; or empty
    buffer: int  # bytes of what the kernel may say before it is heard


DAY = 86_400
_DEFAULTS: dict[str, Any] = {
    "refresh": IGNORE, "node": "", "identity": "", "authority": "", "vni": 1,
    "lifetime": DAY, "report": "", "buffer": 1 << 20,
}  # fmt: skip
_WORDS = {"refresh": (IGNORE, ANSWER), "l2": (MISS, AHEAD), "l3": (MISS, AHEAD)}
_NUMBERS = {"vni": (1, 2**24 - 1), "lifetime": (1, 365 * DAY), "buffer": (1, 1 << 30)}
_FIELDS = ("device", "network", "subnet", "address", "l2", "l3", "store")


def of_arguments(program: str, arguments: Sequence[str]) -> Settings:
    """Return the settings that a program's only argument leads to. Raises UnsoundError."""
    if len(arguments) != 1:
        raise UnsoundError(f"usage: {program} SETTINGS.json")
    return load(Path(arguments[0]))


def load(path: Path) -> Settings:
    """Return the settings that a file holds. Raises UnsoundError."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnsoundError(f"{path}: {error}") from None


def parse(text: str) -> Settings:
    """Return the settings that a text holds. Raises UnsoundError, and what parses it UnfitError."""
    said = json_object(text, "the content")
    for name in said.keys() - {*_FIELDS, *_DEFAULTS}:
        raise UnsoundError(f"{name[:40]}: no such setting ({', '.join([*_FIELDS, *_DEFAULTS])})")
    for name in _FIELDS:
        if name not in said:
            raise UnsoundError(f"{name}: required")
    said = {**_DEFAULTS, **said}
    for name, value in said.items():
        _check(name, value)
    generation = Generation(said.pop("l2"), said.pop("l3"))
    network, subnet = (parsed(IPv4Network, f"{name}:", said.pop(name)) for name in ("network", "subnet"))
    address = parsed(IPv4Address, "address:", said.pop("address"))
    if not subnet.subnet_of(network):
        raise UnsoundError(f"subnet: {subnet} is not within {network}")
    return Settings(network=network, subnet=subnet, address=address, generation=generation, **said)


def _check(name: str, value: object) -> None:
    if name in _NUMBERS:
        least, most = _NUMBERS[name]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise UnsoundError(f"{name}: must be an integer from {least} to {most}, not {str(value)[:40]}")
    elif not isinstance(value, str):
        raise UnsoundError(f"{name}: must be a string")
    elif name in _WORDS and value not in _WORDS[name]:
        raise UnsoundError(f"{name}: must be {' or '.join(_WORDS[name])}, not {value[:40]!r}")
