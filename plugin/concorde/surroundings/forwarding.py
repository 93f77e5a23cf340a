"""Whether the node's packet filter drops what a pod sends to others, or their answers.

Docker sets the policy of FORWARD to DROP for all that it did not start; firewalls that people know (ufw,
firewalld) end with a rule that refuses. Rules that let the pods' network through, as flannel's, make that
right; a policy alone says nothing. What cannot be told from the rules' text is taken for let through.
"""

from __future__ import annotations

from .. import routing, tools
from ..node import nfnetlink, tables, underlay, uplinks
from . import filters
from .filters import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..addresses import Subnet
    from .filters import Chain

_LEGACY = "/proc/net/ip_tables_names"
_LEGACY_SAVE, _SAVE = "iptables-legacy-save", "iptables-nft-save"
_NOTHING = '{"nftables": []}'
_NEW, _ESTABLISHED = "new", "established"
_FAMILIES, _FORWARD = ("ip", "inet"), 2  # NF_INET_FORWARD


def refusals(bridge: str, subnet: Subnet, cluster: Subnet | None) -> list[str]:
    """In words, what drops what pods send, or the answers. Raises OSError."""
    own, others = routing.Block(subnet.network, subnet.prefix), _block(cluster)
    outside = _outside(subnet, cluster)
    return _found(
        {
            f"what pods of {subnet} send": Packet(own, own, others, [bridge], outside, _NEW),
            f"what answers pods of {subnet}": Packet(own, others, own, outside, [bridge], _ESTABLISHED),
        },
        subnet,
    )


def notes(bridge: str, subnet: Subnet, cluster: Subnet | None) -> list[str]:
    """What may be meant so: nobody elsewhere may begin with a pod; and rules that nobody can read."""
    own = routing.Block(subnet.network, subnet.prefix)
    outside = _outside(subnet, cluster)
    asked = {
        f"what others begin with pods of {subnet}": Packet(own, _block(cluster), own, outside, [bridge], _NEW)
    }
    found = _found(asked, subnet)
    if _has_legacy() and not tools.is_there(_LEGACY_SAVE):
        found.append(f"the kernel has rules of iptables-legacy, and {_LEGACY_SAVE} is not here to show them")
    return found


def _block(subnet: Subnet | None) -> routing.Block | None:
    return routing.Block(subnet.network, subnet.prefix) if subnet else None


def _outside(subnet: Subnet, cluster: Subnet | None) -> set[str]:
    """The devices that packets to other nodes are routed into; empty if that is not known."""
    exits = underlay.of_network(subnet, cluster)
    return {exit.device for exit in exits} or {uplinks.of_default_route() or ""} - {""}


def _found(asked: dict[str, Packet], subnet: Subnet) -> list[str]:
    """The first of the packets that each table drops."""
    found = []
    for title, bases, chains, insert in _filters():
        reasons = [
            f"{what} is dropped by {why} of {title}: {_inserted(insert, base, subnet)}"
            for what, packet in asked.items()
            for base in bases
            for why in [filters.drops(chains, base, packet)]
            if why
        ]
        found += reasons[:1]
    return found


def _filters() -> Iterator[tuple[str, list[str], dict[str, Chain], str]]:
    """Each table that hooks where packets are forwarded: a title, the chains that hook there, all its chains,
    and how a rule is inserted.
    """
    others, has_legacy = _tables(), _has_legacy()
    if not (others or has_legacy):
        return
    # Not above: they load json, and no first pod of a node without a packet filter waits for that.
    from ..node.observe import objects

    for family, table in others:
        text = _said("nft", "-j", "-t", "list", "table", family, table)
        chains, hooked, foreign = filters.listed(objects(text or _NOTHING))
        if foreign and (family, table) == ("ip", "filter"):
            # nft shows of iptables' own matches no more than their names.
            chains = filters.saved(_said(_SAVE, "-t", "filter")) or chains
        insert = "iptables" if (family, table) == ("ip", "filter") else f"nft insert rule {family} {table}"
        yield f"table {family} {table}", [base for base in hooked if base in chains], chains, insert
    if has_legacy:
        chains = filters.saved(_said(_LEGACY_SAVE, "-t", "filter"))
        yield (
            "table filter of iptables-legacy",
            [base for base in ("FORWARD",) if base in chains],
            chains,
            "iptables-legacy",
        )


def _tables() -> list[tuple[str, str]]:
    """Others' tables of nftables that may drop what is forwarded."""
    try:
        hooked = nfnetlink.tables_at(_FORWARD)
    except OSError:  # there is no nftables, or this process may not look
        return []
    return [(family, table) for family, table in hooked if family in _FAMILIES and table != tables.TABLE]


def _inserted(insert: str, base: str, subnet: Subnet) -> str:
    """The commands that let a subnet through, of nft or of iptables."""
    if insert.startswith("nft"):
        rule = f"{insert} {base} ip"
        return f"{rule} saddr {subnet} accept; {rule} daddr {subnet} accept"
    return f"{insert} -I {base} -s {subnet} -j ACCEPT; {insert} -I {base} -d {subnet} -j ACCEPT"


def _has_legacy() -> bool:
    try:
        with open(_LEGACY) as file:
            return "filter" in file.read().split()
    except OSError:
        return False  # not built in, or only root may read it


def _said(*command: str) -> str:
    """What a program says, nothing if it is not there or may not look."""
    try:
        return tools.run(*command)
    except (OSError, tools.CommandError):
        return ""
