"""What agents tell each other is believed if it is whole, theirs, and of now; all else changes nothing."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from concorde.fabric import messages
from concorde.fabric.division import Claim, Downlink
from concorde.fabric.messages import BOTH, GRANT, HELLO, MOST_BYTES, REPORT, Channel, Message

from tests import cases

A, B, C = "10.0.0.1", "10.0.0.2", "fd00::3"
ONE, OTHER, FOREIGN = b"1" * 32, b"2" * 32, b"3" * 32
CEILINGS = {1: 100e6, 16: 40e9}


class Node:
    """An agent's end, and where it is."""

    def __init__(self, address: str, keys: Iterable[bytes] = (ONE,), boot: bytes = b"") -> None:
        self.address = address
        self.channel = Channel(address, tuple(keys), boot or address.encode().ljust(8)[-8:])
        self.counted = self.channel.counted

    def says(self, to: Node, now: float, kind: int = GRANT, body: bytes | None = None) -> list[bytes]:
        told = messages.grant(CEILINGS, 0.3) if body is None else body
        return self.channel.seal(to.address, kind, told if kind != HELLO else b"", now)

    def hears(self, of: Node, datagrams: Iterable[bytes], now: float) -> Message | None:
        heard = [self.channel.open(of.address, one, now) for one in datagrams]
        assert not any(heard[:-1])
        return heard[-1]

    def why(self) -> dict[str, int]:
        return {reason: times for reason, times in self.counted.items() if times}


def answered(by: Node, to: Node, now: float) -> Message | None:
    """Take to one what the other has to answer; there must be one."""
    ((address, datagram),) = by.channel.answers(now)
    assert address == to.address
    return to.channel.open(by.address, datagram, now)


def met(*keys: Iterable[bytes]) -> tuple[Node, Node]:
    """Two that have heard each other, with these keys."""
    one, other = (
        Node(address, of_it) for address, of_it in zip((A, B), keys or ((ONE,), (ONE,)), strict=True)
    )
    assert other.hears(one, one.says(other, 0.0, HELLO), 0.0) is None
    assert answered(other, one, 0.0) is not None
    assert other.hears(one, one.says(other, 0.0), 0.0) is not None
    assert one.hears(other, other.says(one, 0.0), 0.0) is not None
    for node in (one, other):
        node.counted.update(dict.fromkeys(node.counted, 0))
    return one, other


def test_a_report_and_a_grant_arrive_as_they_were_said() -> None:
    one, other = met()
    claims = {1: Claim(0, 1.25e9, 70000, True), 16: Claim(400e9, 0, 0, False)}
    heard = other.hears(one, one.says(other, 0.1, REPORT, messages.report(claims)), 0.1)
    assert heard is not None
    assert heard.kind == REPORT
    said = {minor: (c.guarantee, c.rate, c.waiting, c.limited) for minor, c in heard.claims.items()}
    assert said == {1: (0, 1.25e9, 70000, True), 16: (400e9, 0, 0, False)}
    heard = one.hears(other, other.says(one, 0.1), 0.1)
    assert heard is not None
    assert (heard.kind, heard.ceilings, heard.lasts) == (GRANT, CEILINGS, 0.3)
    body = messages.both(messages.report(claims), messages.grant(CEILINGS, 0.3))
    heard = other.hears(one, one.says(other, 0.2, BOTH, body), 0.2)
    assert heard is not None
    assert (heard.claims.keys(), heard.ceilings, heard.lasts) == (claims.keys(), CEILINGS, 0.3)


def test_what_has_no_room_in_a_message_is_as_much_as_has() -> None:
    one, other = met()
    body = messages.report({1: Claim(float("inf"), float("inf"), float("inf"))})
    heard = other.hears(one, one.says(other, 0.1, REPORT, body), 0.1)
    assert heard is not None
    assert (heard.claims[1].guarantee, heard.claims[1].waiting) == (2**64 - 1, 2**32 - 1)


