"""What `ip -batch` and `tc -batch` would do with the lines of this plugin, told to the kernel directly.

Lines stay what is rendered, tested and shown when one fails: who reads it can type it. But a program takes
2 ms to start, a pod waits for five of them, and one may go on when this process has been killed; a message
has been heeded whole, or not at all, when it is answered. Only what this plugin writes is understood.

Source: rtnetlink(7); linux/if_link.h, linux/if_addr.h, linux/rtnetlink.h, linux/pkt_sched.h,
linux/pkt_cls.h; iproute2's ip/iplink.c and tc/*.c.
"""

from __future__ import annotations

import os
from struct import pack, unpack_from

from edge import netlink as nl

from . import addresses, namespaces, rtnetlink, tools
from .cni import in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Sequence

    Message = tuple[int, int, bytes]  # kind, flags, body

_GSO_MAX_SEGS, _GSO_MAX_SIZE, _PROPERTIES, _ALTNAME = 40, 41, 52, 53  # IFLA_*
_SNOOPING, _PEER, _ADDRGENMODE = 23, 1, 8  # IFLA_BR_MCAST_SNOOPING, VETH_INFO_PEER, IFLA_INET6_ADDR_GEN_MODE
_NO_ADDRESS = 1  # IN6_ADDR_GEN_MODE_NONE
_NDTA_NAME, _NDTA_PARMS, _NDTPA_INDEX, _NDTPA_QUEUE = 1, 6, 1, 8

_HTB_CLASS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7  # TCA_HTB_*
_HTB_VERSION, _HTB_R2Q = 3, 10
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6  # TCA_TBF_*
# TCA_FQ_CODEL_*, and how each is written: a target in seconds is microseconds to the kernel.
_FQ_CODEL = {"target": 1, "flows": 5, "drop_batch": 8, "memory_limit": 9}
_U32_CLASS, _U32_SELECTOR, _U32_TERMINAL = 1, 5, 1  # TCA_U32_*, TC_U32_TERMINAL
_PROTOCOLS = {"ip": 0x0800, "arp": 0x0806}  # linux/if_ether.h
_ETHERNET = 1  # TC_LINKLAYER_ETHERNET: with it the kernel needs no table of what each size takes
_MOST = 0xFFFFFFFF
_TICKS_A_SECOND = 15_625_000  # of 64 ns: PSCHED_SHIFT, include/net/pkt_sched.h

# What each line does, by its first two words.
_FLAGS = {
    "add": nl.CREATE | nl.EXCLUSIVE,
    "replace": nl.CREATE | nl.REPLACE,
    "prepend": nl.CREATE,
    "change": 0,
    "set": 0,
    "delete": 0,
}


def run(tool: str, lines: str, netns: str = "") -> None:
    """Do what stands in the lines, up to the first that fails, in another network namespace if one is given.

    `tool` is `ip` or `tc`. Raises tools.CommandError.
    """
    if not lines:
        return
    number, line, batch = 0, "-batch", None
    try:
        batch = Batch(namespaces.opened(netns))
        for line in lines.splitlines():
            number += 1
            batch.tell(line)
    except OSError as error:
        raise tools.CommandError([tool, line], in_words(error), number, error.errno or 0) from error
    finally:
        if batch is not None:
            batch.close()


def run_all(*batches: tuple[str, str]) -> None:
    """Run batches of `ip`, `tc` and `nft`: nft, which is a program, beside the others.

    Raises tools.CommandError when all have ended.
    """
    rules = "".join(lines for tool, lines in batches if tool == "nft")
    nft = tools.start("nft", "-f", "-") if rules else None
    if nft is not None:
        nft.give(rules)
    try:
        for tool, lines in batches:
            if tool != "nft":
                run(tool, lines)
    finally:
        if nft is not None:
            nft.wait()


