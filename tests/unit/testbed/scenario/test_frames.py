from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.generators.iperf3 import LARGEST_BLOCK, SMALLEST_BLOCK, block_size
from testbed.scenario.frames import Protocol, expected_goodput, frame_bytes, payload_bytes
from testbed.scenario.goodput import expected_goodput_of
from tests.unit.bench.builders import scenario

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


@pytest.mark.parametrize(
    ("flow", "fields", "expected"),
    [
        ({}, {}, 1e8 * 1398 / 1464),
        ({"protocol": "udp", "rate": "1G"}, {}, 1e8 * 1422 / 1464),
        ({"rate": "50M"}, {}, 5e7),
        ({"rate": "99M"}, {}, 1e8 * 1398 / 1464),
        ({}, {"count": "payload"}, 1e8),
        ({}, {"underlay": {"mtu": 9000}}, 1e8 * 8898 / 8964),
        ({}, {"enforcement": "none"}, 1e8 * 1398 / 1464),
        ({"from": "C", "to": "A"}, {}, None),
    ],
)
def test_expected_goodput_of_a_flow(
    flow: dict[str, str], fields: dict[str, Any], expected: float | None
) -> None:
    experiment = scenario(flows=[{"from": "A", "to": "C", **flow}], disturbances=[], **fields)
    got = expected_goodput_of(experiment, experiment.flows[0])
    assert got == (None if expected is None else pytest.approx(expected))


@given(rate=RATES, interval=st.floats(min_value=0.1, max_value=10))
def test_a_block_hardly_moves_a_sample(rate: int, interval: float) -> None:
    block = block_size(rate, interval)
    assert SMALLEST_BLOCK <= block <= LARGEST_BLOCK
    assert block % 1024 == 0
    assert block == SMALLEST_BLOCK or block * 8 <= 0.005 * rate * interval


def test_blocks_without_a_rate_and_of_datagrams() -> None:
    assert block_size(None, 0.1) == 128 * 1024
    assert block_size(1e9, 0.1) == 61 * 1024
    assert block_size(1e9, 0.1, "udp", 1450) == 1422
