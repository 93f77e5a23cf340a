from __future__ import annotations

import pytest
from concorde import addresses
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(0, 2**32 - 1))
def test_addresses_survive_being_written(address: int) -> None:
    assert addresses.parse(addresses.dotted(address)) == address


SUBNET = addresses.parse_subnet("172.16.1.0/29")


def test_a_subnet_has_room_for_all_but_three_of_its_addresses() -> None:
    assert [addresses.dotted(one) for one in SUBNET.reserved] == ["172.16.1.0", "172.16.1.1", "172.16.1.7"]
    assert SUBNET.size == 5
    around = range(SUBNET.network - 1, SUBNET.network + 9)
    assert [one in SUBNET for one in around] == [False, *[True] * 8, False]
    assert "172.16.1.2" not in SUBNET


@pytest.mark.parametrize("prefix", [8, 30])
def test_an_interface_lies_in_its_subnet(prefix: int) -> None:
    address, subnet = addresses.parse_interface(f"172.16.1.5/{prefix}")
    assert (addresses.dotted(address), address in subnet, subnet.prefix) == ("172.16.1.5", True, prefix)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("172.16.1.0", "has no prefix length"),
        ("172.16.1.0/7", "between 8 and 30"),
        ("172.16.1.0/31", "between 8 and 30"),
        ("172.16.1.0/024", "between 8 and 30"),
        ("172.16.1.0/²⁴", "between 8 and 30"),
        ("172.16.1.1/24", "the subnet is 172.16.1.0/24"),
        ("172.16.1/24", "is not an IPv4 address"),
        ("172.16.1.256/24", "is not an IPv4 address"),
        ("172.16.01.0/24", "is not an IPv4 address"),
        ("172.16.1.0000/24", "is not an IPv4 address"),
        ("172.16..0/24", "is not an IPv4 address"),
        ("172.16.1.0.1/24", "is not an IPv4 address"),
    ],
)
def test_what_is_no_subnet(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        addresses.parse_subnet(text)


def test_hardware_addresses_follow_from_addresses_and_lead_back() -> None:
    address = addresses.parse("172.16.1.2")
    assert addresses.pod_mac(address) == "0a:58:ac:10:01:02"
    assert addresses.host_mac(address) == "0e:58:ac:10:01:02"
    assert addresses.of_host_mac("0e:58:ac:10:01:02") == address
    ends = ("1", "1:2:3", "1:zz", "1:100")
    strange = ["0a:58:ac:10:01:02", "0e:59:ac:10:01:02", *(f"0e:58:ac:10:{end}" for end in ends)]
    assert [addresses.of_host_mac(mac) for mac in strange] == [None] * len(strange)


def test_ipv6_is_written_as_people_write_it() -> None:
    assert addresses.link_local("0a:58:ac:10:01:02") == "fe80::858:acff:fe10:102"  # RFC 4291, appendix A
    assert addresses.ipv6(addresses.ipv6_number("fd00:0:0::0001")) == "fd00::1"
    assert addresses.ipv6_number("::1:2") == 0x10002
    for text in ("10.0.0.1", "fd00:::1", "fd00::1\0"):
        with pytest.raises(ValueError, match="is not an IPv6 address"):
            addresses.ipv6_number(text)