@pytest.mark.parametrize("keys", [1, messages.MOST_KEYS])
def test_what_is_long_comes_in_parts_in_any_order(keys: int) -> None:
    several = [bytes([number]) * 32 for number in range(keys)]
    one, other = met(several, several)
    claims = {minor: Claim(1e6 * minor, minor, minor) for minor in range(16, 516)}
    datagrams = one.says(other, 0.1, REPORT, messages.report(claims))
    assert len(datagrams) > 5
    assert max(map(len, datagrams)) <= MOST_BYTES
    random.Random(cases.seed()).shuffle(datagrams)
    heard = other.hears(one, datagrams, 0.1)
    assert heard is not None
    assert {minor: claim.rate for minor, claim in heard.claims.items()} == {
        minor: minor for minor in range(16, 516)
    }
    assert other.why() == {}


def test_a_message_with_a_part_lost_is_lost_and_the_next_is_whole() -> None:
    one, other = met()
    body = messages.report({minor: Claim() for minor in range(16, 266)})
    first, *rest = one.says(other, 0.1, REPORT, body)
    assert other.hears(one, rest, 0.1) is None
    assert other.hears(one, one.says(other, 0.11, REPORT, body), 0.11) is not None
    assert other.hears(one, [first], 0.11) is None
    assert other.why() == {"replayed": 1}


def test_parts_of_two_messages_are_not_mixed() -> None:
    one, other = met()
    before = one.says(other, 0.1, REPORT, messages.report({minor: Claim() for minor in range(16, 266)}))
    after = one.says(other, 0.1, REPORT, messages.report({minor: Claim(9) for minor in range(16, 266)}))
    assert other.hears(one, [after[0], *before], 0.1) is None
    assert other.why() == {"replayed": len(before)}
    heard = other.hears(one, after[1:], 0.1)
    assert heard is not None
    assert {claim.guarantee for claim in heard.claims.values()} == {9}


def test_what_is_too_long_is_not_sent() -> None:
    one, other = met()
    with pytest.raises(ValueError, match="no room in 16 datagrams"):
        one.says(other, 0.1, REPORT, bytes(16 * MOST_BYTES))


@pytest.mark.parametrize(
    ("address", "keys", "boot"),
    [
        ("node-1", [ONE], b"8 bytes."),
        (A, [], b"8 bytes."),
        (A, [bytes([number]) for number in range(9)], b"8 bytes."),
        (A, [ONE], b"short"),
        (A, [ONE], bytes(8)),
    ],
)
def test_what_cannot_be_is_said_at_once(address: str, keys: list[bytes], boot: bytes) -> None:
    with pytest.raises(ValueError, match=r"address|key|boot"):
        Channel(address, keys, boot)


def test_an_address_is_the_same_however_it_is_written() -> None:
    one = Node("fd00:0:0::0001")
    other = Node(C)
    other.channel.open("fd00::1", one.says(other, 0.0, HELLO)[0], 0.0)
    assert other.why() == {"boot": 1}


# Who met, and who starts anew.


def test_two_that_never_met_know_each_other_after_one_exchange() -> None:
    one, other = Node(A), Node(B)
    assert other.hears(one, one.says(other, 5.0), 5.0) is None
    assert other.why() == {"boot": 1}
    hello = answered(other, one, 5.0)
    assert hello is not None
    assert hello.kind == HELLO
    assert other.hears(one, one.says(other, 5.001), 5.001) is not None
    assert one.hears(other, other.says(one, 5.002), 5.002) is not None
    assert one.why() == {}


@pytest.mark.parametrize("restarted", [A, B])
def test_who_starts_anew_is_known_after_one_exchange(restarted: str) -> None:
    one, other = met()
    if restarted == A:
        one = Node(A, boot=b"new boot")
    else:
        other = Node(B, boot=b"new boot")
    assert other.hears(one, one.says(other, 0.1), 0.1) is None
    assert other.why() == {"boot": 1}
    assert answered(other, one, 0.1) is not None
    assert other.hears(one, one.says(other, 0.11), 0.11) is not None
    assert one.hears(other, other.says(one, 0.12), 0.12) is not None


