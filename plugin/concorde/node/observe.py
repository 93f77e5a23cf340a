"""What the kernel has of tree, tables and ports, read back from `tc`, `nft`, `ip` and `bridge`."""

from __future__ import annotations

import json

from .. import links, shaping, tools
from ..rtnetlink import ALL_GROUPS, MOST_GROUPS
from . import guard, htb, limits, nfnetlink, tables, uplinks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .limits import Element

FAMILIES = ("ip", "ip6", "bridge", *guard.ROUTED)


class Listing:
    """The listing of all families' tables; there is time for other work meanwhile."""

    def __init__(self) -> None:
        """Start it. Raises FileNotFoundError."""
        self._running = [
            (family, tools.start("nft", "-j", "list", "table", family, tables.TABLE))
            for family in FAMILIES
            if nfnetlink.has_table(family)  # a node's first pod need not wait for programs that find nothing
        ]

    def finish(self) -> Iterator[tuple[str, str]]:
        """Each family that has a table, and what nft prints of that. Raises CommandError."""
        for family, running in self._running:
            try:
                yield family, running.finish()
            except tools.CommandError as failure:
                if "No such file" not in failure.output:
                    raise


def objects(shown: str) -> list[dict[str, Any]]:
    """What a listing is made of: objects with one key, their kind."""
    found: list[dict[str, Any]] = json.loads(shown)["nftables"]
    return found


def set_of(entry: dict[str, Any]) -> dict[str, Any] | None:
    """The set or the map that an object of a listing is, if it is one."""
    return entry.get("map") or entry.get("set")


class Listed:
    """An element of a set or map.

    The parts of its key, a map's value, and its limit if that is in bytes.
    """

    def __init__(self, element: Any) -> None:
        self.limit = ""
        if isinstance(element, dict) and "elem" in element:
            self.limit = limits.shown(element["elem"].get("limit", {}))
            element = element["elem"]["val"]
        key, value = element if isinstance(element, list) else (element, None)
        self.key = [str(part) for part in (key["concat"] if isinstance(key, dict) else [key])]
        self.value = None if value is None else str(value)

    def text(self, parts: list[str]) -> str:
        """It as nft reads it, where these are the parts of its key as nft reads them."""
        return " . ".join(parts) + (f" : {self.value}" if self.value is not None else "") + self.limit

    @property
    def parts(self) -> list[str]:
        """Key and value."""
        return self.key if self.value is None else [*self.key, self.value]


class UplinkState:
    """An uplink's kernel state, as far as it concerns a tree there.

    `root` is its root qdisc: "default" for the kernel's own choice, "ours", or a description of somebody
    else's. `classes` has what shaping.classes() reads, by minor, `queues` each queue by what it is below of,
    `fair` whether the kernel has what lets flows take turns; `waiting` how many packets are kept for each
    neighbour that has not answered, by table of neighbours. `filters` are of whatever preference.
    """

    def __init__(self, root: str = "default") -> None:
        self.root = root
        self.classes: dict[int, tuple[str, str, str, str, str]] = {}
        self.queues: dict[str, htb.Queue] = {}
        self.fair = False
        self.filters: set[htb.Filter] = set()
        self.waiting: dict[str, int] = {}


class State:
    """The node's kernel state, as far as it concerns trees, the tables and the pods' ports.

    `uplinks` are those that were looked at and are there, by name. `segments` is how many an offloaded packet
    of a VTEP may have, by its device, if that matters. `comments` are those of each chain's rules. `ports`
    are all bridges' ports, of which those as rtnetlink.close_port() leaves them are `closed`, and those in
    hairpin mode `hairpins`; `fixed` are the hardware addresses bound to a port. `links` are the numbers of
    all links by their names.
    """

    def __init__(self) -> None:
        self.uplinks: dict[str, UplinkState] = {}
        self.segments: dict[str, int] = {}
        self.has_ipv6 = True
        self.families: set[str] = set()
        self.comments: dict[tuple[str, str], list[str]] = {}
        self.sets: set[tuple[str, str]] = set()
        self.elements: set[Element] = set()
        self.ports: set[str] = set()
        self.closed: set[str] = set()
        self.hairpins: set[str] = set()
        self.fixed: set[tuple[str, str]] = set()
        self.links: dict[str, int] = {}


def observe(*names: str) -> State:
    """Look at uplinks of these names, at tables and at ports. Raises tools.CommandError."""
    state = State()
    state.has_ipv6 = links.has_ipv6()
    listing = Listing()
    fdb = tools.start("bridge", "-j", "fdb", "show")
    state.uplinks = {name: _observe_uplink(name) for name in names if links.exists(name)}
    addresses = fdb.finish()
    # Only then, and not both at once: a link may go at any moment, with its pod's network or in a DEL, and
    # would pass for a port that has lost its address.
    ports = tools.start("ip", "-j", "-d", "link", "show", "type", "bridge_slave")
    for family, shown in listing.finish():
        read_table(state, family, shown)
    read_ports(state, ports.finish(), addresses)
    return state


