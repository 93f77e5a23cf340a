"""From a node's counters to what had arrived at its pod."""

from __future__ import annotations

import pytest

from bench.recording.queues import Queue, Reading
from bench.studies.promise import records


def reading(at: float, **sent: tuple[int, int]) -> Reading:
    links = [
        Queue(name, "link", "", "", octets, packets, 0, 0, 0) for name, (octets, packets) in sent.items()
    ]
    class_ = Queue("eth0", "htb", "c0de:10", "c0de:1", 10**9, 1, 0, 0, 0)
    return Reading(at, {one.key: one for one in [*links, class_]})


def test_the_busiest_device_is_the_one_that_sent_most_meanwhile() -> None:
    readings = [
        reading(0, eth0=(10**6, 1), veth1=(0, 0)),
        reading(1, eth0=(10**6 + 500, 9), veth1=(10**4, 5)),
    ]
    assert records.busiest(readings) == "veth1"
    assert records.busiest([]) is None


def test_a_device_that_came_later_counts_from_nothing() -> None:
    assert records.busiest([reading(0, eth0=(5, 1)), reading(1, eth0=(9, 1), veth1=(100, 1))]) == "veth1"


@pytest.mark.parametrize(("protocol", "headers"), [("tcp", 66), ("udp", 42)])
def test_payload_is_what_is_left_without_headers(protocol: str, headers: int) -> None:
    """Of one joined packet of 64 KiB as of three single frames."""
    octets = 64_000 + 3 * 1400 + 4 * headers
    found = records.payload([reading(0, veth1=(0, 0)), reading(1, veth1=(octets, 4))], "veth1", protocol)  # type: ignore[arg-type]
    assert found == [(0, 0.0), (1, 8 * (64_000 + 3 * 1400))]
