"""What is wrong across the configs of one cluster, or worth a word, where each by itself is sound.

Pure, and the same of a scenario and of a cluster that exists. Each check yields the name of a config and what
is to be said of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from edge.addresses.allocation import Allocator, Config, Node

Said = Iterator[tuple[str, str]]  # a config's name, and words


def mixed(configs: Sequence[Config]) -> Said:
    """Yield configs with one family where others have two: nodes would differ in what they can reach.

    So says the vendor's documentation: of several configs all are dual stack, or none.
    """
    both = [one.name for one in configs if len(one.ranges) == 2]
    for config in configs:
        if both and len(config.ranges) == 1:
            lacks = 6 if config.ranges[0].network.version == 4 else 4
            yield (
                config.name,
                f"must have IPv{lacks} too, as {both[0]} has: of one cluster all have both, or none",
            )


def unlike(configs: Sequence[Config]) -> Said:
    """Yield configs of both families with another IPv4 range or mask than the first of them.

    For a cluster in which IPv4 is an island, whose packets are wrapped between nodes. The vendor wants each
    config's IPv4 range and mask to be the cluster's; here nothing but configs says what the cluster's are.
    """
    ranges = [(one.name, one.ranges[0]) for one in configs if len(one.ranges) == 2]
    for name, one in ranges[1:]:
        first, its = ranges[0]
        if one != its:
            yield (
                name,
                (
                    f"must have IPv4 {its.network} by /{its.mask}, as {first} has: where nodes wrap packets, "
                    "all configs of two families have the cluster's IPv4 range and mask"
                ),
            )


def crowded(allocator: Allocator, nodes: Iterable[Node]) -> Said:
    """Yield configs with fewer blocks than nodes that they are best for: a warning, they may wait."""
    asking: Counter[str] = Counter()
    for node in nodes:
        asking.update(config.name for config in allocator.giving(node)[:1])
    for name, count in asking.items():
        possible = min(one.possible for one in allocator.configs[name].ranges)
        if count > possible:
            yield (
                name,
                f"is for {count} nodes and has {possible} blocks: {count - possible} get another's or wait",
            )
