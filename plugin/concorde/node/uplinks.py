"""A node's uplink beside its tree: which device it is, how fast, and what waits and is cut there.

*Waiting*: Linux keeps 101 packets for each address it asks for, and throws all of them away in one go when
nobody has answered for three seconds (neigh_invalidate, net/core/neighbour.c). Does a pod send to 250 such
addresses, that stops a processor for a tenth of a second, and with it whoever was promised something. RFC
1122, 2.3.2.2, asks for one packet; three is what Linux kept before 3.3.

*Segments*: HTB counts what a frame takes besides itself once for a packet that becomes many. What is too
large for a class's queue is taken apart there (htb.queues()); what has several small segments and is not, is
taken apart only by a device that may send none with more than one (net/core/dev.c, gso_features_check). A
VTEP is such a device, it is before the tree, and it is no pod's.

Changes are `ip -batch` text.
"""

from __future__ import annotations

import sys

from edge import netlink

from .. import rtnetlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SIOCETHTOOL = 0x8946  # linux/sockios.h
_ETHTOOL_GSET = 0x00000001  # linux/ethtool.h; old, but every kernel answers it
_SPEED, _SPEED_HIGH = 12, 28  # offsets in struct ethtool_cmd: Mbit/s, lower and upper 16 bits
_UNKNOWN = 0xFFFFFFFF  # SPEED_UNKNOWN
# What drivers without a wire tell, whatever is beneath (drivers/net/veth.c; tun.c, formerly 10). Of tun
# another speed counts: somebody has set it.
_MADE_UP = {"veth": (10_000,), "tun": (10, 10_000)}  # Mbit/s
_SIOCGIFMTU, _SIOCGIFADDR = 0x8921, 0x8915  # linux/sockios.h
MOST_WAITING = 3  # packets for each address
MOST_SEGMENTS = 1  # of a packet


def of_default_route() -> str | None:
    """The device of the IPv4 default route with the lowest metric."""
    with open("/proc/self/net/route") as file:
        return default_device(file.read().splitlines()[1:])


def default_device(lines: Iterable[str]) -> str | None:
    """The same from lines of /proc/net/route: interface, destination, gateway, flags, ..., metric, mask."""
    routes = []
    for fields in map(str.split, lines):
        if len(fields) > 7 and fields[1] == fields[7] == "00000000" and int(fields[3], 16) & 1:
            routes.append((int(fields[6]), fields[0]))
    return min(routes)[1] if routes else None


def mtu(name: str) -> int:
    """The MTU (bytes) of a device. Raises OSError."""
    return int.from_bytes(_asked(name, _SIOCGIFMTU)[16:20], sys.byteorder, signed=True)


def address(name: str) -> int:
    """The first IPv4 address of a device. Raises OSError."""
    return int.from_bytes(_asked(name, _SIOCGIFADDR)[20:24], "big")


def _asked(name: str, what: int) -> bytes:
    """What the kernel says of a device: struct ifreq, whose answer follows the name's 16 bytes."""
    # Only here: where nothing is left to be asked, no call pays for these.
    import fcntl
    from struct import pack

    descriptor = netlink.by_device()
    try:
        return fcntl.ioctl(descriptor.fileno(), what, pack("16s24x", name.encode()))
    finally:
        descriptor.close()


def speed(name: str) -> int | None:
    """The speed (bits per second) the driver of a device tells, or None; nor one that it makes up.

    Not /sys/class/net, which shows the network namespace it was mounted in.
    """
    megabits = _driver_speed(name)
    return None if megabits is None or _is_made_up(name, megabits) else megabits * 1_000_000


def _is_made_up(name: str, megabits: int) -> bool:
    """Also where the device passes on what one beneath it tells, as bridges, bonds and VLANs do."""
    if megabits in _MADE_UP.get(rtnetlink.link_kind(name) or "", ()):
        return True
    return any(_is_made_up(device, _driver_speed(device) or 0) for device in rtnetlink.beneath(name))


def _driver_speed(name: str) -> int | None:
    """What a driver answers, in Mbit/s."""
    # Only here: where `capacity` is given, no call pays for these.
    import fcntl
    from array import array
    from struct import pack, unpack_from

    command = array("B", pack("I", _ETHTOOL_GSET) + bytes(40))  # struct ethtool_cmd has 44 bytes
    request = pack("16sP", name.encode(), command.buffer_info()[0])  # struct ifreq: name, pointer
    try:
        descriptor = netlink.by_device()
        try:
            fcntl.ioctl(descriptor.fileno(), _SIOCETHTOOL, request + bytes(16))
        finally:
            descriptor.close()
    except OSError:
        return None
    low, high = (unpack_from("=H", command, at)[0] for at in (_SPEED, _SPEED_HIGH))
    megabits = int(high) << 16 | int(low)
    return None if megabits in (0, 0xFFFF, _UNKNOWN) else megabits


def waiting(shown: str, uplink: str) -> dict[str, int]:
    """How many packets may wait there, by table (`arp_cache`, `ndisc_cache`), from `ip -j ntable show`."""
    import json  # not above: ADD and DEL render, and read nothing

    return {
        table["name"]: int(table["queue"])
        for table in json.loads(shown or "[]")
        if table.get("dev", "") == uplink and "queue" in table
    }


def let_wait(table: str, uplink: str, packets: int) -> str:
    """Let no more packets than that wait for each address."""
    return f"ntable change name {table} dev {uplink} queue {packets}\n"


def as_made(shown: str, uplink: str) -> str:
    """Give the uplink what the kernel gives every new interface; `shown` is `ip -j ntable show`'s."""
    usual = waiting(shown, "")
    return "".join(
        let_wait(table, uplink, usual[table])
        for table, packets in waiting(shown, uplink).items()
        if packets == MOST_WAITING and table in usual
    )


def segments(shown: str) -> dict[str, int]:
    """How many segments a packet of each device may have, from `ip -j -d link show type vxlan`."""
    import json  # not above: ADD and DEL render, and read nothing

    return {
        link["ifname"]: int(link["gso_max_segs"]) for link in json.loads(shown or "[]") if "ifname" in link
    }


def take_apart(device: str) -> str:
    """Let a device send no packet of several segments."""
    return f"link set dev {device} gso_max_segs {MOST_SEGMENTS}\n"
