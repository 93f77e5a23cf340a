"""Which block of pod addresses a node gets: configs, their order for a node, and what is given already.

Pure: a scenario and the controller of a live cluster ask the same. The rules are those of ClusterCIDRConfig
("allocation rules" of GKE on Bare Metal); where it says nothing, of Kubernetes' KEP-2593. Configs may
overlap: a block is given only if it overlaps nothing that any node has, and nothing reserved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Optional

from edge.addresses.selectors import NAME_FIELD, NOBODY, Index, Selector
from edge.addresses.space import Network, Space


class Range(NamedTuple):
    """A network that is divided into blocks of one size."""

    network: Network
    mask: int  # prefix length of a block

    @property
    def possible(self) -> int:
        """How many blocks it has, given or not."""
        return 1 << (self.mask - self.network.prefixlen)

    @property
    def host_bits(self) -> int:
        """Bits of an address within a block."""
        return self.network.max_prefixlen - self.mask

    def has(self, block: Network) -> bool:
        """Whether a block is one of its blocks."""
        return (
            block.version == self.network.version
            and block.prefixlen == self.mask
            and block.network_address in self.network
        )


class Config(NamedTuple):
    """Ranges for the nodes that a selector matches: IPv4's, IPv6's, or one of each in this order."""

    name: str
    ranges: tuple[Range, ...]
    selector: Selector = Selector()

    def is_for(self, node: Node) -> bool:
        """Whether its selector matches a node."""
        return self.selector.matched(node.asked) is not None

    def rank(self, matched: int) -> tuple[int, int, int, str, int, str]:
        """Return what configs for a node are sorted by; the first comes first."""
        return (
            -matched,
            min(one.possible for one in self.ranges),
            self.ranges[0].host_bits,
            str(self.selector),
            int(self.ranges[0].network.network_address),
            self.name,
        )


class Node(NamedTuple):
    """A node, and the blocks that it has already."""

    name: str
    labels: Mapping[str, str]
    blocks: tuple[Network, ...] = ()
    created: str = ""  # as an API writes it: UTC in whole seconds, so texts are in the order of times
    uid: str = ""  # another one of the same name has another

    @property
    def turn(self) -> tuple[str, str]:
        """What nodes of which none came first are sorted by."""
        return (self.created, self.name)

    @property
    def asked(self) -> dict[str, str]:
        """What a selector may ask for: its labels, and its name."""
        return {**self.labels, NAME_FIELD: self.name}


class Given(NamedTuple):
    """What a node has, and of which config; empty if it is no config's."""

    config: str
    blocks: tuple[Network, ...]


class NoBlockError(Exception):
    """No config has a block for a node; the message says why, config by config, and what would help."""


class Ranking:
    """Configs in their order for nodes, found once for all nodes that the same ones match alike."""

    def __init__(self, configs: Iterable[Config]) -> None:
        alike: dict[Selector, list[Config]] = {}
        for config in configs:
            alike.setdefault(config.selector, []).append(config)
        self._alike = list(alike.values())
        self._index = Index(list(alike))
        self._orders: dict[tuple[tuple[int, int], ...], list[Config]] = {}

    def of(self, node: Node) -> list[Config]:
        """Return the configs that match a node, the first first."""
        matched = self._index.matched(node.asked)
        if matched not in self._orders:
            found = [(one.rank(count), one) for number, count in matched for one in self._alike[number]]
            self._orders[matched] = [one for _, one in sorted(found)]
        return self._orders[matched]


