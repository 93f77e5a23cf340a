"""Lines for `ip` and `tc` as messages to the kernel; that they do the same, tests/system/plugin shows."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from concorde import batches, namespaces, tools

from edge import netlink
from tests.unit.plugin.test_netlink_messages import FakeKernel, ask_of, attribute, error, link, message, name

ACK, REPLACE, EXCLUSIVE, CREATE, APPEND = 0x5, 0x100, 0x200, 0x400, 0x800  # with NLM_F_REQUEST
NESTED = 0x8000
DONE, INDEX = error(0), message(16, link(7))


class Answering(FakeKernel):
    """Knows each link by number 7, and has done what it is told."""

    def __init__(self, *failures: bytes) -> None:
        super().__init__()
        self.failures = list(failures)
        self.opened_for: list[str] = []

    def __call__(self, netns: Any = "") -> Answering:
        self.opened_for.append(netns)
        return self

    def recv(self, most: int) -> bytes:
        if self.sent[-1][4:6] == b"\x12\0":  # RTM_GETLINK
            return INDEX
        return self.failures.pop(0) if self.failures else DONE


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Answering:
    made = Answering()
    monkeypatch.setattr(namespaces, "opened", made)
    return made


def u32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def head(up: int = 0, index: int = 7) -> bytes:
    return struct.pack("=BxHiII", 0, 0, index, up, up)


def tc(handle: int, parent: int, info: int = 0) -> bytes:
    return struct.pack("=BxxxiIII", 0, 7, handle, parent, info)


def spec(rate: int, overhead: int = 0, least: int = 0) -> bytes:
    return struct.pack("=BBHhHI", 0, 1, overhead, -1, least, rate)


ADDRESS = bytes([172, 16, 1, 2])
LINES = {
    "link set dev a up": (16, 0, head(up=1)),
    "link set dev a addrgenmode none": (
        16, 0, head() + attribute(26 | NESTED, attribute(10 | NESTED, attribute(8, b"\1"))),
    ),
    "link set dev a gso_max_size 5000": (16, 0, head() + u32(41, 5000)),
    "link set dev a gso_max_segs 1": (16, 0, head() + u32(40, 1)),
    "link set dev a alias concorde type bridge mcast_snooping 0": (
        16, 0, head() + attribute(20, b"concorde")
        + attribute(18 | NESTED, attribute(1, b"bridge\0") + attribute(2 | NESTED, attribute(23, b"\0"))),
    ),
    "link property add dev a altname b": (
        108, CREATE | EXCLUSIVE | APPEND, head() + attribute(52 | NESTED, attribute(53, b"b\0")),
    ),
    "link delete dev a": (17, 0, head()),
    "addr add 172.16.1.2/24 brd + dev a": (
        20, CREATE | EXCLUSIVE, struct.pack("=BBBBI", 2, 24, 0, 0, 7)
        + attribute(2, ADDRESS) + attribute(1, ADDRESS) + attribute(4, bytes([172, 16, 1, 255])),
    ),
    "addr replace 172.16.1.2/31 brd + dev a": (
        20, CREATE | REPLACE, struct.pack("=BBBBI", 2, 31, 0, 0, 7)
        + attribute(2, ADDRESS) + attribute(1, ADDRESS),
    ),
    "route prepend default via 172.16.1.2 dev a": (
        24, CREATE, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0)
        + attribute(5, ADDRESS) + u32(4, 7),
    ),
    "ntable change name arp_cache dev a queue 3": (
        67, 0, bytes(4) + attribute(1, b"arp_cache\0") + attribute(6 | NESTED, u32(1, 7) + u32(8, 3)),
    ),
    "qdisc add dev a root handle 1: htb default fffe": (
        36, CREATE | EXCLUSIVE, tc(0x10000, 0xFFFFFFFF) + attribute(1, b"htb\0")
        + attribute(2 | NESTED, attribute(2, struct.pack("=IIIII", 3, 10, 0xFFFE, 0, 0))),
    ),
    "qdisc delete dev a root": (37, 0, tc(0, 0xFFFFFFFF)),
    "qdisc replace dev a parent c0de:10 handle 10: bfifo limit 9": (
        36, CREATE | REPLACE, tc(0x100000, 0xC0DE0010) + attribute(1, b"bfifo\0") + u32(2, 9),
    ),
    "qdisc replace dev a parent 10:1 fq_codel memory_limit 9 flows 256 drop_batch 1 target 1s": (
        36, CREATE | REPLACE, tc(0, 0x100001) + attribute(1, b"fq_codel\0")
        + attribute(2 | NESTED, u32(9, 9) + u32(5, 256) + u32(8, 1) + u32(1, 1_000_000)),
    ),
    # Above 2^32 bytes a second a rate has an attribute of its own.
    "qdisc replace dev a parent c0de:10 handle 10: tbf rate 80000000000bit burst 1000b limit 9": (
        36, CREATE | REPLACE, tc(0x100000, 0xC0DE0010) + attribute(1, b"tbf\0")
        + attribute(2 | NESTED, attribute(1, spec(0xFFFFFFFF) + bytes(12) + struct.pack("=III", 9, 1, 0))
                    + u32(6, 1000) + attribute(4, struct.pack("=Q", 10**10))),
    ),
    "class add dev a parent c0de:1 classid c0de:10 htb prio 0 rate 8000bit ceil 80000000000bit burst 1600b"
    " cburst 1000b quantum 5 overhead 24 mpu 84": (
        40, CREATE | EXCLUSIVE, tc(0xC0DE0010, 0xC0DE0001) + attribute(1, b"htb\0")
        + attribute(2 | NESTED, attribute(1, spec(1000, 24, 84) + spec(0xFFFFFFFF, 24, 84)
                    + struct.pack("=IIIII", 25_000_000, 1, 5, 0, 0))
                    + attribute(7, struct.pack("=Q", 10**10))),
    ),
    "class delete dev a classid c0de:10": (41, 0, tc(0xC0DE0010, 0)),
    "filter add dev a parent c0de: protocol arp pref 1 u32 match u32 0 0 classid c0de:fffd": (
        44, CREATE | EXCLUSIVE, tc(0, 0xC0DE0000, 1 << 16 | struct.unpack("=H", b"\x08\x06")[0])
        + attribute(1, b"u32\0") + attribute(
            2 | NESTED, u32(1, 0xC0DEFFFD) + attribute(5, b"\1\0\1" + bytes(29))
        ),
    ),
    "filter add dev a parent c0de: protocol ip pref 2 u32 match u32 0xa000000 0xff000000 at 16"
    " classid c0de:1": (
        44, CREATE | EXCLUSIVE, tc(0, 0xC0DE0000, 2 << 16 | struct.unpack("=H", b"\x08\0")[0])
        + attribute(1, b"u32\0") + attribute(
            2 | NESTED, u32(1, 0xC0DE0001)
            + attribute(5, b"\1\0\1" + bytes(13) + b"\xff\0\0\0\x0a\0\0\0" + struct.pack("=II", 16, 0))
        ),
    ),
    "filter delete dev a parent c0de: protocol ip pref 2": (
        45, 0, tc(0, 0xC0DE0000, 2 << 16 | struct.unpack("=H", b"\x08\0")[0])
    ),
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_a_message(line: str, kernel: Answering) -> None:
    kind, flags, body = LINES[line]
    batches.run(line.split()[0], line + "\n", "/n")
    assert kernel.sent == [
        message(18, ask_of(0) + name("a"), flags=1),
        message(kind, body, flags=flags | ACK),
    ]
    assert (kernel.opened_for, kernel.closed) == (["/n"], 1)


def test_a_pair_is_made_with_its_other_end_where_that_belongs(kernel: Answering, tmp_path: Path) -> None:
    (tmp_path / "n").touch()
    line = (
        f"link add name v address 02:00:00:00:00:01 mtu 9 master b type veth peer name p netns {tmp_path}/n"
    )
    before = len(list(Path("/proc/self/fd").iterdir()))
    batches.run("ip", line)
    (_, sent) = kernel.sent
    (kind, flags) = struct.unpack_from("=HH", sent, 4)
    assert (kind, flags) == (16, CREATE | EXCLUSIVE | ACK)
    said = netlink.attributes(sent, 32)
    assert (said[3], said[1].hex(), said[4], said[10]) == (b"v\0", "020000000001", b"\t\0\0\0", b"\7\0\0\0")
    info = netlink.attributes(said[18])
    assert info[1] == b"veth\0"
    peer = netlink.attributes(netlink.attributes(info[2])[1], 16)
    assert peer[3] == b"p\0"
    assert list(peer) == [3, 28]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def in_words(number: int, words: str) -> bytes:
    """A refusal as the kernel explains it: the request is not repeated (NETLINK_CAP_ACK)."""
    body = struct.pack("=i", -number) + bytes(16) + attribute(1, words.encode() + b"\0")
    return message(2, body, flags=0x300)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error(errno.EEXIST), os.strerror(errno.EEXIST)),
        (in_words(errno.EEXIST, "no room"), "no room"),
    ],
)
def test_the_first_line_that_is_refused_is_the_last(answer: bytes, reason: str, kernel: Answering) -> None:
    kernel.failures = [DONE, answer]
    lines = "link set dev a up\nlink delete dev a\nlink set dev a up\n"
    with pytest.raises(tools.CommandError, match=f"^ip link delete dev a: {reason}$") as caught:
        batches.run("ip", lines)
    assert (caught.value.line, caught.value.errno, caught.value.output) == (2, errno.EEXIST, reason)
    assert len(kernel.sent) == 3  # one asks for the number
    assert kernel.closed == 1


def test_what_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(tools.CommandError, match=r"^ip -batch: .*/gone: No such file") as caught:
        batches.run("ip", "link set dev a up\n", f"{tmp_path}/gone")
    assert caught.value.line == 0
    with pytest.raises(tools.CommandError, match=r"^tc qdisc delete dev nosuch root: No such device$"):
        batches.run("tc", "qdisc delete dev nosuch root\n")


def test_nothing_to_do_is_no_socket(kernel: Answering) -> None:
    batches.run("ip", "")
    batches.run_all(("tc", ""), ("nft", ""))
    assert kernel.opened_for == []


def test_nft_works_beside_and_is_waited_for_even_if_another_fails(
    kernel: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nft").write_text(f"#!/bin/sh\necho $* >{tmp_path}/log\ncat >>{tmp_path}/log\n")
    (tmp_path / "nft").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    kernel.failures = [error(errno.EPERM)]
    with pytest.raises(tools.CommandError, match="link set dev a up"):
        batches.run_all(("ip", "link set dev a up\n"), ("nft", "one\n"), ("nft", "two\n"))
    assert (tmp_path / "log").read_text() == "-f -\none\ntwo\n"
