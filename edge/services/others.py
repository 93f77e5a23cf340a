"""Who else serves a cluster's services on this node: its kube-proxy, in whatever mode, or a proxy like ours.

A kube-proxy is known by what it has in the kernel, for its process may be in another container. It names the
cluster's services there, so that of another cluster, which has other addresses, is in nobody's way. Sources:
kubernetes/pkg/proxy/{iptables,ipvs,nftables}/proxier.go; linux/netfilter_ipv4/ip_tables.h.
"""

from __future__ import annotations

import ctypes
import errno
import re
import socket
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from struct import pack, unpack_from

from edge import netlink as nl
from edge.services.node import RulesError, nft
from edge.services.rules import PREFIX

_GET_TABLE, _GET_CHAIN = 10 << 8 | 1, 10 << 8 | 4  # NFNL_SUBSYS_NFTABLES, NFT_MSG_GET*
_TABLE_NAME = 1  # NFTA_TABLE_NAME
_HEAD = pack("=BBH", nl.AF_INET, 0, 0)  # struct nfgenmsg
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+(?:/\d+)?")
VIRTUAL_SERVERS, LEGACY_TABLES = Path("/proc/net/ip_vs"), Path("/proc/net/ip_tables_names")
_CHAIN, _NAT = "KUBE-SERVICES", "nat"
_GET_INFO, _GET_ENTRIES = 64, 65  # IPT_SO_*
_INFO_BYTES, _SIZE_AT = 84, 80  # struct ipt_getinfo
_ENTRIES_AT, _ENTRY_BYTES = 40, 112  # of struct ipt_get_entries, struct ipt_entry


def serving(services: IPv4Network, table: str) -> str:
    """Return who else serves addresses of a range here, if ``table`` is ours; nothing if nobody does.

    Where two proxies like ours have one range, the first stays. Raises OSError.
    """
    tables = set(_tables())
    for mode, addresses in (
        ("iptables", _in_chain(_NAT, _CHAIN) if _NAT in tables else ()),
        ("iptables-legacy", _legacy()),
        ("ipvs", _virtual_servers()),
        ("nftables", _named("map", "kube-proxy", "service-ips") if "kube-proxy" in tables else ()),
    ):
        if any(address in services for address in addresses):
            return f"kube-proxy, mode {mode}"
    if table not in tables:
        for other in sorted(one for one in tables if one.startswith(PREFIX)):
            theirs = _ADDRESS.findall(_listed("chain", other, "nat-prerouting"))
            if any(IPv4Network(one).overlaps(services) for one in theirs):
                return f"the proxy that has table ip {other}"
    return ""


def _tables() -> Iterator[str]:
    for answer in nl.ask(_GET_TABLE, nl.DUMP, _HEAD, protocol=nl.NETFILTER):
        yield nl.attributes(answer, len(_HEAD))[_TABLE_NAME].rstrip(b"\0").decode()


def _in_chain(table: str, chain: str) -> Iterable[IPv4Address]:
    """Return the addresses in a chain's rules; none if there is no such chain."""
    body = _HEAD + nl.named(1, table) + nl.named(3, chain)  # NFTA_CHAIN_TABLE, _NAME
    with nl.Ignoring(errno.ENOENT):
        for _ in nl.ask(_GET_CHAIN, 0, body, protocol=nl.NETFILTER):
            return _named("chain", table, chain)
    return ()


def _named(kind: str, table: str, name: str) -> Iterator[IPv4Address]:
    found = _ADDRESS.findall(_listed(kind, table, name))
    yield from (IPv4Address(one) for one in found if "/" not in one)


def _listed(kind: str, table: str, name: str) -> str:
    """Return what nft lists; nothing of what has gone meanwhile."""
    try:
        return nft(["-n", "list", kind, "ip", table, name])
    except RulesError:
        return ""


def _virtual_servers() -> Iterator[IPv4Address]:
    """Yield what IPVS serves: lines like ``TCP  0A600001:01BB rr``."""
    try:
        lines = VIRTUAL_SERVERS.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        if found := re.match(r"(?:TCP|UDP)\s+([0-9A-F]{8}):", line):
            yield IPv4Address(int(found[1], 16))


def _legacy() -> Iterator[IPv4Address]:
    """Yield the addresses to which rules of the older iptables are, if a kube-proxy wrote some."""
    try:
        if _NAT not in LEGACY_TABLES.read_text(encoding="ascii").split():
            return  # to ask would make it
    except OSError:
        return
    entries = _entries()
    if _CHAIN.encode() + b"\0" not in entries:
        return
    at = 0
    while at + _ENTRY_BYTES <= len(entries):
        destination, mask = entries[at + 4 : at + 8], entries[at + 12 : at + 16]
        if mask == b"\xff" * 4:
            yield IPv4Address(destination)
        (following,) = unpack_from("=H", entries, at + 90)
        if not following:
            return
        at += following


def _entries() -> bytes:
    """Return the rules of the older iptables' table nat, as the kernel has them. Raises OSError."""
    name = _NAT.encode().ljust(32, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kernel:
        info = _asked(kernel, _GET_INFO, name.ljust(_INFO_BYTES, b"\0"))
        (size,) = unpack_from("=I", info, _SIZE_AT)
        asked = (name + pack("=I", size)).ljust(_ENTRIES_AT + size, b"\0")
        return _asked(kernel, _GET_ENTRIES, asked)[_ENTRIES_AT:]


def _asked(kernel: socket.socket, option: int, value: bytes) -> bytes:
    """Return what the kernel makes of an option's value: socket.getsockopt gives none. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    buffer, length = ctypes.create_string_buffer(value, len(value)), ctypes.c_uint(len(value))
    if library.getsockopt(kernel.fileno(), socket.IPPROTO_IP, option, buffer, ctypes.byref(length)):
        number = ctypes.get_errno()
        raise OSError(number, f"the older iptables cannot be read: {errno.errorcode.get(number, number)}")
    return buffer.raw
