"""What the node's kernel and nft can do: asked of them, in ways that change nothing."""

from __future__ import annotations

import os

from edge import netlink as nl

from .. import rtnetlink, tools
from ..node import nfnetlink
from ..node.records import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# With limits of each element of a set (nf_tables, NFTA_SET_ELEM_EXPRESSIONS).
LEAST_LINUX = (5, 11)
_UNKNOWN_QDISC, _UNKNOWN_LINK = 2, 95  # ENOENT, EOPNOTSUPP
_OPTIONS = {
    "htb": "NET_SCH_HTB", "tbf": "NET_SCH_TBF", "bfifo": "NET_SCHED",
    "bridge": "BRIDGE", "veth": "VETH",
}  # fmt: skip


def lacking(qdiscs: Iterable[str], makes_bridge: bool) -> list[str]:
    """In words, what of all that will be asked cannot be done here. Raises OSError."""
    release = os.uname().release
    if _version(release) < LEAST_LINUX:  # which may do with the questions below what was not meant
        return [f"Linux {release} is too old: 5.11 or newer is needed"]
    kinds = ("bridge", "veth") if makes_bridge else ()
    missing = [*filter(_is_unknown_qdisc, qdiscs), *filter(_is_unknown_kind, kinds)]
    found = [
        f"this kernel has no {name} (CONFIG_{_OPTIONS[name]}): load or build that module" for name in missing
    ]
    # Where it has our tables, it has shown that it can.
    return found if nfnetlink.has_chain("bridge", "prerouting") else found + _of_tables(makes_bridge)


def _version(release: str) -> tuple[int, ...]:
    return tuple(
        int("0" + "".join(filter(str.isdigit, part))) for part in release.split("-")[0].split(".")[:2]
    )


def _is_unknown_qdisc(kind: str) -> bool:
    """A qdisc that is none for ingress is refused there, but only once its kind was found (qdisc_create)."""
    body = nl.tcmsg(rtnetlink.LOOPBACK, parent=nl.TC_H_INGRESS) + nl.named(nl.TCA_KIND, kind)
    return _refusal(nl.RTM_NEWQDISC, body) == _UNKNOWN_QDISC


def _is_unknown_kind(kind: str) -> bool:
    """No link has so large an MTU, which is looked at once its kind was found (rtnl_create_link)."""
    wanted = nl.nested(nl.IFLA_LINKINFO, nl.attribute(nl.IFLA_INFO_KIND, kind.encode()))
    body = nl.ifinfomsg() + wanted + nl.u32(nl.IFLA_MTU, 0x7FFFFFFF)
    return _refusal(nl.RTM_NEWLINK, body) == _UNKNOWN_LINK


def _refusal(kind: int, body: bytes) -> int | None:
    try:
        nl.tell(kind, nl.CREATE | nl.EXCLUSIVE, body)
    except OSError as error:
        return error.errno
    return None


def _of_tables(is_ours: bool) -> list[str]:
    """What of our tables nft, or the kernel, refuses; it gives up what it only checks."""
    # Not above: they load json, and a node seldom lacks our tables.
    from ..node.differences import differences
    from ..node.observe import State

    text = "".join(difference.nft for difference in differences([], [_sample(is_ours)], State()))
    try:
        tools.start("nft", "--check", "--file", "-").finish(text)
    except tools.CommandError as error:
        return [
            f"nft and this kernel cannot make the guard's tables ({error}): nftables, with bridge and netdev"
        ]
    return []


def _sample(is_ours: bool) -> Entry:
    """A pod behind a bridge, as this plugin makes it, or behind a veth that is routed to."""
    port = "lo" if is_ours else ""
    own = ("", "sample", "eth0", "", 1 << 24, "lo", port, None, 0, 0)
    return Entry(*own, mac="0a:58:01:00:00:00", others="fd00::1")
