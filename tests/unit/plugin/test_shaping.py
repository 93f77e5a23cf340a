from __future__ import annotations

import pytest
from concorde import shaping
from hypothesis import given
from hypothesis import strategies as st


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
    text = (
        "class htb 1:1 root prio 0 quantum 65536 rate 1500Mbit overhead 24 ceil 1Gbit linklayer ethernet"
        " burst 10Mb/1 mpu 84b cburst 10Mb/1 mpu 84b level 0 \n"
    )
    json = (
        '[{"class":"htb","handle":"1:1","root":true,"prio":0,"quantum":65536,"rate":187500000,"overhead":24,'
        '"ceil":125000000,"linklayer":"ethernet","burst":10485760,"burst_cell":1,"mpu_rate":84,'
        '"cburst":10485760,"cburst_cell":1,"mpu_ceil":84,"level":0}]'
    )
    assert shaping.classes(text) == shaping.classes(json)
    assert shaping.classes(text) == {"1:1": ("1500Mbit", "1Gbit", *shaping.shown_count(24, 84), "")}
    assert shaping.rates_of_class("") is None
    assert shaping.rates_of_class("[]") is None
