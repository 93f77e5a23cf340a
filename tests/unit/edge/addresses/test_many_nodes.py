"""How much work it is to give many nodes their blocks; ``benchmarks/addresses.py`` says how long it takes."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_network

import pytest

from edge.addresses.allocation import Allocator, Config, Node, Range
from edge.addresses.arrivals import Arrivals, Gifts
from edge.addresses.selectors import Requirement, Selector
from tests import effort

FEW = 400
SIZES = ("large", "small", "kiosk")


def config(name: str, ranges: str, *asked: Requirement) -> Config:
    parts = [text.rpartition(":") for text in ranges.split()]
    made = tuple(Range(ip_network(network), int(mask)) for network, _, mask in parts)
    return Config(name, made, Selector(asked))


def for_size(size: str) -> Requirement:
    return Requirement("size", "In", (size,))


CONFIGS = {
    "one": [config("all", "10.0.0.0/8:26")],
    "three": [
        config("large", "10.0.0.0/9:25"),
        config("small", "10.128.0.0/10:27", for_size("small")),
        config("kiosk", "10.192.0.0/10:29", for_size("kiosk")),
    ],
    # IPv6 has at most 65,536 blocks a config, so the others are given of the next.
    "dual stack": [
        config("both", "10.0.0.0/12:28 fd00::/108:124"),
        config("more", "11.0.0.0/12:28 fd01::/108:124"),
    ],
}


def listed(configs: list[Config], count: int) -> Gifts:
    """Give so many nodes, which were there before the controller, their blocks."""
    nodes = [Node(f"n{number:06}", {"size": SIZES[number % 3]}) for number in range(count)]
    arrivals = Arrivals(Allocator([ip_network("10.96.0.0/16")]))
    for one in configs:
        arrivals.allocator.add(one)
    return arrivals.listed(nodes)


@pytest.mark.parametrize("configs", CONFIGS.values(), ids=CONFIGS.keys())
def test_twice_as_many_nodes_are_twice_the_work(configs: list[Config]) -> None:
    effort.assert_in_proportion(partial(listed, configs), FEW)
    gifts = listed(configs, FEW)
    blocks = {block for gift in gifts.values() for block in gift.blocks}
    assert len(blocks) == FEW * len(configs[0].ranges)
