"""Elements of nftables' sets without nft, which costs a pod two milliseconds: put in, taken out, and counted.

One batch is one transaction. Source: linux/netfilter/nfnetlink.h and nf_tables.h; net/netfilter/nfnetlink.c,
nfnetlink_rcv_batch.
"""

from __future__ import annotations

from struct import pack, unpack_from

from edge import netlink as nl

from .. import addresses
from ..rtnetlink import NO_SUCH_THING
from . import limits, tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable, Iterator, Sequence

    from .limits import Element

_NFTABLES = 10  # NFNL_SUBSYS_NFTABLES
_BEGIN, _END = 0x10, 0x11  # NFNL_MSG_BATCH_*
_GET_TABLE, _GET_CHAIN = _NFTABLES << 8 | 1, _NFTABLES << 8 | 4  # NFT_MSG_GETTABLE, _GETCHAIN
_GET_ELEMENTS, _GET_GENERATION = _NFTABLES << 8 | 13, _NFTABLES << 8 | 16  # NFT_MSG_GETSETELEM, _GETGEN
_MESSAGES = {"add": _NFTABLES << 8 | 12, "delete": _NFTABLES << 8 | 14}  # NFT_MSG_NEWSETELEM, _DELSETELEM
_FAMILIES = {"inet": 1, "ip": 2, "arp": 3, "netdev": 5, "bridge": 7, "ip6": 10}  # NFPROTO_*
_TABLE_NAME, _CHAIN_TABLE, _CHAIN_NAME, _CHAIN_HOOK = 1, 1, 3, 4  # NFTA_TABLE_NAME, NFTA_CHAIN_*
_HOOK_NUMBER = 1  # NFTA_HOOK_HOOKNUM
_CHANGES = 1 << 7 - 1  # of the group NFNLGRP_NFTABLES
_TABLE, _SET, _ELEMENTS, _ELEMENT = 1, 2, 3, 1  # NFTA_SET_ELEM_LIST_*, NFTA_LIST_ELEM
_KEY, _DATA, _VALUE = 1, 2, 1  # NFTA_SET_ELEM_KEY and _DATA, NFTA_DATA_VALUE
_EXPRESSION = 7  # NFTA_SET_ELEM_EXPR
_NAME, _OF_EXPRESSION = 1, 2  # NFTA_EXPR_NAME and _DATA
_BYTES, _PACKETS = 1, 2  # NFTA_COUNTER_*
_COUNTER = b"counter\0"
_LOOKS = 5  # at sets that others change meanwhile


def change(verb: str, elements: Sequence[Element]) -> None:
    """`add` or `delete` elements, all or none. Raises OSError with the kernel's number."""
    if not elements:
        return
    parts = [(_BEGIN, 0, _header(0, _NFTABLES))]
    for number, (family, name, text) in enumerate(elements, 1):
        flags = (nl.CREATE if verb == "add" else 0) | (nl.ACK if number == len(elements) else 0)
        key, limit = limits.parted(text)
        body = _body(family, name, key, limit if verb == "add" else "")
        parts.append((_MESSAGES[verb], flags, _header(_FAMILIES[family]) + body))
    parts.append((_END, 0, _header(0, _NFTABLES)))
    try:
        # Errors come before the acknowledgement, which is asked of the last element.
        nl.tell_all(parts, nl.NETFILTER)
    except OSError as error:
        shown = ", ".join(f"{name} {{ {text} }}" for _, name, text in elements)
        raise OSError(error.errno, f"nftables: {error.strerror}: {shown[:200]}") from error


def changes() -> socket:
    """What has something to read after each change of any table. Raises OSError."""
    changes = nl.opened(nl.NETFILTER, _CHANGES)
    changes.setblocking(False)
    return changes


def has_table(family: str) -> bool:
    """Whether there is a table of ours."""
    return _is_there(_GET_TABLE, family, nl.named(_TABLE_NAME, tables.TABLE))


def has_chain(family: str, name: str) -> bool:
    """Whether our table has such a chain."""
    body = nl.named(_CHAIN_TABLE, tables.TABLE) + nl.named(_CHAIN_NAME, name)
    return _is_there(_GET_CHAIN, family, body)


def tables_at(hook: int) -> list[tuple[str, str]]:
    """Family and name of each table, anybody's, that has a chain at a hook of its family. Raises OSError."""
    families = {number: family for family, number in _FAMILIES.items()}
    found = {}
    for message in nl.ask(_GET_CHAIN, nl.DUMP, _header(0), protocol=nl.NETFILTER):
        said = nl.attributes(message, 4)
        where = nl.attributes(said.get(_CHAIN_HOOK, b"")).get(_HOOK_NUMBER)
        if where == pack("!I", hook):
            found[families.get(message[0], ""), nl.text(said[_CHAIN_TABLE])] = True
    return list(found)


def _is_there(kind: int, family: str, body: bytes) -> bool:
    try:
        return any(True for _ in nl.ask(kind, 0, _header(_FAMILIES[family]) + body, protocol=nl.NETFILTER))
    except OSError:
        return False