def test_after_a_silence_one_exchange_is_enough() -> None:
    one, other = met()
    assert other.hears(one, one.says(other, 100.0), 100.0) is None
    assert other.why() == {"stale": 1}
    assert answered(other, one, 100.0) is not None
    assert other.hears(one, one.says(other, 100.01), 100.01) is not None


def test_as_long_as_both_talk_nothing_has_to_be_asked() -> None:
    one, other = met()
    for at in range(500):
        now = at * 0.02
        assert other.hears(one, one.says(other, now), now) is not None
        assert one.hears(other, other.says(one, now), now) is not None
    assert one.why() == other.why() == {}


def test_lost_messages_in_any_order_only_cost_what_they_said() -> None:
    chance = random.Random(cases.seed())
    one, other = met()
    under_way: list[tuple[Node, Node, bytes]] = []
    heard = 0
    for at in range(1000):
        now = at * 0.01
        for by, to in ((one, other), (other, one)):
            under_way += [(by, to, datagram) for datagram in by.says(to, now)]
            under_way += [(by, to, datagram) for _, datagram in by.channel.answers(now)]
        chance.shuffle(under_way)
        some, under_way = under_way[: len(under_way) // 2], under_way[len(under_way) // 2 :]
        for by, to, datagram in some:
            if chance.random() < 0.5:
                heard += to.channel.open(by.address, datagram, now) is not None
    assert heard > 300
    # Whatever it was, from now on all is heard.
    other.hears(one, one.says(other, 11.0), 11.0)
    assert answered(other, one, 11.0) is not None
    assert other.hears(one, one.says(other, 11.01), 11.01) is not None


def test_hellos_are_few_whoever_asks_for_them() -> None:
    one, other = met()
    sent = 0
    for at in range(1000):
        now = 100 + at * 0.001
        other.hears(one, one.says(other, now), now)
        sent += len(other.channel.answers(now))
    assert sent == 10


# Attacks. Whoever has no key has seen every message.


def test_without_the_key_nothing_is_believed_nor_answered() -> None:
    one, other = met()
    liar = Node(A, [FOREIGN], boot=b"10.0.0.1")
    assert other.hears(one, liar.says(other, 0.1), 0.1) is None
    assert other.why() == {"key": 1}
    assert other.channel.answers(0.1) == []


def test_a_message_is_believed_once() -> None:
    one, other = met()
    first, second = one.says(other, 0.1), one.says(other, 0.2)
    assert other.hears(one, second, 0.2) is not None
    for again in (second, first):
        assert other.hears(one, again, 0.3) is None
    assert other.why() == {"replayed": 2}


def test_a_message_is_for_one_node_and_from_one() -> None:
    one, other = met()
    third = Node(C)
    said = one.says(other, 0.1)
    assert third.hears(one, said, 0.1) is None
    assert other.hears(third, said, 0.1) is None
    assert one.hears(other, said, 0.1) is None  # nor is it its own answer
    assert (third.why(), other.why(), one.why()) == ({"key": 1}, {"key": 1}, {"key": 1})


def test_what_was_kept_back_is_not_believed_later() -> None:
    one, other = met()
    kept = one.says(other, 0.1)
    for at in range(1, 150):
        now = at * 0.01
        one.hears(other, other.says(one, now), now)
    assert other.hears(one, kept, 1.5) is None
    assert other.why() == {"stale": 1}


@pytest.mark.parametrize("restarted", [A, B])
def test_what_was_said_before_a_start_is_not_believed_after_it(restarted: str) -> None:
    one, other = met()
    kept = one.says(other, 0.1)
    if restarted == A:
        one = Node(A, boot=b"new boot")
    else:
        other = Node(B, boot=b"new boot")
    other.hears(one, one.says(other, 0.2), 0.2)
    for _ in range(10):  # so that its sequence has been where the other's was
        other.says(one, 0.2)
    assert answered(other, one, 0.2) is not None
    assert other.hears(one, one.says(other, 0.21), 0.21) is not None
    assert other.hears(one, kept, 0.3) is None
    assert other.why() == {"boot": 2}
    # Who is asked about it answers, and no more.
    for _, datagram in other.channel.answers(0.4):
        one.channel.open(B, datagram, 0.4)
    assert other.hears(one, one.says(other, 0.41), 0.41) is not None


def test_replayed_messages_do_not_make_us_repeat_what_they_say() -> None:
    one, other = met()
    kept = one.says(other, 0.0)
    one, fresh = Node(A, boot=b"new boot"), Node(A, boot=b"new boot")
    other.hears(one, one.says(other, 2.0), 2.0)
    assert answered(other, one, 2.0) is not None
    assert other.hears(one, one.says(other, 2.01), 2.01) is not None
    for at in range(10):
        other.hears(fresh, kept, 2.02 + at * 0.001)
    assert one.hears(other, other.says(one, 2.1), 2.1) is not None


@pytest.mark.parametrize("cut", [0, 1, 38, 39, 45, 60, -1])
def test_what_is_cut_short_is_malformed_or_of_no_key(cut: int) -> None:
    one, other = met()
    (datagram,) = one.says(other, 0.1)
    assert other.hears(one, [datagram[:cut]], 0.1) is None
    assert set(other.why()) <= {"malformed", "key"}
    assert sum(other.counted.values()) == 1


def test_every_bit_counts() -> None:
    one, other = met()
    (datagram,) = one.says(other, 0.1)
    for at in range(len(datagram) * 8):
        changed = bytearray(datagram)
        changed[at // 8] ^= 1 << at % 8
        assert other.hears(one, [bytes(changed)], 0.1) is None
    assert set(other.why()) <= {"malformed", "key"}
    assert other.hears(one, [datagram], 0.1) is not None


def test_whatever_comes_nothing_is_raised() -> None:
    chance = random.Random(cases.seed())
    one, other = met()
    (good,) = one.says(other, 0.1)
    for at in range(10_000):
        datagram = bytearray(chance.choice([good, chance.randbytes(len(good))]))
        for _ in range(chance.randrange(4)):
            datagram[chance.randrange(len(datagram))] = chance.randrange(256)
        changed = bytes(datagram[: chance.randrange(len(datagram) + 1)]) + chance.randbytes(at % 3)
        if changed != good:
            assert other.channel.open(chance.choice([A, C, "no address", ""]), changed, 0.1) is None
    assert sum(other.counted.values()) > 9_000
    assert other.hears(one, [good], 0.1) is not None


def test_whatever_one_with_the_key_says_nothing_is_raised() -> None:
    chance = random.Random(cases.seed())
    one, other = met()
    link, heard = Downlink(1e9), 0
    for at in range(300):
        now = 0.1 + at * 0.001
        seen = other.channel._boot, other.channel._sequence - chance.randrange(3)
        one.channel._boot, one.channel._sequence = chance.randbytes(8), chance.randrange(2**63)
        body = chance.randbytes(chance.choice([0, 2, 12, 23, 46, 2300, chance.randrange(5000)]))
        other.says(one, now)
        for datagram in one.channel._sealed(B, chance.randrange(5), body, seen, now):
            message = other.channel.open(A, datagram, now)
            if message is not None:
                heard += 1
                link.report(A, message.claims, now)
                link.divide(now)
    assert heard > 30


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (REPORT, b"x"),
        (REPORT, bytes(24)),
        (GRANT, b""),
        (GRANT, b"123"),
        (GRANT, bytes(11)),
        (BOTH, b""),
        (BOTH, messages.both(b"x", messages.grant(CEILINGS, 0.3))),
        (BOTH, messages.both(messages.report({1: Claim()}), b"")),
        (4, b""),
        (255, b""),
    ],
)
def test_a_body_of_another_length_is_malformed_even_with_the_key(kind: int, body: bytes) -> None:
    one, other = met()
    assert other.hears(one, one.channel.seal(B, kind, body, 0.1), 0.1) is None
    assert other.why() == {"malformed": 1}
    assert other.hears(one, one.channel.seal(B, HELLO, b"x", 0.1), 0.1) is None


