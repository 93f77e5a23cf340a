"""100,000 nodes get their blocks within the time that a controller has to start again."""

from __future__ import annotations

import time
from ipaddress import ip_network

import pytest

from edge.addresses.allocation import Allocator, Config, Node, Range
from edge.addresses.arrivals import Arrivals
from edge.addresses.selectors import Requirement, Selector

pytestmark = [pytest.mark.alone, pytest.mark.long(one_in=0)]

COUNT = 100_000
MOST_SECONDS = 5.0
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


@pytest.mark.parametrize("configs", CONFIGS.values(), ids=CONFIGS.keys())
def test_all_nodes_are_served_in_time(configs: list[Config]) -> None:
    nodes = [Node(f"n{number:06}", {"size": SIZES[number % 3]}) for number in range(COUNT)]
    begin = time.monotonic()
    arrivals = Arrivals(Allocator([ip_network("10.96.0.0/16")]))
    for one in configs:
        arrivals.allocator.add(one)
    gifts = arrivals.listed(nodes)
    took = time.monotonic() - begin
    print(f"{COUNT:,} nodes: {took:.2f} s")  # noqa: T201 - shown when it fails
    blocks = [(block.version, int(block.network_address)) for gift in gifts.values() for block in gift.blocks]
    assert len(gifts) == COUNT
    assert len({*blocks}) == len(blocks)
    assert took < MOST_SECONDS