def counted(elements: Iterable[Element]) -> dict[Element, int]:
    """The packets that each of these elements has counted, of those that are there and count.

    Each set is read once, however many elements are asked for. Raises OSError; EPERM without CAP_NET_ADMIN.
    """
    wanted: dict[tuple[str, str], dict[bytes, Element]] = {}
    for element in elements:
        family, name, text = element
        if tables.counts(family, name):
            wanted.setdefault((family, name), {})[_key(family, name, limits.parted(text)[0])] = element
    asked = nl.opened(nl.NETFILTER)
    try:
        for _ in range(_LOOKS):
            # What is put into a set or taken out while it is read may hide another element.
            before = _generation(asked)
            found = {
                keys[key]: packets
                for of, keys in wanted.items()
                for key, packets in _packets(asked, *of)
                if key in keys
            }
            if _generation(asked) == before:
                break
        return found
    finally:
        asked.close()


def _generation(asked: socket) -> bytes:
    """What becomes another with each transaction."""
    (answer,) = nl.ask(_GET_GENERATION, 0, _header(0), asked)
    return answer


def _packets(asked: socket, family: str, name: str) -> Iterator[tuple[bytes, int]]:
    """Key and packets of each element of a set; none where there is no such set."""
    with nl.Ignoring(NO_SUCH_THING):
        yield from _counters(asked, family, name, _PACKETS)


def bytes_counted(asked: socket, family: str, name: str) -> Iterator[tuple[bytes, int]]:
    """Key and bytes of each element of a set that counts. Raises OSError."""
    return _counters(asked, family, name, _BYTES)


def _counters(asked: socket, family: str, name: str, which: int) -> Iterator[tuple[bytes, int]]:
    body = _header(_FAMILIES[family]) + _of_set(name)
    end = at = 0  # of the key, and where the count is
    head = between = b""
    for message in nl.ask(_GET_ELEMENTS, nl.DUMP, body, asked):
        for content in nl.every(nl.attributes(message, 4).get(_ELEMENTS, b"")):
            # Most are laid out as the one before, and a set may have hundreds, which are read every 10 ms.
            if at and content.startswith(head) and content[end:at] == between:
                yield content[len(head) : end], unpack_from("!Q", content, at)[0]
                continue
            element = nl.attributes(content)
            expression = nl.attributes(element.get(_EXPRESSION, b""))
            if expression.get(_NAME) == _COUNTER:
                key = nl.attributes(element[_KEY])[_VALUE]
                counted = nl.attributes(expression[_OF_EXPRESSION])[which]
                yield key, unpack_from("!Q", counted)[0]
                head, end = content[:8], 8 + len(key)
                at = content.find(_COUNTER, end) + len(_COUNTER) + 12 * which - 4
                between = content[end:at]
                if content[8:end] != key or content[at : at + 8] != counted:
                    at = 0


def _header(family: int, resource: int = 0) -> bytes:
    """struct nfgenmsg."""
    return pack("!BBH", family, 0, resource)


def _body(family: str, name: str, text: str, limit: str) -> bytes:
    key, _, value = text.partition(" : ")
    element = nl.nested(_KEY, nl.attribute(_VALUE, _key(family, name, key)))
    if value:
        major, _, minor = value.partition(":")
        element += nl.nested(_DATA, nl.attribute(_VALUE, pack("=I", int(major, 16) << 16 | int(minor, 16))))
    if limit:
        expression = nl.attribute(_NAME, b"limit\0") + nl.nested(_OF_EXPRESSION, limits.attributes(limit))
        element += nl.nested(_EXPRESSION, expression)
    return _of_set(name) + nl.nested(_ELEMENTS, nl.nested(_ELEMENT, element))


def _of_set(name: str) -> bytes:
    return nl.named(_TABLE, tables.TABLE) + nl.named(_SET, name)


def _key(family: str, name: str, text: str) -> bytes:
    parts = [_part(kind, part) for kind, part in zip(tables.key_of(family, name), text.split(" . "))]
    # Of several, each fills whole registers of 4 bytes.
    return parts[0] if len(parts) == 1 else b"".join(part + bytes(-len(part) % 4) for part in parts)


def _part(kind: str, text: str) -> bytes:
    """One part of a key, as the kernel keeps it. Data types: nftables, src/datatype.c and src/meta.c."""
    if "ifname" in kind:
        return text.strip('"').encode().ljust(16, b"\0")
    if kind == "ether_addr":
        return bytes.fromhex(text.replace(":", ""))
    if kind == "ipv4_addr":
        return addresses.parse(text).to_bytes(4, "big")
    if kind == "ipv6_addr":
        return addresses.ipv6_number(text).to_bytes(16, "big")
    if kind == "inet_service":
        return int(text).to_bytes(2, "big")
    return int(text, 0).to_bytes(int(kind.rpartition(",")[2]) // 8, "big")  # so many bits of a packet