def test_memory_is_bounded_and_who_talks_is_not_forgotten() -> None:
    one, other = met()
    kept = one.says(other, 0.1)
    for number in range(3000):
        stranger = Node(f"10.1.{number // 250}.{number % 250}", boot=b"stranger")
        other.hears(stranger, stranger.says(other, 0.1), 0.1)
        if number % 100 == 0:
            assert other.hears(one, one.says(other, 0.1), 0.1) is not None
        if number % 100 == 99:
            assert other.hears(one, kept, 0.1) is None
    assert len(other.channel._peers) == messages.MOST_PEERS
    assert len(other.channel._pending) <= messages.MOST_PEERS
    assert other.why()["replayed"] == 30


# Nodes of several clusters.


def test_one_key_in_common_is_enough() -> None:
    one, other = met([ONE, OTHER], [OTHER, FOREIGN])
    assert other.hears(one, one.says(other, 0.1), 0.1) is not None


def test_all_macs_of_our_keys_must_be_right() -> None:
    one, other = met([ONE, OTHER], [ONE, OTHER])
    (datagram,) = one.says(other, 0.1)
    # The last byte of the second MAC: the key of one cluster alone has made the first.
    at = 39 + 2 * 20 - 1
    forged = datagram[:at] + bytes([datagram[at] ^ 1]) + datagram[at + 1 :]
    assert other.hears(one, [forged], 0.1) is None
    assert other.why() == {"key": 1}


