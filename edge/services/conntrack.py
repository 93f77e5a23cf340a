"""What the kernel remembers of UDP to services, and of TCP that nobody answers, and how it forgets it.

A client that goes on sending from one port goes on to the endpoint it had, for as long as it sends: also when
that is gone. So does one that goes on asking for a connection by TCP, and for two minutes whoever has its
port after it (SYN_SENT in nf_conntrack_proto_tcp.c). Source: linux/netfilter/nfnetlink_conntrack.h;
net/netfilter/nf_conntrack_netlink.c.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Network
from struct import pack, unpack
from typing import NamedTuple

from edge import netlink as nl
from edge.services.rules import TCP, UDP, Port, Target

_CONNTRACK = 1 << 8  # NFNL_SUBSYS_CTNETLINK
_GET, _DELETE = _CONNTRACK | 1, _CONNTRACK | 2  # IPCTNL_MSG_CT_*
_ORIGINAL, _REPLY, _STATUS, _ID = 1, 2, 3, 12  # CTA_TUPLE_ORIG, _REPLY, CTA_STATUS, _ID
_FILTER, _STATUS_MASK = 25, 26  # CTA_FILTER, CTA_STATUS_MASK
_ANSWERED = 1 << 1  # IPS_SEEN_REPLY
_IP, _PROTOCOL = 1, 2  # CTA_TUPLE_*
_SOURCE, _DESTINATION = 1, 2  # CTA_IP_V4_SRC, _DST
_NUMBER, _DESTINATION_PORT, _SOURCE_PORT = 1, 3, 2  # CTA_PROTO_*
_FILTER_ORIGINAL = 1  # CTA_FILTER_ORIG_FLAGS
_BY_DESTINATION, _BY_NUMBER = 1 << 1, 1 << 3  # CTA_FILTER_FLAG of CTA_IP_DST and of CTA_PROTO_NUM
_HEAD = pack("=BBH", nl.AF_INET, 0, 0)  # struct nfgenmsg
_NUMBERS = {UDP: socket.IPPROTO_UDP, TCP: socket.IPPROTO_TCP}
# Connections that are answered go on until they end; older kernels say these, too.
_UNANSWERED = nl.attribute(_STATUS, pack("!I", 0)) + nl.attribute(_STATUS_MASK, pack("!I", _ANSWERED))
_WHICH = {UDP: b"", TCP: _UNANSWERED}


class Flow(NamedTuple):
    """What a client sends to a port, who answers it, or would, and by what the kernel knows it."""

    to: Port
    server: Target
    key: bytes


def flows(services: IPv4Network, protocol: str = UDP) -> Iterator[Flow]:
    """Yield flows of UDP, or those of TCP without an answer, to a range or one address. Raises OSError."""
    first, last = (int(address) for address in (services[0], services[-1]))
    asked = _HEAD + _of(services, protocol) + _WHICH[protocol]
    for body in nl.ask(_GET, nl.DUMP, asked, protocol=nl.NETFILTER):
        flow = _flow(body, first, last, protocol)
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
    return Port(flow.server.address, flow.to.protocol, flow.server.port) in servers


def _of(services: IPv4Network, protocol: str) -> bytes:
    """Return what lets the kernel say one protocol, and to one address if it is one.

    Before Linux 5.8 it says all.
    """
    tuple_ = nl.nested(_PROTOCOL, nl.attribute(_NUMBER, pack("=B", _NUMBERS[protocol])))
    by = _BY_NUMBER
    if services.num_addresses == 1:
        address = services.network_address.packed
        tuple_ = nl.nested(_IP, nl.attribute(_DESTINATION, address)) + tuple_
        by |= _BY_DESTINATION
    return nl.nested(_ORIGINAL, tuple_) + nl.nested(_FILTER, nl.u32(_FILTER_ORIGINAL, by))


def _flow(body: bytes, first: int, last: int, protocol: str) -> Flow | None:
    """Return a flow to an address of a range, if it is one that was asked for."""
    entry = nl.attributes(body, len(_HEAD))
    if _ORIGINAL not in entry or _REPLY not in entry:
        return None
    original = nl.attributes(entry[_ORIGINAL])
    addresses, ports = nl.attributes(original[_IP]), nl.attributes(original[_PROTOCOL])
    if ports[_NUMBER][0] != _NUMBERS[protocol] or _DESTINATION not in addresses:
        return None
    if protocol == TCP and _number32(entry[_STATUS]) & _ANSWERED:
        return None
    destination = _number32(addresses[_DESTINATION])
    if not first <= destination <= last:
        return None
    reply = nl.attributes(entry[_REPLY])
    server = nl.attributes(reply[_IP])[_SOURCE]
    key = nl.attribute(_ORIGINAL | nl.NESTED, entry[_ORIGINAL])
    if _ID in entry:
        key += nl.attribute(_ID, entry[_ID])
    return Flow(
        Port(socket.inet_ntoa(addresses[_DESTINATION]), protocol, _number(ports[_DESTINATION_PORT])),
        Target(socket.inet_ntoa(server), _number(nl.attributes(reply[_PROTOCOL])[_SOURCE_PORT])),
        key,
    )


def _number32(value: bytes) -> int:
    return int(unpack("!I", value)[0])


def _number(value: bytes) -> int:
    return int(unpack("!H", value)[0])