def _observe_uplink(name: str) -> UplinkState:
    waiting = tools.start("ip", "-j", "ntable", "show", "dev", name)
    uplink = read_qdiscs(tools.run("tc", "-r", "-j", "qdisc", "show", "dev", name))
    if uplink.root == "ours":
        read_classes(uplink, tools.run("tc", "-d", "-j", "class", "show", "dev", name))
        read_filters(uplink, tools.run("tc", "-j", "filter", "show", "dev", name, "parent", htb.MAJOR))
    uplink.waiting = uplinks.waiting(waiting.finish(), name)
    return uplink


def read_qdiscs(shown: str) -> UplinkState:
    """Of `tc -r -j qdisc show dev`; without -r a token bucket's limit is not shown (tc/q_tbf.c)."""
    uplink = UplinkState()
    for qdisc in json.loads(shown or "[]"):
        kind, handle, options = qdisc["kind"], qdisc["handle"], qdisc.get("options", {})
        # The kernel's own choice, whatever net.core.default_qdisc makes it, has no handle.
        if handle != "0:" and "parent" in qdisc:
            size = options.get("memory_limit", options.get("limit", 0))  # the limit beside one is of packets
            uplink.queues[qdisc["parent"]] = kind, int(options.get("rate", 0)), int(size)
        if not qdisc.get("root") or handle == "0:":
            continue
        default = int(str(options.get("default", "0")), 16)
        ours = (kind, handle, default) == ("htb", htb.MAJOR, htb.DEFAULT)
        uplink.root = "ours" if ours else f"{kind} {handle}"
    return uplink


def read_classes(uplink: UplinkState, shown: str) -> None:
    """Take in `tc -d -j class show dev`."""
    for handle, found in shaping.classes(shown).items():
        minor = _minor(handle)
        if minor is not None:
            uplink.classes[minor] = found


def read_filters(uplink: UplinkState, shown: str) -> None:
    """Take in `tc -j filter show dev ... parent`."""
    for entry in json.loads(shown or "[]"):
        options = entry.get("options", {})
        if "match" in options:
            value, mask = (int(options["match"][name], 16) for name in ("value", "mask"))
            uplink.filters.add((entry["pref"], value, mask, options.get("flowid", "")))


def read_table(state: State, family: str, shown: str) -> None:
    """Take in `nft -j list table`."""
    state.families.add(family)
    for entry in objects(shown):
        if "chain" in entry:
            _read_chain(state, family, entry["chain"])
        elif "rule" in entry:
            rule = entry["rule"]
            state.comments.setdefault((family, rule["chain"]), []).append(rule.get("comment", ""))
        found = set_of(entry)
        if found is not None:
            state.sets.add((family, found["name"]))
            name = found["name"]
            if (family, name) not in tables.SETS or (family, name) in tables.LEARNED:
                continue  # it goes as a whole, or packets fill it
            key = tables.key_of(family, name)
            for element in found.get("elem", ()):
                state.elements.add((family, name, _text(Listed(element), key)))


def _read_chain(state: State, family: str, chain: dict[str, Any]) -> None:
    name = chain["name"]
    if not name.startswith(guard.CHAIN_OF):
        state.comments.setdefault((family, name), [])
    else:
        state.elements.add((family, tables.INGRESS, f'"{name[len(guard.CHAIN_OF) :]}"'))


def read_ports(state: State, links_shown: str, fdb_shown: str) -> None:
    """Take in `ip -j -d link show type bridge_slave` and `bridge -j fdb show`."""
    for link in json.loads(links_shown or "[]"):
        if "ifname" not in link:
            continue  # iproute2 up to 6.1 leaves an empty object for each link of another kind
        state.ports.add(link["ifname"])
        port = link["linkinfo"].get("info_slave_data", {})
        if _is_closed(port):
            state.closed.add(link["ifname"])
        if port.get("hairpin"):
            state.hairpins.add(link["ifname"])
    for entry in json.loads(fdb_shown or "[]"):
        if entry.get("state") == "static" and "sticky" in entry.get("flags", ()):
            state.fixed.add((entry["ifname"], entry["mac"]))


def _is_closed(port: dict[str, Any]) -> bool:
    """Whether a port is as rtnetlink.close_port() leaves it."""
    found = [port.get(key, 1) for key in ("learning", "flood", "multicast_router")]
    # Neither older kernels nor iproute2 before 6.3 tell.
    if port.get("mcast_max_groups", MOST_GROUPS) != MOST_GROUPS:
        return False
    return not any(found) and int(str(port.get("group_fwd_mask", "0")), 16) == ALL_GROUPS


def _text(element: Listed, kinds: list[str]) -> str:
    """An element as it is written to nft: interfaces' names stand in quotes."""
    parts = [f'"{part}"' if "ifname" in kind else part for part, kind in zip(element.key, kinds)]
    return element.text(parts)


def _minor(handle: str) -> int | None:
    major, _, minor = handle.partition(":")
    return int(minor, 16) if major + ":" == htb.MAJOR and minor else None
