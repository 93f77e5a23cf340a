"""Free space: at its ends, at its deepest, and against a count of single addresses."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.addresses.space import Space
from tests import cases

CASES = cases.count("CONCORDE_SPACE_CASES", 30, 3_000)


def space(family: str, *taken: str) -> Space:
    made = Space(32 if "." in family else 128)
    for text in taken:
        made.take(ip_network(text))
    return made


def lowest(one: Space, network: str, length: int) -> str:
    return str(one.lowest(ip_network(network), length))


@pytest.mark.parametrize(
    "network", ["10.0.0.4/30", "0.0.0.0/30", "255.255.255.252/30", "fd00::/126", "::/126", "ff00::fffc/126"]
)
def test_a_range_of_one_block_is_given_once(network: str) -> None:
    one, whole = space(network), ip_network(network)
    assert one.free(whole, whole.prefixlen) == 1
    assert one.lowest(whole, whole.prefixlen) == whole
    one.take(whole)
    assert (one.lowest(whole, whole.prefixlen), one.free(whole, whole.prefixlen)) == (None, 0)
    one.release(whole)
    assert one.lowest(whole, whole.prefixlen) == whole


@pytest.mark.parametrize(
    ("network", "first", "second", "last"),
    [
        ("10.0.0.0/28", "10.0.0.0/30", "10.0.0.4/30", "10.0.0.12/30"),
        ("0.0.0.0/0", "0.0.0.0/30", "0.0.0.4/30", "255.255.255.252/30"),
        ("fd00::/110", "fd00::/126", "fd00::4/126", "fd00::3:fffc/126"),
        ("::/0", "::/126", "::4/126", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc/126"),
    ],
)
def test_a_block_at_either_end_is_taken_and_nothing_besides(
    network: str, first: str, second: str, last: str
) -> None:
    one, whole, length = space(network), ip_network(network), 30 if "." in network else 126
    possible = one.free(whole, length)
    assert possible == 1 << (length - whole.prefixlen)
    for number, block in enumerate((last, first)):
        assert lowest(one, network, length) == first
        one.take(ip_network(block))
        assert one.free(whole, length) == possible - number - 1
    assert lowest(one, network, length) == second
    for before in (first, last):
        one.release(ip_network(before))
    assert (lowest(one, network, length), one.free(whole, length)) == (first, possible)


def test_the_last_free_block_is_found_in_the_deepest_place() -> None:
    """One address is free of 2 to the power of 128: beside the way to it a block of each length is taken."""
    for address in (0, 2**128 - 1, 0x5555_5555_5555_5555_5555_5555_5555_5555):
        one, whole, free = Space(128), IPv6Network("::/0"), IPv6Network((address, 128))
        beside = list(whole.address_exclude(free))
        for block in beside:
            one.take(block)
        for length in range(128):
            assert one.lowest(whole, length) is None
        assert one.lowest(whole, 128) == free
        assert one.free(whole, 128) == 1
        assert one.runs(whole, 128, 9) == [free]
        for block in beside:
            one.release(block)
        assert one.lowest(whole, 0) == whole


@pytest.mark.long(one_in=0)
def test_as_many_blocks_as_there_may_be_are_given_each_once() -> None:
    network = ip_network("fd00::/112")
    one = space("fd00::/112")
    found = []
    while (block := one.lowest(network, 128)) is not None:
        found.append(block)
        one.take(block)
    assert found == list(network.subnets(new_prefix=128))
    assert len(found) == 2**16


def test_what_is_taken_around_or_within_a_range_is_not_given() -> None:
    one = space("10.0.0.0/8", "10.0.0.0/8", "10.1.0.0/24", "10.1.0.0/24")
    assert lowest(one, "10.1.0.0/16", 24) == "None"
    one.release(ip_network("10.0.0.0/8"))
    assert lowest(one, "10.1.0.0/16", 24) == "10.1.1.0/24"
    one.release(ip_network("10.1.0.0/24"))  # one of two who have it
    assert lowest(one, "10.1.0.0/16", 24) == "10.1.1.0/24"
    one.release(ip_network("10.1.0.0/24"))
    assert lowest(one, "10.1.0.0/16", 16) == "10.1.0.0/16"
    with pytest.raises(KeyError):
        one.release(ip_network("10.1.0.0/24"))


WITHIN = IPv4Network("10.0.0.0/27")
# All networks in it, and those around it; of each what addresses of it they have, as bits of a number.
NETWORKS = [
    *(network for length in range(27, 33) for network in WITHIN.subnets(new_prefix=length)),
    *(WITHIN.supernet(new_prefix=length) for length in (0, 8, 26)),
]
ADDRESSES = {
    network: sum(1 << at for at, address in enumerate(WITHIN) if address in network) for network in NETWORKS
}


def counted(taken: Counter[IPv4Network], within: IPv4Network, length: int) -> list[IPv4Network]:
    """Which blocks of a length are free in a network, by looking at each address."""
    has = 0
    for network in taken:
        has |= ADDRESSES[network]
    return [block for block in within.subnets(new_prefix=length) if not has & ADDRESSES[block]]


@pytest.mark.long
@settings(max_examples=CASES)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=40))
def test_whatever_is_taken_and_given_back(events: list[tuple[int, int]]) -> None:
    one, taken = Space(32), Counter[IPv4Network]()
    for chosen, asked in events:
        had = sorted(taken.elements())
        if chosen % 3 == 0 and had:
            network = had[asked % len(had)]
            one.release(network)
            taken -= Counter([network])
        else:
            network = NETWORKS[(chosen * asked) % len(NETWORKS)]
            one.take(network)
            taken[network] += 1
        within = NETWORKS[asked % 63]
        length = within.prefixlen + chosen % (33 - within.prefixlen)
        free = counted(taken, within, length)
        assert one.lowest(within, length) == (free[0] if free else None)
        assert one.has(within, length) is bool(free)
        assert one.free(within, length) == len(free)
        few = asked % 5
        parts = [block for run in one.runs(within, length, few) for block in run.subnets(new_prefix=length)]
        assert parts == free[:few]