class Allocator:
    """The blocks of one cluster; ``reserved`` is given to nobody, such as the range of services.

    A server that is not ``dual_stack`` keeps one block a node: configs of both families give nothing there.
    """

    def __init__(self, reserved: Iterable[Network] = (), dual_stack: bool = True) -> None:
        self.configs: dict[str, Config] = {}
        self.given: dict[str, Given] = {}
        self._nodes: dict[str, dict[str, None]] = {}  # of a config; "" has those that are no config's
        self._withdrawn: dict[str, str] = {}
        self._ranking: Optional[Ranking] = None  # as long as no config comes or goes  # noqa: UP045
        self._exhausted: set[str] = set()  # configs of which it is known that they have no block
        self.dual_stack = dual_stack
        self._spaces = {4: Space(32), 6: Space(128)}
        for network in reserved:
            self._spaces[network.version].take(network)

    def add(self, config: Config) -> None:
        """Give blocks of a config, too; what nodes have of it that was no config's is its own from now on."""
        if self.configs.get(config.name) == config:
            return
        self.remove(config.name)
        self.configs[config.name] = config
        for node in [one for one in self.nodes_of("") if _is_of(self.given[one].blocks, config)]:
            self._attribute(node, config.name)

    def withdraw(self, name: str, why: str) -> None:
        """Give nothing more of a config, as long as there is a reason; what nodes have of it they keep."""
        self._withdrawn[name] = why

    def remove(self, name: str) -> None:
        """Forget a config that is gone; what nodes have of it they keep, as another's or as no config's."""
        self.configs.pop(name, None)
        self._ranking = None
        self._exhausted.discard(name)
        self._withdrawn.pop(name, None)
        for node in list(self.nodes_of(name)):
            self._attribute(node, self._config_of(Node(node, {}, self.given[node].blocks)))

    def nodes_of(self, name: str) -> Collection[str]:
        """Return the nodes that have blocks of a config, now and later; of "": blocks of no config."""
        return self._nodes.setdefault(name, {}).keys()

    def occupy(self, node: Node, config: str = "") -> Given:
        """Take the blocks that a node has, wherever they lie; of the config that is named, or fits best."""
        self.release(node.name)
        for block in node.blocks:
            self._spaces[block.version].take(block)
        named = self.configs.get(config)
        of = config if named and _is_of(node.blocks, named) else self._config_of(node)
        self.given[node.name] = Given(of, node.blocks)
        self._nodes.setdefault(of, {})[node.name] = None
        return self.given[node.name]

    def allocate(self, node: Node) -> Given:
        """Give a node what it is due, or return what it has. Raises NoBlockError."""
        if node.name in self.given:
            return self.given[node.name]
        offered = self.offer(node)
        if offered is None:
            raise NoBlockError(self.why_not(node))
        return self.occupy(node._replace(blocks=offered.blocks), offered.config)

    def offer(self, node: Node) -> Optional[Given]:  # noqa: UP045 (nodes may have Python 3.9)
        """Return what a node would be given now, whatever it has; None if there is nothing for it."""
        for config in self._ordered(node):
            if self._has_block(config) and not self.refusal(config):
                found = (self._spaces[one.network.version].lowest(*one) for one in config.ranges)
                return Given(config.name, tuple(filter(None, found)))
        return None

    def has_blocks(self) -> bool:
        """Whether there is a node that would be given something."""
        return any(self._has_block(one) and not self.refusal(one) for one in self.configs.values())

    def giving(self, node: Node) -> list[Config]:
        """Return the configs that give to a node, as far as they have blocks; it is offered the first's."""
        return [config for config in self._ordered(node) if not self.refusal(config)]

    def release(self, name: str) -> None:
        """Take back what a node had, which is gone; nothing if it had nothing."""
        given = self.given.pop(name, None)
        if given is None:
            return
        del self._nodes[given.config][name]
        self._exhausted.clear()
        for block in given.blocks:
            self._spaces[block.version].release(block)

    def has_alone(self, name: str) -> bool:
        """Whether what a node has overlaps nothing that another has, or that is reserved."""
        blocks = self.given[name].blocks
        for block in blocks:
            self._spaces[block.version].release(block)
        alone = all(self._spaces[block.version].has(block, block.prefixlen) for block in blocks)
        for block in blocks:
            self._spaces[block.version].take(block)
        return alone

    def free(self, name: str) -> int:
        """Return how many more nodes get a block of a config."""
        config = self.configs[name]
        return min(self._spaces[one.network.version].free(one.network, one.mask) for one in config.ranges)

    def free_in(self, one: Range, count: Optional[int] = None) -> list[Network]:  # noqa: UP045
        """Return a range's free blocks, or the lowest ``count``; those side by side as larger networks."""
        return self._spaces[one.network.version].runs(
            one.network, one.mask, one.possible if count is None else count
        )

    def fitting(self, node: Node) -> int:
        """Return how many more nodes like this one get blocks, of their best config and then the others."""
        total, taken = 0, []
        for config in self.giving(node):
            count = self.free(config.name)
            for block in [block for one in config.ranges for block in self.free_in(one, count)]:
                self._spaces[block.version].take(block)
                taken.append(block)
            total += count
        for block in taken:
            self._spaces[block.version].release(block)
        return total

    def _ordered(self, node: Node) -> list[Config]:
        if self._ranking is None:
            self._ranking = Ranking(self.configs.values())
        return self._ranking.of(node)

    def _has_block(self, config: Config) -> bool:
        """Whether it has one of each family: both or neither. What is exhausted stays so until a release."""
        if config.name not in self._exhausted:
            if all(self._spaces[one.network.version].has(*one) for one in config.ranges):
                return True
            self._exhausted.add(config.name)
        return False

    def _config_of(self, node: Node) -> str:
        """Return whose blocks a node's are: of the configs that have them the best one; "" without any."""
        labels = node.asked
        having = (one for one in self.configs.values() if _is_of(node.blocks, one))
        found = ((one, one.selector.matched(labels)) for one in having)
        ranked = [(matched is None, one.rank(matched or 0), one.name) for one, matched in found]
        return min(ranked)[-1] if ranked else ""

    def _attribute(self, node: str, config: str) -> None:
        given = self.given[node]
        del self._nodes[given.config][node]
        self._nodes.setdefault(config, {})[node] = None
        self.given[node] = given._replace(config=config)

    def refusal(self, config: Config) -> str:
        """Return why a config gives nothing to anybody; empty if it does."""
        if len(config.ranges) > 1 and not self.dual_stack:
            return (
                "is for IPv4 and IPv6, and this server keeps one block a node: "
                "start it with the feature gate IPv6DualStack, or make a config with one family"
            )
        return self._withdrawn.get(config.name, "")

    def why_not(self, node: Node) -> str:
        """Return why a node is offered nothing, config by config, and what would help."""
        labels = node.asked
        if not self.configs:
            return "there is no config yet: make one"
        return "; ".join(f"{one.name} {self._reason(one, labels)}" for one in self.configs.values())

    def _reason(self, config: Config, labels: Mapping[str, str]) -> str:
        if config.selector.matches_nothing:
            return f"{NOBODY}: make another"
        missing = config.selector.missing(labels)
        if missing:
            remedy = "" if any(one.key == NAME_FIELD for one in missing) else ": label the node so"
            return f"is for nodes with {', '.join(map(str, missing))}{remedy}"
        return self.refusal(config) or (
            f"has no block left, {self.used_up(config)}: make one with another range"
        )

    def used_up(self, config: Config) -> str:
        """Say what became of the blocks of a config that has none left."""
        given, possible = len(self.nodes_of(config.name)), min(one.possible for one in config.ranges)
        rest = ", the rest overlaps others' or what is reserved" if given < possible else ""
        return f"{given:,} of {possible:,} given{rest}"


def _is_of(blocks: tuple[Network, ...], config: Config) -> bool:
    """Whether a node's blocks, one a family, are a config's."""
    return len(blocks) == len(config.ranges) and all(
        any(one.has(block) for one in config.ranges) for block in blocks
    )
