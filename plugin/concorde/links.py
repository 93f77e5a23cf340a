"""The pod's way to the node: a bridge with the gateway's address, a veth pair, an address and a route.

Rendering (the functions that return `ip -batch` text) is apart from running (batches). Every name rendered
here has passed through names.py.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

from . import addresses, batches, routing, rtnetlink, tools
from .cni import DAMAGED, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leases import Link


# Who looks into IGMP takes a pod that asks as a querier does for a router, and gives it what is for others.
_BRIDGE = "type bridge mcast_snooping 0"
# What tells a bridge that this plugin made, or took on, from others (IFLA_IFALIAS).
ALIAS = "concorde"


def claim(link: Link) -> str:
    """A second name of the node's end, which the kernel gives once and frees with the link.

    So an address is never given twice, whatever became of the ledger that says so.
    """
    return f"{link.bridge}-{addresses.dotted(link.address)}"


def bridge_line(link: Link) -> str:
    """Make the bridge. A fixed hardware address, or it would change with every port that comes and goes."""
    mac = addresses.pod_mac(link.subnet.gateway)
    return f"link add name {link.bridge} address {mac} mtu {link.mtu} {_BRIDGE}\n"


def has_ipv6() -> bool:
    """Whether the kernel has IPv6; with `ipv6.disable=1` it refuses all that names it."""
    return os.path.exists("/proc/sys/net/ipv6/conf")


def pair_batch(link: Link, netns: str, ipv6: bool) -> str:
    """Join the pod to the bridge: the node's end up and in the bridge, the pod's end still down.

    The bridge's settings are given each time: that changes nothing on a whole bridge and repairs
    one whose maker was killed half way. `addrgenmode none`: with IPv6 addresses on a thousand ports each
    new one would be flooded with multicast to all the others, and nothing here speaks IPv6. `ipv6` says
    whether the kernel does.
    """
    gateway = f"{addresses.dotted(link.subnet.gateway)}/{link.subnet.prefix}"
    host_mac, pod_mac = addresses.host_mac(link.address), addresses.pod_mac(link.address)
    return (
        f"{_silenced(link.bridge, ipv6)}"
        f"link set dev {link.bridge} alias {ALIAS} {_BRIDGE}\n"
        f"addr replace {gateway} brd + dev {link.bridge}\n"
        f"link set dev {link.bridge} up\n"
        f"link add name {link.host_veth} address {host_mac} mtu {link.mtu} master {link.bridge} type veth"
        f" peer name {link.interface} address {pod_mac} mtu {link.mtu} netns {netns}\n"
        f"link property add dev {link.host_veth} altname {claim(link)}\n"
        f"{_silenced(link.host_veth, ipv6)}"
        f"link set dev {link.host_veth} up\n"
    )


def pod_batch(link: Link, ipv6: bool) -> str:
    """Inside the pod: address and link up; `ipv6` as for pair_batch()."""
    return (
        f"addr add {addresses.dotted(link.address)}/{link.subnet.prefix} brd + dev {link.interface}\n"
        f"{_silenced(link.interface, ipv6)}"
        f"link set dev {link.interface} up\n"
    )


def default_route(link: Link, verb: str) -> str:
    """The pod's, by the bridge: `add` or `prepend` it."""
    return f"route {verb} default via {addresses.dotted(link.subnet.gateway)} dev {link.interface}\n"


def _silenced(name: str, ipv6: bool) -> str:
    return f"link set dev {name} addrgenmode none\n" if ipv6 else ""


def make(link: Link, netns: str) -> None:
    """Make the pair, and the bridge if it is missing.

    Raises tools.CommandError, and CniError 107 if another has the address.
    """
    _ensure_bridge(link)
    _ensure_forwarding()
    try:
        batches.run("ip", pair_batch(link, netns, has_ipv6()))
    except tools.CommandError as failure:
        if f"altname {claim(link)}" not in str(failure) or failure.errno != rtnetlink.THERE_ALREADY:
            raise
        raise CniError(
            DAMAGED,
            f"a pod on {link.bridge} has {addresses.dotted(link.address)}, and no lease has it:"
            " run concorde rebuild",
        ) from failure


def configure(link: Link, netns: str, default: bool | None) -> bool:
    """Bring the pod's end to life; whether the pod has its default route there. Raises tools.CommandError.

    `default` says whether the pod is to have that; None, that it is if it has no other. Asked for, it comes
    before another, which is of use again when this link is gone.
    """
    batches.run("ip", pod_batch(link, has_ipv6()), netns)
    if default is False or (default is None and routing.has_default(netns)):
        return False
    batches.run("ip", default_route(link, "prepend" if default else "add"), netns)
    return True


def remove(name: str) -> None:
    """Delete a link of the node, if it is there; the pod's end goes with it. Raises tools.CommandError."""
    if not exists(name):
        return
    try:
        batches.run("ip", f"link delete dev {name}\n")
    except tools.CommandError:
        # The kernel deletes it on its own when the pod's namespace ends, perhaps just now.
        if exists(name):
            raise


class Removal:
    """remove() in a thread: the kernel makes its caller wait for a grace period, some 20 ms.

    Other work can be done meanwhile: `with Removal(name):`. At its end the link is gone. Raises what remove()
    does.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._failure: Exception | None = None
        self._ended = allocate_lock()

    def __enter__(self) -> None:
        self._ended.acquire()
        try:
            start_new_thread(self._run, ())
        except RuntimeError:  # there is no room for one: then one after the other
            self._run()

    def _run(self) -> None:
        try:
            remove(self._name)
        except Exception as failure:
            self._failure = failure
        finally:
            self._ended.release()

    def __exit__(self, *_: object) -> None:
        with self._ended:
            if self._failure is not None:
                raise self._failure


def exists(name: str) -> bool:
    """Whether this network namespace has a link: a look-up rather than a process."""
    # Not /sys/class/net, which shows the namespace it was mounted in.
    return os.path.exists(f"/proc/sys/net/ipv4/conf/{name}")


def shown(*which: str) -> list[dict[str, Any]]:
    """Links of the node as `ip -j -d link show` tells of them. Raises tools.CommandError."""
    import json  # not above: ADD and DEL seldom look

    found: list[dict[str, Any]] = json.loads(tools.run("ip", "-j", "-d", "link", "show", *which) or "[]")
    return [link for link in found if link.get("ifname")]


def _ensure_bridge(link: Link) -> None:
    if exists(link.bridge):
        return
    try:
        batches.run("ip", bridge_line(link))
    except tools.CommandError:
        # Another ADD may have made it meanwhile.
        if not exists(link.bridge):
            raise


def _ensure_forwarding() -> None:
    # The bridge is the pods' gateway, so the node must route (the reference bridge plugin's isGateway).
    switch = "/proc/sys/net/ipv4/ip_forward"
    with open(switch) as file:
        forwarding = file.read().strip()
    if forwarding == "0":
        with open(switch, "w") as file:
            file.write("1")
