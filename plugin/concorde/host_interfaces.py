"""The node's end of a pod's interface: which one it is, and whether it is still the same.

A result lists interfaces in no order, and some that are nobody's end, as the bandwidth plugin's ifb. A name
says little more: another plugin may give it again, as Calico does to a pod that is made anew. So the
kernel is asked, from within the pod, where its pair begins; and the end is then known by itself: by its
number, which the kernel gives once, by its hardware address, and by the namespace at its other end.
"""

from __future__ import annotations

import os
from struct import unpack_from

from edge import netlink as nl

from . import names, namespaces, rtnetlink
from .results import entries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from edge.netlink import Attributes

    class Known(Protocol):
        """What an attachment's row says of its ends; see node.records.Entry."""

        host_interface: str
        port: str
        link: int
        host_mac: str
        inside: int
        number: int
        namespace: str


# Kinds that come in pairs. Of others, as macvlan and vlan, IFLA_LINK is a device that many have in common.
PAIRS = ("veth", "netkit")


class HostInterface:
    """An end of a pair, in the node's namespace or in a pod's.

    `number` is the node's for the namespace of the other end, whose own index there is `peer`; `master` the
    index of what it is a port of, or 0.
    """

    def __init__(self, index: int, link: Attributes) -> None:
        self.index = index
        self.name = nl.text(link.get(nl.IFLA_IFNAME, b""))
        self.mac = link.get(nl.IFLA_ADDRESS, b"").hex(":")
        self.kind = nl.text(nl.attributes(link.get(nl.IFLA_LINKINFO, b"")).get(nl.IFLA_INFO_KIND, b""))
        self.peer = _number(link.get(nl.IFLA_LINK), 0)
        self.number = _number(link.get(nl.IFLA_LINK_NETNSID), -1)
        self.master = _number(link.get(nl.IFLA_MASTER), 0)


class Found:
    """A pod's interface: the node's end of it, if there is one, and what that is a port of.

    `mac` and `index` are the pod's end's, `namespace` tells its network namespace from all that were or will
    be; empty and 0 where nobody could look.
    """

    def __init__(self, end: HostInterface | None, mac: str, index: int = 0, namespace: str = "") -> None:
        self.end = end
        self.mac = mac
        self.index = index
        self.namespace = namespace
        self.master = named(index=end.master) if end is not None and end.master else None

    @property
    def host_interface(self) -> str:
        """Where its packets come into the node's routing."""
        if self.end is None:
            return ""
        return self.master.name if self.master is not None and self.port else self.end.name

    @property
    def port(self) -> str:
        """Its port of a bridge, if it is one's."""
        is_port = self.end is not None and self.master is not None and self.master.kind == "bridge"
        return self.end.name if self.end is not None and is_port else ""

    @property
    def switched(self) -> str:
        """What takes its packets before they could be routed or bridged by the kernel; empty as a rule."""
        unseen = self.master is not None and self.master.kind not in ("bridge", "vrf")
        return f"{self.master.name} ({self.master.kind})" if self.master is not None and unseen else ""


def of_pod(netns: str, interface: str) -> Found:
    """The pod's interface of that name, as its namespace tells. Raises OSError where nobody can look."""
    number = _number_of(netns)
    inside = _asked(0, interface, number)
    end = named(index=inside.peer) if inside.kind in PAIRS and inside.peer else None
    if end is not None and (end.kind not in PAIRS or (end.peer, end.number) != (inside.index, number)):
        end = None  # the other end is in a third namespace, where its number is another's
    return Found(end, inside.mac, inside.index, namespace(netns))


def of_result(result: object, interface: str) -> Found:
    """The same by what a result lists, where no namespace can be asked: an end that leads to such a pod."""
    mac = told_mac(result, interface)
    for name in listed(result):
        end = named(name)
        if end is not None and end.kind in PAIRS:
            leads_to = rtnetlink.peer_address(name)
            if not mac or leads_to == mac:
                return Found(end, leads_to)
    return Found(None, mac)


def left_by(result: object, interface: str) -> set[str]:
    """Names that a result lists of which one was the pod's end: it still is, or is gone."""
    mac = told_mac(result, interface)
    found = set()
    for name in listed(result):
        end = named(name)
        if end is None or (end.kind in PAIRS and mac in ("", rtnetlink.peer_address(name))):
            found.add(name)
    return found


def of(result: object, interface: str, netns: str) -> Found:
    """The pod's interface: as its namespace tells, else by what a result lists."""
    if netns:
        try:
            return of_pod(netns, interface)
        except OSError:
            pass
    return of_result(result, interface)


def named(name: str = "", index: int = 0) -> HostInterface | None:
    """What of the node has that name now, or that number."""
    with nl.Ignoring(rtnetlink.NO_SUCH_DEVICE):
        return _asked(index, name)
    return None


def indexes() -> dict[str, int]:
    """The numbers of all links of the node, by their names. Raises OSError."""
    return {nl.text(link.get(nl.IFLA_IFNAME, b"")): index for index, link in rtnetlink.links()}


def is_same(entry: Known) -> bool:
    """Whether what has the name of an attachment's end is that end; an older version wrote nothing down."""
    now = named(entry.port or entry.host_interface)
    if now is None:
        return False
    known = entry.link, entry.host_mac, entry.inside, entry.number
    return not entry.link or (now.index, now.mac, now.peer, now.number) == known


def is_within(entry: Known, netns: str, interface: str) -> bool:
    """Whether a pod's interface there is that of an attachment, as far as that was written down."""
    if not entry.namespace:
        return True
    try:
        found = of_pod(netns, interface)
    except OSError:
        return False
    index = found.end.index if found.end is not None else 0
    return (found.namespace, found.index, index) == (entry.namespace, entry.inside, entry.link)


def namespace(netns: str) -> str:
    """What tells a network namespace from all others: its inode's number, and when that was made.

    The number alone is given again at once (fs/proc/generic.c, proc_alloc_inum). The inode stays while the
    file is mounted somewhere; those below /proc are mounted nowhere, and have a new one each time.
    """
    found = os.stat(netns)
    return f"{found.st_ino}" if netns.startswith("/proc/") else f"{found.st_ino} {found.st_ctime_ns}"


def listed(result: object) -> list[str]:
    """The names that a result lists of the node's side."""
    entries = entries_of(result, "interfaces")
    found = [str(entry.get("name")) for entry in entries if not entry.get("sandbox")]
    return [name for name in found if names.is_interface(name)]


def told_mac(result: object, interface: str) -> str:
    """The pod's hardware address as a result has it, or nothing."""
    entries = entries_of(result, "interfaces")
    macs = [entry.get("mac") for entry in entries if entry.get("name") == interface and entry.get("sandbox")]
    return str(macs[0] or "").lower() if macs else ""


def _number_of(netns: str) -> int:
    """The number that the node has for a namespace; it gets one if it has none. Raises OSError."""
    kernel = nl.opened()
    try:
        number = namespaces.number(kernel, netns, gives=True)
    finally:
        kernel.close()
    if number < 0:
        raise OSError(rtnetlink.NO_SUCH_DEVICE, "has no number", netns)
    return number


def _asked(index: int, name: str, number: int = -1) -> HostInterface:
    """A link by its index or its name, in the namespace of that number, or in the node's. Raises OSError."""
    found = rtnetlink.link(name, index, number)
    return HostInterface(unpack_from("=i", found, 4)[0], nl.attributes(found, nl.IFINFOMSG))


def _number(value: bytes | None, otherwise: int) -> int:
    return otherwise if value is None else int(unpack_from("=i", value)[0])
