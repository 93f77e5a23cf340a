"""Messages to the kernel, byte by byte, as rtnetlink(7) and nf_tables.h lay them out, and its answers."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from concorde import metrics, namespaces, rtnetlink
from concorde.node import limits, nfnetlink

from edge import netlink

REQUEST, ACK, DUMP, REPLACE, CREATE = 0x1, 0x4, 0x300, 0x100, 0x400
NESTED = 0x8000


def message(kind: int, body: bytes, number: int = 1, flags: int = 0) -> bytes:
    """One message, padded."""
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body + bytes(-len(body) % 4)


def error(number: int) -> bytes:
    return message(2, struct.pack("=i", -number) + bytes(16))


DONE = message(3, bytes(4))


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def link(index: int, *attributes: bytes, family: int = 0) -> bytes:
    return struct.pack("=BxHiII", family, 1, index, 0, 0) + b"".join(attributes)


def ask_of(index: int) -> bytes:
    """What asks for a link, or with 0 for one that attributes tell, or for all."""
    return struct.pack("=BxHiII", 0, 0, index, 0, 0)


def name(text: str) -> bytes:
    return attribute(3, text.encode() + b"\0")


class FakeKernel:
    """A socket that keeps what was sent, and gives its answers one after the other."""

    def __init__(self, *answers: bytes) -> None:
        self.sent: list[bytes] = []
        self.protocols: list[int] = []
        self.closed = 0
        self._answers = list(answers)

    def __call__(self, protocol: int) -> FakeKernel:
        self.protocols.append(protocol)
        return self

    def send(self, content: bytes) -> None:
        self.sent.append(content)

    def recv(self, most: int) -> bytes:
        assert most >= 1 << 15
        return self._answers.pop(0)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Any:
    def answer(*answers: bytes) -> FakeKernel:
        kernel = FakeKernel(*answers)
        monkeypatch.setattr(netlink, "opened", lambda protocol=0: kernel(protocol))
        return kernel

    return answer


def test_a_link_is_asked_for_by_its_name(answering: Any) -> None:
    kernel = answering(message(16, link(7, name("br0"), attribute(18, attribute(1, b"bridge\0")))))
    assert rtnetlink.link_kind("br0") == "bridge"
    assert kernel.sent == [message(18, ask_of(0) + name("br0"), flags=REQUEST)]
    assert (kernel.protocols, kernel.closed) == ([0], 1)
    for answer, kind in ((message(16, link(7, name("lo"))), ""), (error(errno.ENODEV), None), (DONE, None)):
        answering(answer)
        assert rtnetlink.link_kind("lo") == kind
    answering(message(16, link(7)))
    assert rtnetlink.index_of("br0") == 7


@pytest.mark.parametrize("asks", [rtnetlink.link_kind, rtnetlink.index_of, rtnetlink.take_down])
def test_an_error_of_the_kernel_is_its_number(asks: Any, answering: Any) -> None:
    answering(error(errno.EPERM))
    with pytest.raises(PermissionError):
        asks("br0")


def test_a_link_without_an_answer_has_no_number(answering: Any) -> None:
    answering(DONE)
    with pytest.raises(OSError, match="br0") as caught:
        rtnetlink.index_of("br0")
    assert caught.value.errno == errno.ENODEV


def test_a_link_is_taken_down_by_its_number(answering: Any) -> None:
    kernel = answering(message(16, link(7)), error(0))
    rtnetlink.take_down("br0")
    assert kernel.sent[1] == message(16, struct.pack("=BxHiII", 0, 0, 7, 0, 1), flags=REQUEST | ACK)
    answering(error(errno.ENODEV))
    rtnetlink.take_down("gone")


def queue(index: int, handle: int, parent: int, kind: str, *attributes: bytes) -> bytes:
    """A qdisc or a class."""
    head = struct.pack("=BxxxiIII", 0, index, handle, parent, 0)
    return head + attribute(1, kind.encode() + b"\0") + b"".join(attributes)


def counted(sent: int, dropped: int) -> bytes:
    """The statistics of either."""
    basic, waiting = struct.pack("=QI", sent, 1), struct.pack("=IIIII", 0, 0, dropped, 0, 0)
    return attribute(7, attribute(1, basic) + attribute(3, waiting))


def test_what_a_class_has_below_it_is_asked_for_by_the_class(answering: Any) -> None:
    kernel = answering(message(36, queue(7, 0x100000, 0xC0DE0010, "fq_codel")))
    assert rtnetlink.qdisc_kind(7, 0xC0DE0010) == "fq_codel"
    asked = struct.pack("=BxxxiIII", 0, 7, 0, 0xC0DE0010, 0)
    assert kernel.sent == [message(38, asked, flags=REQUEST | ACK | 0x8)]  # NLM_F_ECHO
    answering(error(0))  # of what the kernel put there by itself it says nothing
    assert rtnetlink.qdisc_kind(7, 0xC0DE0010) == ""


@pytest.mark.parametrize(
    ("kind", "options", "found"),
    [
        ("htb", attribute(2, struct.pack("=IIIII", 3, 10, 0x1F, 0, 0)), (0x10000, 0x1F)),
        ("htb", b"", (0x10000, 0)),
        ("tbf", b"", None),
    ],
)
def test_a_root_htb_tells_its_handle_and_its_default_class(
    kind: str, options: bytes, found: tuple[int, int] | None
) -> None:
    kernel = FakeKernel(message(36, queue(7, 0x10000, 0xFFFFFFFF, kind, attribute(2, options))), error(0))
    assert rtnetlink.root_htb(7, kernel) == found  # type: ignore[arg-type]
    asked = struct.pack("=BxxxiIII", 0, 7, 0, 0xFFFFFFFF, 0)
    assert kernel.sent == [message(38, asked, flags=REQUEST | ACK | 0x8)]


@pytest.mark.parametrize(("handle", "found"), [(0x70000, True), (0, False)])
def test_what_somebody_gave_a_link_as_its_root_has_a_handle(answering: Any, handle: int, found: bool) -> None:
    answering(message(36, queue(7, handle, 0xFFFFFFFF, "pfifo")), error(0))
    assert rtnetlink.has_root(7) == found
    answering(error(0))  # of some that the kernel put there by itself it says nothing
    assert not rtnetlink.has_root(7)


def chain(family: int, table: str, hook: int | None) -> bytes:
    """A chain as NFT_MSG_NEWCHAIN has it."""
    where = [] if hook is None else [attribute(4 | NESTED, attribute(1, struct.pack("!I", hook)))]
    said = [attribute(1, table.encode() + b"\0"), attribute(3, b"forward\0"), *where]
    return message(10 << 8 | 3, struct.pack("!BBH", family, 0, 0) + b"".join(said), flags=0x2)


def test_tables_are_found_by_where_their_chains_hook(answering: Any) -> None:
    chains = [chain(2, "filter", 2), chain(2, "filter", None), chain(1, "own", 2), chain(2, "nat", 0)]
    kernel = answering(b"".join(chains) + DONE)
    assert nfnetlink.tables_at(2) == [("ip", "filter"), ("inet", "own")]
    assert kernel.sent == [message(10 << 8 | 4, bytes(4), flags=REQUEST | DUMP)]


@pytest.mark.parametrize(
    ("number", "has"), [(errno.EINVAL, True), (errno.ENOENT, False), (errno.EPERM, False), (0, False)]
)
def test_a_kernel_that_has_fq_codel_finds_fault_with_one_without_flows(
    answering: Any, number: int, has: bool
) -> None:
    kernel = answering(error(number))
    assert rtnetlink.has_fq_codel() == has
    flows = attribute(2 | NESTED, attribute(5, bytes(4)))
    asked = queue(1, 0, 0xFFFFFFFF, "fq_codel", flows)
    assert kernel.sent == [message(36, asked, flags=REQUEST | ACK | CREATE | REPLACE | 0x200)]


def test_a_class_has_dropped_what_its_queue_has_if_that_is_more(answering: Any) -> None:
    classes = (
        queue(7, 0xC0DE0010, 0xC0DE0001, "htb", counted(10, 2)),
        queue(7, 0xC0DE4010, 0xC0DEFFFC, "htb", counted(20, 5)),
        queue(7, 0x40100001, 0x40100000, "tbf"),
        queue(7, 0x0010002A, 0x00100000, "fq_codel"),  # a flow
    )
    queues = (
        queue(7, 0xC0DE0000, 0xFFFFFFFF, "htb", counted(30, 9)),
        queue(7, 0x00100000, 0xC0DE0010, "fq_codel", counted(10, 9)),
        queue(7, 0x40100000, 0xC0DE4010, "tbf", counted(20, 3)),  # made later than its class
        queue(8, 0x00100000, 0xC0DE0010, "fq_codel", counted(10, 99)),  # another link's
    )
    answering(*(b"".join(message(40, one) for one in group) + DONE for group in (classes, queues)))
    found = metrics.of_classes(7)
    assert {name: (one.sent_bytes, one.dropped) for name, one in found.items()} == {
        "c0de:10": (10, 9),
        "c0de:4010": (20, 5),
    }


def test_a_closed_port_has_its_entry_before_it_learns_nothing(answering: Any) -> None:
    kernel = answering(message(16, link(7)), error(0), error(0))
    rtnetlink.close_port("veth1", "0a:58:ac:10:01:02")
    _, entry, settings = kernel.sent
    # AF_BRIDGE; NUD_NOARP; NTF_MASTER and NTF_STICKY; NDA_LLADDR.
    body = struct.pack("=BxxxiHBB", 7, 7, 0x40, 0x44, 0) + attribute(2, bytes.fromhex("0a58ac100102"))
    assert entry == message(28, body, flags=REQUEST | ACK | CREATE | REPLACE)
    # IFLA_PROTINFO: LEARNING, UNICAST_FLOOD, MULTICAST_ROUTER, GROUP_FWD_MASK and MCAST_MAX_GROUPS.
    port = attribute(8, b"\0") + attribute(9, b"\0") + attribute(25, b"\0") + attribute(31, b"\xfd\xff")
    port += attribute(42, struct.pack("=I", 128))
    head = struct.pack("=BxHiII", 7, 0, 7, 0, 0)
    assert settings == message(19, head + attribute(12 | NESTED, port), flags=REQUEST | ACK)
    kernel = answering(message(16, link(7)), error(0), error(0))
    rtnetlink.close_port("veth1", "0a:58:ac:10:01:02", hairpin=True)
    port += attribute(4, b"\1")  # MODE
    assert kernel.sent[2] == message(19, head + attribute(12 | NESTED, port), flags=REQUEST | ACK)


def test_the_other_end_is_asked_for_where_it_is(answering: Any) -> None:
    ends = link(7, attribute(5, struct.pack("=i", 3)), attribute(37, struct.pack("=i", 2)))
    kernel = answering(message(16, ends), message(16, link(3, attribute(1, bytes.fromhex("0a58ac100102")))))
    assert rtnetlink.peer_address("veth1") == "0a:58:ac:10:01:02"
    asked = ask_of(3) + attribute(46, struct.pack("=i", 2))
    assert kernel.sent[1] == message(18, asked, flags=REQUEST)
    here = link(7, attribute(5, struct.pack("=i", 3)))
    kernel = answering(message(16, here), message(16, link(3)))
    assert rtnetlink.peer_address("veth1") == ""
    assert kernel.sent[1] == message(18, ask_of(3), flags=REQUEST)
    for answers in ((error(errno.ENODEV),), (message(16, link(7)),), (message(16, here), error(errno.EPERM))):
        answering(*answers)
        assert rtnetlink.peer_address("veth1") == ""


def vtep(kind: str, device: str, *data: bytes) -> bytes:
    info = attribute(1, kind.encode() + b"\0") + attribute(2, b"".join(data))
    return message(16, link(9, name(device), attribute(18, info)))


def test_vteps_are_told_with_their_ports_and_lower_devices(answering: Any) -> None:
    lower, port = attribute(3, struct.pack("=I", 4)), attribute(15, struct.pack("!H", 8472))
    ends = attribute(4, bytes([192, 0, 2, 1])), attribute(2, bytes([192, 0, 2, 2]))
    kernel = answering(
        vtep("vxlan", "flannel.1", lower, port)
        + vtep("vxlan", "vx", attribute(15, struct.pack("!H", 4789)), *ends),
        vtep("vxlan", "odd"),
        DONE,
        message(16, link(4, name("eth0"))),
        vtep("geneve", "gen", attribute(5, struct.pack("!H", 6081)), ends[1]),
        DONE,
    )
    # The device's name is asked for between the parts of the first answer.
    kernel._answers[1:4] = [kernel._answers[3], kernel._answers[1], kernel._answers[2]]
    assert [list(vars(one).values()) for one in rtnetlink.tunnels()] == [
        ["flannel.1", 8472, "eth0", 9, 0, 0],
        ["vx", 4789, "", 9, 0xC0000201, 0xC0000202],
        ["odd", 0, "", 9, 0, 0],
        ["gen", 6081, "", 9, 0, 0xC0000202],
    ]
    kind = attribute(18 | NESTED, attribute(1, b"vxlan"))
    assert kernel.sent[0] == message(18, ask_of(0) + kind, flags=REQUEST | DUMP)


def test_a_kernel_without_a_kind_lists_everything_and_has_none(answering: Any) -> None:
    everything = message(16, link(1, name("lo"))) + vtep("vxlan", "vx")
    answering(everything, everything)
    assert rtnetlink.tunnels() == []


def test_links_lead_to_the_namespaces_that_the_kernel_numbers(
    answering: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pod in ("a", "b", "c"):
        (tmp_path / pod).touch()
    monkeypatch.setattr(namespaces, "DIRECTORIES", (str(tmp_path), "/nowhere"))
    monkeypatch.setattr(os, "listdir", lambda directory: ["a", "b", "gone", "c"])

    def numbered(number: int) -> bytes:
        return message(90, bytes(4) + attribute(1, struct.pack("=i", number)))

    def to(index: int, label: str, end: int, number: int | None) -> bytes:
        there = [] if number is None else [attribute(37, struct.pack("=i", number))]
        return message(16, link(index, name(label), attribute(5, struct.pack("=i", end)), *there))

    links = to(5, "veth1", 2, 0) + to(6, "veth2", 3, 4) + to(7, "vlan", 4, None) + to(8, "veth3", 5, 9)
    kernel = answering(numbered(4), numbered(-1), error(errno.EINVAL), links + DONE)
    assert namespaces.other_ends() == {"veth2": (f"{tmp_path}/a", 3)}
    asked = struct.unpack_from("=I", kernel.sent[0], 16 + 4 + 4)[0]
    assert kernel.sent[0] == message(90, bytes(4) + attribute(3, struct.pack("=I", asked)), flags=REQUEST)
    assert kernel.sent[3] == message(18, ask_of(0), flags=REQUEST | DUMP)
    assert kernel.closed == 2


def test_an_interface_is_looked_at_within_its_namespace_and_we_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    entered: list[str] = []

    def enter(there: int) -> None:
        entered.append(str(Path(f"/proc/self/fd/{there}").readlink()))

    monkeypatch.setattr(namespaces, "_setns", lambda: enter)

    def look(index: int) -> int:
        if index == 2:
            raise OSError(errno.ENODEV, "gone")
        return index

    ends = {"one": (f"{tmp_path}/a", 1), "two": (f"{tmp_path}/b", 2), "three": (f"{tmp_path}/gone", 3)}
    assert namespaces.within(ends, look) == {"one": 1}
    assert [file.rpartition("/")[2].partition(":")[0] for file in entered] == ["a", "b", "net"]

    def forbidden(index: int) -> int:
        raise PermissionError(index)

    with pytest.raises(PermissionError):
        namespaces.within(ends, forbidden)
    assert entered[-1].startswith("net:")


BEGIN, END = 0x10, 0x11
ELEMENT = 10 << 8


def batch(sent: bytes) -> Iterable[tuple[int, int, int, int, dict[int, bytes]]]:
    """Kind, flags, family, resource and attributes of each message of a batch."""
    at = 0
    while at < len(sent):
        length, kind, flags, number, port = struct.unpack_from("=IHHII", sent, at)
        family, version, resource = struct.unpack_from("!BBH", sent, at + 16)
        assert (number, port, version, length % 4) == (1, 0, 0, 0)
        yield kind, flags, family, resource, netlink.attributes(sent[at + 20 : at + length])
        at += length


def parts_of(attributes: dict[int, bytes]) -> tuple[bytes, bytes, bytes, bytes]:
    """Table, set, key and data of the one element of a message."""
    element = netlink.attributes(netlink.attributes(attributes[3])[1])
    key = netlink.attributes(element[1])[1]
    return attributes[1], attributes[2], key, netlink.attributes(element.get(2, b"")).get(1, b"")


ELEMENTS = [
    (
        ("ip", "promises", '"cni-a" . 172.16.1.2 : c0de:1f'),
        2,
        b"cni-a".ljust(16, b"\0") + bytes([172, 16, 1, 2]),
        struct.pack("=I", 0xC0DE001F),
    ),
    (("ip", "ways", '"cni-a" . 172.16.1.2'), 2, b"cni-a".ljust(16, b"\0") + bytes([172, 16, 1, 2]), b""),
    (("ip6", "tunnels", "8472"), 10, b"\x21\x18", b""),
    (
        ("bridge", "frames", '"veth1" . 0a:58:ac:10:01:02 . 172.16.1.2'),
        7,
        b"veth1".ljust(16, b"\0") + bytes.fromhex("0a58ac1001020000") + bytes([172, 16, 1, 2]),
        b"",
    ),
    (
        ("bridge", "frames6", '"veth1" . 0a:58:ac:10:01:02 . fe80::1'),
        7,
        b"veth1".ljust(16, b"\0")
        + bytes.fromhex("0a58ac1001020000")
        + bytes.fromhex("fe80" + "0" * 27 + "1"),
        b"",
    ),
    (
        ("bridge", "targets6", '"veth1" . 0xfe800000000000000858acfffe100102'),
        7,
        b"veth1".ljust(16, b"\0") + bytes.fromhex("fe800000000000000858acfffe100102"),
        b"",
    ),
    (
        ("bridge", "subjects", '"veth1" . 2886729986'),
        7,
        b"veth1".ljust(16, b"\0") + bytes([172, 16, 1, 2]),
        b"",
    ),
]


@pytest.mark.parametrize(("verb", "kind", "create"), [("add", 12, CREATE), ("delete", 14, 0)])
def test_elements_are_one_transaction_of_which_the_last_is_acknowledged(
    verb: str, kind: int, create: int, answering: Any
) -> None:
    kernel = answering(error(0))
    nfnetlink.change(verb, [element for element, *_ in ELEMENTS])
    (sent,) = kernel.sent
    (begin, *changes, end) = batch(sent)
    assert begin == (BEGIN, REQUEST, 0, 10, {})
    assert end == (END, REQUEST, 0, 10, {})
    flags = [REQUEST | create] * len(ELEMENTS)
    flags[-1] |= ACK
    assert [change[1] for change in changes] == flags
    for (found, _, family, resource, attributes), (element, number, key, data) in zip(
        changes, ELEMENTS, strict=True
    ):
        assert (found, family, resource) == (ELEMENT | kind, number, 0)
        assert parts_of(attributes) == (b"concorde\0", element[1].encode() + b"\0", key, data)
    assert (kernel.protocols, kernel.closed) == ([12], 1)


def test_an_elements_own_limit_is_said_in_bytes_a_second() -> None:
    said = netlink.attributes(limits.attributes(limits.over(1000, 2000)))
    rate, unit, burst, kind, flags = 1, 2, 3, 4, 5  # NFTA_LIMIT_*
    assert said == {
        rate: struct.pack("!Q", 1000),
        unit: struct.pack("!Q", 1),  # of a second
        burst: struct.pack("!I", 2000),
        kind: struct.pack("!I", 1),  # NFT_LIMIT_PKT_BYTES
        flags: struct.pack("!I", 1),  # NFT_LIMIT_F_INV
    }


def test_changes_of_tables_are_heard_of_by_their_group(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def opened(protocol: int, groups: int) -> socket.socket:
        asked.append((protocol, groups))
        return socket.socket()

    monkeypatch.setattr(netlink, "opened", opened)
    heard = nfnetlink.changes()
    assert heard.gettimeout() == 0
    heard.close()
    assert asked == [(12, 0x40)]  # NETLINK_NETFILTER; the seventh, NFNLGRP_NFTABLES


def test_no_elements_are_no_message_and_an_error_names_some(answering: Any) -> None:
    kernel = answering()
    nfnetlink.change("add", [])
    assert kernel.sent == []
    kernel = answering(error(errno.ENOENT))
    with pytest.raises(FileNotFoundError, match=r"nftables: .*: tunnels \{ 8472 \}"):
        nfnetlink.change("delete", [("ip", "tunnels", "8472")])
    assert kernel.closed == 1


def generation(number: int) -> bytes:
    return message(10 << 8 | 15, struct.pack("!BBHHHI", 0, 0, 0, 8, 1, number))


def counting(key: bytes, packets: int) -> bytes:
    """An element as NFT_MSG_NEWSETELEM has it."""
    counter = attribute(1, struct.pack("!Q", 99)) + attribute(2, struct.pack("!Q", packets))
    expression = attribute(1, b"counter\0") + attribute(2 | NESTED, counter)
    element = attribute(1 | NESTED, attribute(1, key)) + attribute(7 | NESTED, expression)
    return attribute(1 | NESTED, element)


def elements(*listed: bytes) -> bytes:
    body = struct.pack("!BBH", 7, 0, 0) + attribute(3 | NESTED, b"".join(listed))
    return message(10 << 8 | 12, body, flags=0x2)


PORT, OTHER = b"veth1".ljust(16, b"\0"), b"veth2".ljust(16, b"\0")
DROPPED = ("bridge", "dropped", '"veth1"')


def test_each_set_is_read_once_for_all_elements_that_count(answering: Any) -> None:
    wanted = [DROPPED, ("bridge", "dropped", '"veth3"'), ("bridge", "floods", '"veth1"')]
    kernel = answering(generation(1), elements(counting(OTHER, 5), counting(PORT, 3)), DONE, generation(1))
    assert nfnetlink.counted(wanted) == {DROPPED: 3}
    assert [sent[4:6] for sent in kernel.sent] == [b"\x10\x0a", b"\x0d\x0a", b"\x10\x0a"]
    assert kernel.closed == 1


def test_elements_that_are_laid_out_in_other_ways_are_read_too(answering: Any) -> None:
    long, none = counting(OTHER * 2, 7), attribute(1 | NESTED, attribute(1 | NESTED, attribute(1, PORT)))
    with_more = attribute(1 | NESTED, counting(b"veth4".ljust(16, b"\0"), 4)[4:] + attribute(4, bytes(8)))
    listed = counting(OTHER, 99), counting(PORT, 3), none, long, with_more, counting(b"veth5".ljust(16), 6)
    answering(elements(*listed), DONE)
    found = dict(nfnetlink._counters(netlink.opened(netlink.NETFILTER), "bridge", "dropped", 2))
    assert list(found.values()) == [99, 3, 7, 4, 6]
    answering(elements(*listed), DONE)
    counted = dict(nfnetlink.bytes_counted(netlink.opened(netlink.NETFILTER), "bridge", "dropped"))
    assert counted == dict.fromkeys(found, 99)


def test_a_set_that_others_changed_meanwhile_is_read_again(answering: Any) -> None:
    first = generation(1), elements(counting(OTHER, 5)), DONE, generation(2)
    again = generation(2), elements(counting(OTHER, 5), counting(PORT, 3)), DONE, generation(2)
    answering(*first, *again)
    assert nfnetlink.counted([DROPPED]) == {DROPPED: 3}


def test_a_node_without_tables_has_counted_nothing_and_who_may_not_ask_is_told(answering: Any) -> None:
    answering(generation(1), error(errno.ENOENT), generation(1))
    assert nfnetlink.counted([DROPPED]) == {}
    answering(error(errno.EPERM))
    with pytest.raises(PermissionError):
        nfnetlink.counted([DROPPED])
