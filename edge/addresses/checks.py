"""What is wrong across the configs of one cluster, or worth a word, where each by itself is sound.

Pure, and the same of a scenario and of a cluster that exists. Each check yields the name of a config and what
is to be said of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from edge.addresses.allocation import Allocator, Config, Node, Range
from edge.addresses.space import Network

Said = Iterator[tuple[str, str]]  # a config's name, and words
# Why a config gives nothing for what others have, or the cluster: the reasons of its condition, as well.
RESERVED, MIXED, UNLIKE = "Reserved", "Mixed", "Unlike"


def disagreements(
    configs: Sequence[Config],
    reserved_ranges: Sequence[Network] = (),
    island: bool = False,
    cluster: Optional[Range] = None,  # noqa: UP045 (nodes may have Python 3.9)
) -> dict[str, tuple[str, str]]:
    """Return which configs, in the order in which they came, may not be used: by name the reason and words.

    One that fails one of the checks is no measure for others in the next. See ``unlike`` for ``island`` and
    ``cluster``.
    """
    found: dict[str, tuple[str, str]] = {}
    sound = configs
    for reason, check in (
        (RESERVED, lambda those: reserved(those, reserved_ranges)),
        (MIXED, mixed),
        (UNLIKE, lambda those: unlike(those, cluster) if island else ()),
    ):
        found.update({name: (reason, words) for name, words in check(sound)})
        sound = [config for config in sound if config.name not in found]
    return found


def mixed(configs: Sequence[Config]) -> Said:
    """Yield configs of one family where the first has two, or of two where it has one; in their order.

    So says the vendor's documentation: of several configs all are dual stack, or none. That the first decides
    lets none that comes later stop those that give.
    """
    for config in configs[1:]:
        first = configs[0]
        if len(config.ranges) == len(first.ranges):
            continue
        if len(config.ranges) == 1:
            must = f"IPv{4 if config.ranges[0].network.version == 6 else 6} too"
        else:
            must = f"IPv{first.ranges[0].network.version} alone"
        why = f"as {first.name} has, which comes first: of one cluster all have both, or none"
        yield config.name, f"must have {must}, {why}"


def unlike(configs: Sequence[Config], cluster: Optional[Range] = None) -> Said:  # noqa: UP045
    """Yield configs of both families with another IPv4 range or mask than the cluster's.

    For a cluster in which IPv4 is an island, whose packets are wrapped between nodes; so says the vendor's
    documentation. Where nothing else says what the cluster's are, the first config of both families does.
    """
    ranges = [(one.name, one.ranges[0]) for one in configs if len(one.ranges) == 2]
    for name, one in ranges:
        wanted = cluster or ranges[0][1]
        if one != wanted:
            whose = "the cluster's" if cluster else f"as {ranges[0][0]} has, which comes first"
            why = (
                "where nodes wrap packets, all configs of two families have the cluster's IPv4 range and mask"
            )
            yield name, f"must have IPv4 {wanted.network} by /{wanted.mask}, {whose}: {why}"


def reserved(configs: Iterable[Config], ranges: Sequence[Network]) -> Said:
    """Yield configs of which no block is left beside what is reserved, whoever has what."""
    beside = Allocator(ranges)
    for config in configs:
        for one in config.ranges:
            if not beside.free_in(one, 1):
                over = ", ".join(map(str, overlapping([one], ranges)))
                why = f"{one.network} has no block outside {over}, which is reserved"
                yield config.name, f"gives nothing, since {why}: make one with another range"
                break


def overlapping(ranges: Iterable[Range], networks: Iterable[Network]) -> list[Network]:
    """Return which of some networks any of these ranges overlaps."""
    own = [one.network for one in ranges]
    return [one for one in networks if any(one.version == of.version and one.overlaps(of) for of in own)]


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
                f"is for {count} nodes and has {possible} block{'s' * (possible != 1)}: "
                f"{count - possible} get another's or wait",
            )
