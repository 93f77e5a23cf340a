from __future__ import annotations

import pytest
from concorde.node.records import Tree, uplink_rate

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


@pytest.mark.parametrize(("overhead", "least"), [(24, 84), (0, 0), (38, 98)])
def test_full_frames_of_all_that_is_promisable_fit_the_wire(overhead: int, least: int) -> None:
    """Sent as offloaded packets, which count the frames' overhead once: so twice the difference is left."""
    tree = Tree("eth0", GIGA, 20_000_000, (), overhead)
    frame = 1514 + overhead
    assert tree.least == least
    assert tree.on_wire(1514) == frame
    of_wire = (tree.on_wire(tree.promisable) + tree.reserve) * frame / 1514
    assert GIGA - 1000 < of_wire <= GIGA
