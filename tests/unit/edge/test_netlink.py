"""Messages as netlink(7) lays them out; what is asked is tested where it is, on a kernel that is asked."""

from __future__ import annotations

import struct

import pytest

from edge import netlink


def test_attributes_are_padded_and_read_back_without_their_flags() -> None:
    nested = netlink.nested(2, b"")
    content = b"head" + netlink.attribute(1, b"abc") + nested + netlink.attribute(3, b"12345")
    assert content[:12] == b"head\x07\0\x01\0abc\0"
    assert netlink.attributes(content, 4) == {1: b"abc", 2: b"", 3: b"12345"}
    assert netlink.attributes(b"head", 4) == {}


@pytest.mark.parametrize("rest", [b"\x04\0", struct.pack("=HH", 3, 9), struct.pack("=HH", 9, 9) + b"rest"])
def test_attributes_that_are_not_whole_are_an_error(rest: bytes) -> None:
    with pytest.raises(ValueError, match="not whole"):
        netlink.attributes(netlink.attribute(1, b"abcd") + rest)
    with pytest.raises(ValueError, match="not whole"):
        netlink.attributes(rest, 16)


def test_messages_of_a_datagram_are_read_up_to_one_that_is_not_whole() -> None:
    whole = [netlink.message(kind, netlink.DUMP, b"content"[:kind], 5) for kind in (3, 7)]
    found = [(3, 0x301, 5, b"con"), (7, 0x301, 5, b"content")]
    assert list(netlink.messages(b"".join(whole))) == found
    assert list(netlink.messages(b"".join(whole)[:-2])) == found[:1]
    assert list(netlink.messages(whole[0] + bytes(16))) == found[:1]


def test_an_answer_to_another_question_is_passed_over() -> None:
    class Kernel:
        answers = iter([netlink.message(16, 0, b"old!", 6), netlink.message(16, 0, b"now!", 7)])

        def send(self, content: bytes) -> None:
            assert content == netlink.message(18, 0, b"", 7)

        def recv(self, _: int) -> bytes:
            return next(self.answers)

    kernel = Kernel()
    assert list(netlink.ask(18, 0, b"", kernel, sequence=7)) == [b"now!"]  # type: ignore[arg-type]
