"""What the kernel remembers of UDP to services, and how it forgets it.

A client that goes on sending from one port goes on to the endpoint it had, for as long as it sends: also when
that is gone. Source: linux/netfilter/nfnetlink_conntrack.h; net/netfilter/nf_conntrack_netlink.c.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Network
from struct import pack, unpack
from typing import NamedTuple

from edge import netlink as nl
from edge.services.rules import UDP, Port, Target

_CONNTRACK = 1 << 8  # NFNL_SUBSYS_CTNETLINK
_GET, _DELETE = _CONNTRACK | 1, _CONNTRACK | 2  # IPCTNL_MSG_CT_*
_ORIGINAL, _REPLY, _ID, _FILTER = 1, 2, 12, 25  # CTA_TUPLE_ORIG, _REPLY, CTA_ID, CTA_FILTER
_IP, _PROTOCOL = 1, 2  # CTA_TUPLE_*
_SOURCE, _DESTINATION = 1, 2  # CTA_IP_V4_SRC, _DST
_NUMBER, _DESTINATION_PORT, _SOURCE_PORT = 1, 3, 2  # CTA_PROTO_*
_FILTER_ORIGINAL = 1  # CTA_FILTER_ORIG_FLAGS
_BY_DESTINATION, _BY_NUMBER = 1 << 1, 1 << 3  # CTA_FILTER_FLAG of CTA_IP_DST and of CTA_PROTO_NUM
_HEAD = pack("=BBH", nl.AF_INET, 0, 0)  # struct nfgenmsg


class Flow(NamedTuple):
    """A client's UDP to a port, who answers it, and by what the kernel knows it."""

    to: Port
    server: Target
    key: bytes


def flows(services: IPv4Network) -> Iterator[Flow]:
    """Yield the UDP flows to a range of addresses, or to one. Raises OSError."""
    first, last = (int(address) for address in (services[0], services[-1]))
    for body in nl.ask(_GET, nl.DUMP, _HEAD + _of_udp(services), protocol=nl.NETFILTER):
        flow = _flow(body, first, last)
        if flow is not None:
            yield flow


def forget(flow: Flow) -> None:
    """Let the next packet of a flow begin another; one that ended meanwhile is none. Raises OSError."""
    with nl.Ignoring(errno.ENOENT):
        for _ in nl.ask(_DELETE, nl.ACK, _HEAD + flow.key, protocol=nl.NETFILTER):
            pass


def stale(flow: Flow, alive: Mapping[Port, Collection[Target]], servers: Collection[Port]) -> bool:
    """Whether a flow goes where no endpoint of its service is; ``servers`` are all that were endpoints.

    To a service of ours that was none before, a flow may have gone untranslated. A service that is none of
    ours is somebody else's, unless the flow goes to an endpoint of ours: then it was.
    """
    if flow.to in alive:
        return flow.server not in alive[flow.to]
    return Port(flow.server.address, UDP, flow.server.port) in servers


def _of_udp(services: IPv4Network) -> bytes:
    """Return what lets the kernel say only UDP, and to one address if it is one; before Linux 5.8: all."""
    tuple_ = nl.nested(_PROTOCOL, nl.attribute(_NUMBER, pack("=B", socket.IPPROTO_UDP)))
    by = _BY_NUMBER
    if services.num_addresses == 1:
        address = services.network_address.packed
        tuple_ = nl.nested(_IP, nl.attribute(_DESTINATION, address)) + tuple_
        by |= _BY_DESTINATION
    return nl.nested(_ORIGINAL, tuple_) + nl.nested(_FILTER, nl.u32(_FILTER_ORIGINAL, by))


def _flow(body: bytes, first: int, last: int) -> Flow | None:
    """Return a flow to an address of a range, if it is one of UDP."""
    entry = nl.attributes(body, len(_HEAD))
    if _ORIGINAL not in entry or _REPLY not in entry:
        return None
    original = nl.attributes(entry[_ORIGINAL])
    addresses, protocol = nl.attributes(original[_IP]), nl.attributes(original[_PROTOCOL])
    if protocol[_NUMBER][0] != socket.IPPROTO_UDP or _DESTINATION not in addresses:
        return None
    (destination,) = unpack("!I", addresses[_DESTINATION])
    if not first <= destination <= last:
        return None
    reply = nl.attributes(entry[_REPLY])
    server = nl.attributes(reply[_IP])[_SOURCE]
    key = nl.attribute(_ORIGINAL | nl.NESTED, entry[_ORIGINAL])
    if _ID in entry:
        key += nl.attribute(_ID, entry[_ID])
    return Flow(
        Port(socket.inet_ntoa(addresses[_DESTINATION]), UDP, _number(protocol[_DESTINATION_PORT])),
        Target(socket.inet_ntoa(server), _number(nl.attributes(reply[_PROTOCOL])[_SOURCE_PORT])),
        key,
    )


def _number(value: bytes) -> int:
    return int(unpack("!H", value)[0])
