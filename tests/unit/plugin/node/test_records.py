from __future__ import annotations

import pytest
from concorde.node.records import uplink_rate

from tests.unit.plugin.node.examples import GIGA


@pytest.mark.parametrize(
    ("count", "mtu", "encapsulation", "rate"),
    [
        ("layer2", 1450, 50, -(-GIGA * 1514 // 1464)),
        ("payload", 1450, 50, -(-GIGA * 1514 // 1398)),
        ("layer2", 1500, 0, GIGA),
    ],
)
def test_a_guarantee_grows_by_the_overlays_headers(
    count: str, mtu: int, encapsulation: int, rate: int
) -> None:
    assert uplink_rate(GIGA, count, mtu, encapsulation) == rate
