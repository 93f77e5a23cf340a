from __future__ import annotations

from concorde.node import uplinks


def test_the_default_route_with_the_least_metric_counts() -> None:
    lines = [
        "eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0",
        "eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0",
        "eth2\t0000A8C0\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0",
    ]
    assert uplinks.default_device(lines) == "eth0"
    assert uplinks.default_device(lines[2:]) is None
