"""What the kernel has of the tree and the tables, read back from `tc` and `nft`."""

from __future__ import annotations

import json

from .. import links, run, shaping
from . import htb, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class State:
    """The node's kernel state, as far as it concerns the tree.

    `root` is the uplink's root qdisc: None when the uplink is missing, "default" for the kernel's own choice,
    "ours", or a description of somebody else's. `classes` has rate and ceil as tc prints them, `queues` the
    size (bytes) of each class's queue, both by minor.
    """

    def __init__(self) -> None:
        self.root: str | None = None
        self.classes: dict[int, tuple[str, str]] = {}
        self.queues: dict[int, int] = {}
        self.arp_filter = False
        self.comments: dict[str, list[str]] = {}
        self.sets: set[tuple[str, str]] = set()
        self.elements: set[marks.Element] = set()


def observe(uplink: str) -> State:
    """Look. Raises run.CommandError."""
    state = State()
    if links.exists(uplink):
        read_qdiscs(state, run.run("tc", "-j", "qdisc", "show", "dev", uplink))
        if state.root == "ours":
            read_classes(state, run.run("tc", "-j", "class", "show", "dev", uplink))
            shown = run.run("tc", "-j", "filter", "show", "dev", uplink, "parent", htb.MAJOR)
            read_filters(state, shown)
    for family in marks.FAMILIES:
        try:
            shown = run.run("nft", "-j", "list", "table", family, marks.TABLE)
        except run.CommandError as failure:
            if "No such file" not in failure.output:
                raise
            continue
        read_table(state, family, shown)
    return state


def read_qdiscs(state: State, shown: str) -> None:
    """Take in `tc -j qdisc show dev`."""
    state.root = "default"
    for qdisc in json.loads(shown or "[]"):
        kind, handle, options = qdisc["kind"], qdisc["handle"], qdisc.get("options", {})
        minor = _minor(qdisc.get("parent", ""))
        if minor is not None and kind == "bfifo":
            state.queues[minor] = int(options.get("limit", 0))
        # The kernel's own choice, whatever net.core.default_qdisc makes it, has no handle.
        if not qdisc.get("root") or handle == "0:":
            continue
        default = int(str(options.get("default", "0")), 16)
        ours = (kind, handle, default) == ("htb", htb.MAJOR, htb.DEFAULT)
        state.root = "ours" if ours else f"{kind} {handle}"


def read_classes(state: State, shown: str) -> None:
    """Take in `tc -j class show dev`."""
    for handle, rates in shaping.rates_of_classes(shown).items():
        minor = _minor(handle)
        if minor is not None:
            state.classes[minor] = rates


def read_filters(state: State, shown: str) -> None:
    """Take in `tc -j filter show dev ... parent`."""
    state.arp_filter = any(
        entry.get("protocol") == "arp" and entry.get("options", {}).get("flowid") == htb.handle(htb.CONTROL)
        for entry in json.loads(shown or "[]")
    )


def read_table(state: State, family: str, shown: str) -> None:
    """Take in `nft -j list table`."""
    for entry in json.loads(shown)["nftables"]:
        if "chain" in entry and entry["chain"]["name"] == marks.CHAIN[family]:
            state.comments.setdefault(family, [])
        elif "rule" in entry:
            state.comments.setdefault(family, []).append(entry["rule"].get("comment", ""))
        for kind in ("map", "set"):
            if kind in entry:
                name = entry[kind]["name"]
                state.sets.add((family, name))
                state.elements |= {(family, name, _text(e)) for e in entry[kind].get("elem", ())}


def _text(element: Any) -> str:
    """An element as marks.elements() writes it."""
    if isinstance(element, list):  # of a map: key and value
        return f"{element[0]} : {element[1]}"
    if isinstance(element, dict) and "concat" in element:
        first, second = element["concat"]
        return f'"{first}" . {second}'
    text = str(element)
    return text if text[:1].isdigit() and text.count(".") == 3 else f'"{text}"'


def _minor(handle: str) -> int | None:
    major, _, minor = handle.partition(":")
    return int(minor, 16) if major + ":" == htb.MAJOR and minor else None
