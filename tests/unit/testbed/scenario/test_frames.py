"""How many payload bytes a promised rate can carry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario.frames import (
    Protocol,
    expected_goodput,
    frame_bytes,
    link_bytes,
    of_full_frames,
    payload_bytes,
)

RATES = st.integers(min_value=1, max_value=10**12)
MTUS = st.integers(min_value=526, max_value=9166)
PROTOCOLS: st.SearchStrategy[Protocol] = st.sampled_from(["tcp", "udp"])
VXLAN = 50  # bytes that it adds to a packet
OVERHEADS = st.sampled_from([0, VXLAN])


@pytest.mark.parametrize(
    ("mtu", "protocol", "overhead", "payload", "frame"),
    [
        (1450, "tcp", 0, 1398, 1464),
        (1450, "udp", 0, 1422, 1464),
        (1450, "tcp", VXLAN, 1398, 1514),
        (8950, "tcp", 0, 8898, 8964),
    ],
)
def test_bytes_of_a_full_packet(
    mtu: int, protocol: Protocol, overhead: int, payload: int, frame: int
) -> None:
    assert (payload_bytes(mtu, protocol), frame_bytes(mtu, overhead)) == (payload, frame)


@pytest.mark.parametrize(
    ("overhead", "gigabits"), [(0, (0.9549, 2.8648, 3.8197)), (VXLAN, (0.9234, 2.7701, 3.6935))]
)
def test_the_papers_guarantees(overhead: int, gigabits: tuple[float, ...]) -> None:
    got = [expected_goodput(rate, 1450, "tcp", "layer2", overhead) / 1e9 for rate in (1e9, 3e9, 4e9)]
    assert got == pytest.approx(gigabits, abs=5e-5)


@given(rate=RATES, mtu=MTUS, protocol=PROTOCOLS, overhead=OVERHEADS)
def test_goodput_is_below_the_rate_and_in_proportion_to_it(
    rate: int, mtu: int, protocol: Protocol, overhead: int
) -> None:
    goodput = expected_goodput(rate, mtu, protocol, "layer2", overhead)
    assert 0 < goodput < rate
    assert expected_goodput(2 * rate, mtu, protocol, "layer2", overhead) == pytest.approx(2 * goodput)
    assert expected_goodput(rate, mtu + 1, protocol, "layer2", overhead) > goodput


@given(rate=RATES, mtu=MTUS, protocol=PROTOCOLS)
def test_the_underlay_charges_more_than_the_pod(rate: int, mtu: int, protocol: Protocol) -> None:
    assert expected_goodput(rate, mtu, protocol, "layer2", VXLAN) < expected_goodput(
        rate, mtu, protocol, "layer2", 0
    )


@given(rate=RATES, mtu=MTUS, protocol=PROTOCOLS)
def test_a_guarantee_of_payload_is_the_goodput(rate: int, mtu: int, protocol: Protocol) -> None:
    assert expected_goodput(rate, mtu, protocol, "payload") == rate


def test_an_mtu_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="no room for TCP payload"):
        payload_bytes(52, "tcp")


def test_what_a_frame_takes_of_a_link() -> None:
    assert [link_bytes(frame, 24) for frame in (42, 60, 61, 1514)] == [84, 84, 85, 1538]
    assert [link_bytes(frame, 0) for frame in (42, 1514)] == [42, 1514]
    assert of_full_frames(1538, 24) == 1514
    assert of_full_frames(1e9, 0) == 1e9