class Batch:
    """Lines that become messages on one socket; for who has many, one after another."""

    def __init__(self, kernel: socket) -> None:
        self._kernel = kernel
        self._opened: list[int] = []
        self._indexes: dict[str, int] = {}

    def close(self) -> None:
        """End it."""
        self._kernel.close()
        for descriptor in self._opened:
            os.close(descriptor)

    def tell(self, line: str) -> None:
        """Do what stands in a line. Raises OSError."""
        thing, verb, *argv = line.split()
        rendered: dict[str, Callable[[str, list[str]], Message]] = {
            "link": self._link,
            "addr": self._address,
            "route": self._route,
            "ntable": self._neighbour_table,
            "qdisc": self._qdisc,
            "class": self._class,
            "filter": self._filter,
        }
        nl.tell(*rendered[thing](verb, argv), self._kernel)

    def _index(self, name: str) -> int:
        if name not in self._indexes:
            self._indexes[name] = rtnetlink.index_of(name, self._kernel)
        return self._indexes[name]

    def _link(self, verb: str, argv: list[str]) -> Message:
        if verb == "property":  # property add dev NAME altname NAME
            options = _options(argv[1:])
            names = nl.nested(_PROPERTIES, nl.named(_ALTNAME, options["altname"]))
            flags = nl.CREATE | nl.EXCLUSIVE | nl.APPEND
            return nl.RTM_NEWLINKPROP, flags, nl.ifinfomsg(self._index(options["dev"])) + names
        if verb == "delete":
            return nl.RTM_DELLINK, 0, nl.ifinfomsg(self._index(argv[-1]))
        up = nl.IFF_UP if argv[-1] == "up" else 0
        own, _, peers = " ".join(argv[: -1 if up else None]).partition(" peer ")
        options = _options(own.split())
        index = self._index(options["dev"]) if verb == "set" else 0
        content = self._of_link(options)
        if "type" in options:
            data = b""
            if "mcast_snooping" in options:
                data = nl.attribute(_SNOOPING, pack("B", int(options["mcast_snooping"])))
            if peers:
                data = nl.attribute(_PEER, nl.ifinfomsg() + self._of_link(_options(peers.split())))
            kind = nl.named(nl.IFLA_INFO_KIND, options["type"])
            content += nl.nested(nl.IFLA_LINKINFO, kind + nl.nested(nl.IFLA_INFO_DATA, data))
        return nl.RTM_NEWLINK, _FLAGS[verb], nl.ifinfomsg(index, up, up) + content

    def _of_link(self, options: dict[str, str]) -> bytes:
        content = b""
        for key, value in options.items():
            if key == "name":
                content += nl.named(nl.IFLA_IFNAME, value)
            elif key == "address":
                content += nl.attribute(nl.IFLA_ADDRESS, bytes.fromhex(value.replace(":", "")))
            elif key == "master":
                content += nl.u32(nl.IFLA_MASTER, self._index(value))
            elif key == "netns":
                self._opened.append(os.open(value, os.O_RDONLY | os.O_CLOEXEC))
                content += nl.u32(nl.IFLA_NET_NS_FD, self._opened[-1])
            elif key == "alias":
                content += nl.attribute(nl.IFLA_IFALIAS, value.encode())
            elif key == "addrgenmode":  # always none
                mode = nl.attribute(_ADDRGENMODE, pack("B", _NO_ADDRESS))
                content += nl.nested(nl.IFLA_AF_SPEC, nl.nested(nl.AF_INET6, mode))
            elif key in _NUMBERS:
                content += nl.u32(_NUMBERS[key], int(value))
        return content

    def _address(self, verb: str, argv: list[str]) -> Message:
        text, *rest = argv  # ADDRESS/PREFIX brd + dev NAME
        dotted, _, prefix = text.partition("/")
        own = addresses.parse(dotted)
        body = pack("=BBBBI", nl.AF_INET, int(prefix), 0, 0, self._index(_options(rest)["dev"]))
        for kind in (nl.IFA_LOCAL, nl.IFA_ADDRESS):
            body += nl.attribute(kind, own.to_bytes(4, "big"))
        if int(prefix) <= 30:
            body += nl.attribute(nl.IFA_BROADCAST, (own | _MOST >> int(prefix)).to_bytes(4, "big"))
        return nl.RTM_NEWADDR, _FLAGS[verb], body

    def _route(self, verb: str, argv: list[str]) -> Message:
        options = _options(argv[1:])  # default via ADDRESS dev NAME
        body = nl.rtmsg(0, nl.RT_TABLE_MAIN, nl.RTPROT_BOOT, nl.RTN_UNICAST)
        body += nl.attribute(nl.RTA_GATEWAY, addresses.parse(options["via"]).to_bytes(4, "big"))
        return nl.RTM_NEWROUTE, _FLAGS[verb], body + nl.u32(nl.RTA_OIF, self._index(options["dev"]))

    def _neighbour_table(self, verb: str, argv: list[str]) -> Message:
        options = _options(argv)  # name TABLE dev NAME queue PACKETS
        of_device = nl.u32(_NDTPA_INDEX, self._index(options["dev"]))
        of_device += nl.u32(_NDTPA_QUEUE, int(options["queue"]))
        content = nl.named(_NDTA_NAME, options["name"]) + nl.nested(_NDTA_PARMS, of_device)
        return nl.RTM_SETNEIGHTBL, 0, bytes(4) + content

    def _qdisc(self, verb: str, argv: list[str]) -> Message:
        where, kind, options = _parted(argv)
        content = _of_kind(kind, _QDISCS[kind](_options(options))) if kind else b""
        return nl.RTM_NEWQDISC + (verb == "delete"), _FLAGS[verb], self._tcmsg(where, "handle") + content

    def _class(self, verb: str, argv: list[str]) -> Message:
        where, kind, options = _parted(argv)
        content = _of_kind(kind, _htb_class(_options(options))) if kind else b""
        return nl.RTM_NEWTCLASS + (verb == "delete"), _FLAGS[verb], self._tcmsg(where, "classid") + content

    def _filter(self, verb: str, argv: list[str]) -> Message:
        where, kind, options = _parted(argv)  # ... protocol ip pref 1 u32 match u32 0 0 at 16 classid CLASS
        (protocol,) = unpack_from("=H", pack("!H", _PROTOCOLS[where["protocol"]]))
        head = self._tcmsg(where, "handle", int(where["pref"]) << 16 | protocol)
        content = _of_kind(kind, _u32_filter(options)) if kind else b""
        return nl.RTM_NEWTFILTER + (verb == "delete"), _FLAGS[verb], head + content

    def _tcmsg(self, where: dict[str, str], handle: str, info: int = 0) -> bytes:
        numbers = _handle(where.get(handle, "")), _handle(where.get("parent", ""))
        return nl.tcmsg(self._index(where["dev"]), *numbers, info)


