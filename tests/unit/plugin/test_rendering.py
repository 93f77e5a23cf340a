from __future__ import annotations

import pytest
from concorde import addresses, links, names, results, shaping
from concorde.leases import Link
from hypothesis import given
from hypothesis import strategies as st

SUBNET = addresses.parse_subnet("172.16.1.0/24")
LINK = Link("eth0", 1450, addresses.parse("172.16.1.2"), SUBNET, "cni-a", "veth0123456789a")


def test_the_pair_is_made_in_the_pods_namespace_and_on_the_bridge() -> None:
    assert links.pair_batch(LINK, "/run/netns/pod").splitlines() == [
        "link set dev cni-a addrgenmode none alias concorde type bridge mcast_snooping 0",
        "addr replace 172.16.1.1/24 brd + dev cni-a",
        "link set dev cni-a up",
        "link add name veth0123456789a address 0e:58:ac:10:01:02 mtu 1450 master cni-a type veth"
        " peer name eth0 address 0a:58:ac:10:01:02 mtu 1450 netns /run/netns/pod",
        "link property add dev veth0123456789a altname cni-a-172.16.1.2",
        "link set dev veth0123456789a addrgenmode none",
        "link set dev veth0123456789a up",
    ]


def test_the_pods_default_route_is_the_papers() -> None:
    assert "route add default via 172.16.1.1 dev eth0" in links.pod_batch(LINK).splitlines()


def test_shaping_is_the_papers() -> None:
    burst = shaping.default_burst(10**9)
    assert shaping.batch("eth0", 10**9, burst).splitlines() == [
        "qdisc add dev eth0 root handle 1: htb default 1",
        "class add dev eth0 parent 1: classid 1:1 htb rate 1000000000bit ceil 1000000000bit"
        " burst 10485760b cburst 10485760b quantum 65536",
    ]


@pytest.mark.parametrize(
    ("rate", "largest"), [(10**9, 65536), (262_144_000, 65536), (20_000_000, 5000), (3_600_000, 3200)]
)
def test_an_offloaded_packet_lasts_two_milliseconds_at_most(rate: int, largest: int) -> None:
    assert shaping.largest_packet(rate) == largest


@pytest.mark.parametrize(("rate", "burst"), [(4 * 10**9, 10 << 20), (10**7, 104857), (1000, 3200)])
def test_the_burst_is_the_papers_or_as_long_as_the_papers(rate: int, burst: int) -> None:
    assert shaping.default_burst(rate) == burst


@given(st.integers(1000, 10**12))
def test_every_burst_fits_the_kernels_clock(rate: int) -> None:
    assert shaping.default_burst(rate) <= shaping.longest_burst(rate)


def test_counting_payload_raises_the_rate_by_frame_over_payload() -> None:
    assert shaping.class_rate(1_398_000_000, "payload", 1450) == 1_464_000_000
    assert shaping.class_rate(10**9, "layer2", 1450) == 10**9


@pytest.mark.parametrize(
    ("rate", "shown"),
    [
        (10**9, "1Gbit"),
        (1_500_000_000, "1500Mbit"),
        (954_321_987, "954321Kbit"),
        (1_000_008, "1Mbit"),
        (999_992, "999992bit"),
        (10**12, "1Tbit"),
        (1000, "1Kbit"),
        (1007, "1Kbit"),
    ],
)
def test_rates_are_written_as_tc_writes_them(rate: int, shown: str) -> None:
    assert shaping.shown_rate(rate) == shown


def test_both_forms_of_tcs_output_are_understood() -> None:
    text = "class htb 1:1 root prio 0 rate 1500Mbit ceil 1Gbit burst 10Mb cburst 10Mb \n"
    json = '[{"class":"htb","handle":"1:1","root":true,"prio":0,"rate":187500000,"ceil":125000000}]'
    assert shaping.rates_of_class(text) == shaping.rates_of_class(json) == ("1500Mbit", "1Gbit")
    assert shaping.rates_of_class("") is None
    assert shaping.rates_of_class("[]") is None


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0"])
def test_old_results_say_the_ip_version(version: str) -> None:
    result = results.of_link(version, LINK, "/run/netns/pod", None)
    assert result["cniVersion"] == version
    assert result["ips"] == [
        {"version": "4", "address": "172.16.1.2/24", "gateway": "172.16.1.1", "interface": 2}
    ]


def test_the_newest_result_says_the_mtu() -> None:
    result = results.of_link("1.1.0", LINK, "/run/netns/pod", {"nameservers": ["10.0.0.1"]})
    assert result["interfaces"] == [
        {"name": "cni-a"},
        {"name": "veth0123456789a", "mac": "0e:58:ac:10:01:02", "mtu": 1450},
        {"name": "eth0", "mac": "0a:58:ac:10:01:02", "sandbox": "/run/netns/pod", "mtu": 1450},
    ]
    assert result["ips"] == [{"address": "172.16.1.2/24", "gateway": "172.16.1.1", "interface": 2}]
    assert result["routes"] == [{"dst": "0.0.0.0/0", "gw": "172.16.1.1"}]
    assert result["dns"] == {"nameservers": ["10.0.0.1"]}


def test_1_0_0_results_have_neither() -> None:
    result = results.of_link("1.0.0", LINK, "/run/netns/pod", None)
    assert all("mtu" not in interface for interface in result["interfaces"])
    assert all("version" not in ip for ip in result["ips"])


def test_a_previous_result_is_passed_on_in_the_version_in_use() -> None:
    previous = {"cniVersion": "0.4.0", "ips": [{"version": "6", "address": "fd00::1/64"}], "other": 1}
    assert results.of_previous("1.0.0", previous) == {
        "cniVersion": "1.0.0",
        "ips": [{"address": "fd00::1/64"}],
        "other": 1,
    }
    assert results.of_previous("0.3.1", results.of_previous("1.0.0", previous))["ips"] == previous["ips"]


@given(st.text(max_size=20))
def test_no_accepted_name_contains_syntax(text: str) -> None:
    for accepted in (names.is_interface(text), names.is_identifier(text), names.is_path(text)):
        if accepted:
            assert text.split() == [text]
            assert not text.startswith("-")
            assert not set(text) & set("'\"#\\;$`|&<>\n\0")


@given(st.integers(0, 2**32 - 1))
def test_addresses_survive_being_written(address: int) -> None:
    assert addresses.parse(addresses.dotted(address)) == address


def test_fnv_1a_is_the_published_function() -> None:
    assert names.digest("foobar") == 0x85944171F73967E8
