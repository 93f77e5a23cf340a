"""Clusters by their configs and the labels of their nodes, for tests of what is left of their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

from edge.addresses.allocation import Allocator, Config, NoBlockError, Node, Range
from edge.addresses.inventory import Inventory
from edge.addresses.selectors import Requirement, Selector

Told = tuple[str, str, str]  # a config's name, its ranges as network:mask, and the labels that it asks for


def config(name: str, ranges: str, labels: str = "") -> Config:
    parts = [text.rpartition(":") for text in ranges.split()]
    pairs = [label.split("=") for label in labels.split(",") if label]
    return Config(
        name,
        tuple(Range(ip_network(network), int(mask)) for network, _, mask in parts),
        Selector(tuple(Requirement(key, "In", (value,)) for key, value in pairs)),
    )


def inventory(told: Sequence[Told], nodes: dict[str, str], reserved: Sequence[str] = ()) -> Inventory:
    """Return the inventory of nodes with labels like ``size=small``, each with what it is due."""
    allocator = Allocator(map(ip_network, reserved))
    for one in told:
        allocator.add(config(*one))
    there = [
        Node(name, dict(label.split("=") for label in labels.split(",") if label))
        for name, labels in nodes.items()
    ]
    waiting = {}
    for node in there:
        try:
            allocator.allocate(node)
        except NoBlockError as error:
            waiting[node.name] = str(error)
    return Inventory("a", allocator, there, {"n0": 5}, waiting)


STATION = [("large", "10.0.0.0/22:24", ""), ("small", "10.1.0.0/25:27", "size=small")]