@pytest.mark.parametrize("boot", [b"10.0.0.1", b"new boot"], ids=["in its boot", "as if it had started anew"])
def test_one_clusters_key_does_not_speak_for_a_node_of_two(boot: bytes) -> None:
    one, other = met([ONE, OTHER], [ONE, OTHER])
    # Whoever forges it has heard all that was said, so it is of now.
    liar = Node(A, [ONE], boot=boot)
    liar.hears(other, other.says(one, 0.05), 0.05)
    liar.channel._sequence = 1000
    assert answered_by_force(liar, other, 0.06) is None
    assert other.why() == {"downgraded": 1}
    assert other.hears(one, one.says(other, 0.1), 0.1) is not None


def test_who_was_spoken_for_before_it_spoke_is_believed_all_the_same() -> None:
    one, other = Node(A, [ONE, OTHER]), Node(B, [ONE, OTHER])
    liar = Node(A, [ONE], boot=one.address.encode()[-8:])
    liar.channel._sequence = 10**9
    other.says(one, 0.0)
    assert answered_by_force(liar, other, 0.0) is not None  # nobody can know yet that A has two
    other.hears(one, one.says(other, 0.1), 0.1)
    assert answered(other, one, 0.1) is not None
    assert other.hears(one, one.says(other, 0.3), 0.3) is not None
    assert answered_by_force(liar, other, 0.4) is None
    assert other.why()["downgraded"] == 1


def test_who_left_a_cluster_is_believed_after_a_minute() -> None:
    _, other = met([ONE, OTHER], [ONE, OTHER])
    left = Node(A, [ONE], boot=b"new boot")
    for now, believed in ((1.0, False), (59.0, False), (61.0, True)):
        other.says(left, now)
        assert (answered_by_force(left, other, now) is not None) == believed


def answered_by_force(liar: Node, to: Node, now: float) -> Message | None:
    """What comes of a message that is of now, because its sender has seen what was sent to another."""
    seen = to.channel._boot, to.channel._sequence
    datagrams = liar.channel._sealed(to.address, GRANT, messages.grant(CEILINGS, 0.3), seen, now)
    return to.hears(liar, datagrams, now)