_NUMBERS = {"mtu": nl.IFLA_MTU, "gso_max_size": _GSO_MAX_SIZE, "gso_max_segs": _GSO_MAX_SEGS}


def _u32_filter(options: list[str]) -> bytes:
    """A selector of one key: what an address is compared with, in its place."""
    _, _, value, mask, *at = options[:-2]
    selector = pack("=BBBxHHHHI", _U32_TERMINAL, 0, 1, 0, 0, 0, 0, 0)
    key = pack("!II", int(mask, 16), int(value, 16)) + pack("=iI", int(at[1]) if at else 0, 0)
    chosen = nl.u32(_U32_CLASS, _handle(options[-1])) + nl.attribute(_U32_SELECTOR, selector + key)
    return nl.nested(nl.TCA_OPTIONS, chosen)


def _options(argv: Sequence[str]) -> dict[str, str]:
    """Options by their names, each of which is followed by its value."""
    return dict(zip(argv[::2], argv[1::2]))


def _parted(argv: list[str]) -> tuple[dict[str, str], str, list[str]]:
    """Where something is, of which kind it is, and its options."""
    argv = [word for one in argv for word in (("parent", "root") if one == "root" else (one,))]
    at = next((at for at in range(0, len(argv), 2) if argv[at] in _KINDS), len(argv))
    return _options(argv[:at]), "".join(argv[at : at + 1]), argv[at + 1 :]


def _handle(text: str) -> int:
    """`c0de:10`, or `root`, as the kernel has it; 0 for none."""
    major, _, minor = text.partition(":")
    return nl.TC_H_ROOT if text == "root" else int(major or "0", 16) << 16 | int(minor or "0", 16)


def _of_kind(kind: str, options: bytes) -> bytes:
    return nl.named(nl.TCA_KIND, kind) + options


def _htb(options: dict[str, str]) -> bytes:
    whole = pack("=IIIII", _HTB_VERSION, _HTB_R2Q, int(options["default"], 16), 0, 0)
    return nl.nested(nl.TCA_OPTIONS, nl.attribute(_HTB_INIT, whole))


def _fifo(options: dict[str, str]) -> bytes:
    return nl.u32(nl.TCA_OPTIONS, int(options["limit"]))


def _tbf(options: dict[str, str]) -> bytes:
    rate, burst = _bytes_a_second(options["rate"]), int(options["burst"].rstrip("b"))
    parameters = _spec(rate) + bytes(12) + pack("=III", int(options["limit"]), _ticks(burst, rate), 0)
    content = nl.attribute(_TBF_PARMS, parameters) + nl.u32(_TBF_BURST, burst) + _rate64(_TBF_RATE64, rate)
    return nl.nested(nl.TCA_OPTIONS, content)


def _fq_codel(options: dict[str, str]) -> bytes:
    content = b""
    for key, value in options.items():
        content += nl.u32(_FQ_CODEL[key], int(value[:-1]) * 1_000_000 if key == "target" else int(value))
    return nl.nested(nl.TCA_OPTIONS, content)


_QDISCS: dict[str, Callable[[dict[str, str]], bytes]] = {
    "htb": _htb,
    "tbf": _tbf,
    "bfifo": _fifo,
    "fq_codel": _fq_codel,
}
_KINDS = {*_QDISCS, "u32"}


def _htb_class(options: dict[str, str]) -> bytes:
    rate, ceil = _bytes_a_second(options["rate"]), _bytes_a_second(options["ceil"])
    count = int(options.get("overhead", "0")), int(options.get("mpu", "0"))
    at_once = (_ticks(int(options[key].rstrip("b")), of) for key, of in (("burst", rate), ("cburst", ceil)))
    parameters = _spec(rate, *count) + _spec(ceil, *count)
    parameters += pack("=IIIII", *at_once, int(options["quantum"]), 0, int(options.get("prio", "0")))
    large = _rate64(_HTB_RATE64, rate) + _rate64(_HTB_CEIL64, ceil)
    return nl.nested(nl.TCA_OPTIONS, nl.attribute(_HTB_CLASS, parameters) + large)


def _bytes_a_second(text: str) -> int:
    return int(text[: -len("bit")]) // 8


def _spec(rate: int, overhead: int = 0, least: int = 0) -> bytes:
    """struct tc_ratespec: a rate (bytes a second), and what a packet counts besides, and at least."""
    return pack("=BBHhHI", 0, _ETHERNET, overhead, -1, least, min(rate, _MOST))


def _rate64(kind: int, rate: int) -> bytes:
    return nl.attribute(kind, pack("=Q", rate)) if rate > _MOST else b""


def _ticks(size: int, rate: int) -> int:
    """How long so many bytes take at a rate (bytes a second), as the kernel counts time."""
    return min(_MOST, size * _TICKS_A_SECOND // rate)
