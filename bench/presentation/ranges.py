"""A cluster's ranges of pod addresses as they are drawn: parts of equal size, and what of each is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from bench.presentation.wording import verbatim
from edge.addresses.allocation import Range
from edge.addresses.inventory import Inventory
from testbed.scenario.blocks import around

# Of the drawing: columns of a row, and rows at most. With the address before it a row has 80 columns; one of
# IPv6, whose addresses are longer, half as many.
COLUMNS = {4: 64, 6: 32}
ROWS = 4
WIDEST = {4: 8, 6: 32}  # blocks of no config are drawn if a network as long as this is around them
NO_CONFIG = "no config"


class Cell(NamedTuple):
    """A part of a range, and of how many blocks it is what; ``other``: somebody else has these addresses."""

    first: str  # address
    given: int
    other: int
    free: int

    @property
    def used(self) -> float:
        """The share that is not free, from 0 to 1."""
        return 1 - self.free / (self.given + self.other + self.free)


def totals(cells: Sequence[Cell]) -> tuple[int, int, int]:
    """Return how many blocks of parts are given, others' and free."""
    return (
        sum(cell.given for cell in cells),
        sum(cell.other for cell in cells),
        sum(cell.free for cell in cells),
    )


class Strip(NamedTuple):
    """A range as it is drawn: parts of equal size, in the order of their addresses."""

    config: str  # empty: what nodes have of none
    range: Range
    cells: Sequence[Cell]
    gives: bool = True

    @property
    def blocks(self) -> int:
        """How many blocks a part has."""
        return self.range.possible // len(self.cells)

    def rows(self) -> list[Sequence[Cell]]:
        """Return the parts as they stand below each other."""
        columns = COLUMNS[self.range.network.version]
        return [self.cells[start : start + columns] for start in range(0, len(self.cells), columns)]

    def headline(self) -> str:
        """Say which range this is, and what is left of it."""
        given, other, free = totals(self.cells)
        taken = f", {other:,} taken by others" if other else ""
        rest = f"{free:,} free" if self.gives else f"gives nothing of {free:,}"
        said = f"{given:,} of {self.range.possible:,} given{taken}, {rest}"
        return f"{self.config or NO_CONFIG}: {self.range.network} by /{self.range.mask}, {said}"


def strips(inventory: Inventory) -> list[Strip]:
    """Return each range as it is drawn; without any config the network around what nodes have."""
    configs = inventory.allocator.configs
    found = [_strip(inventory, name, one) for name, config in configs.items() for one in config.ranges]
    return found or [_strip(inventory, "", one) for one in _around(inventory)]


def _strip(inventory: Inventory, config: str, of: Range) -> Strip:
    version = of.network.version
    count = min(of.possible, COLUMNS[version] * ROWS)
    each = of.possible // count  # blocks of a part
    size = each << of.host_bits
    start = int(of.network.network_address)
    given, free = [0] * count, [0] * count
    own = [
        block
        for one in inventory.allocator.given.values()
        if one.config == config
        for block in one.blocks
        if block.version == version and block.overlaps(of.network)
    ]
    for networks, counted in ((own, given), (inventory.allocator.free_in(of), free)):
        for network in networks:
            first, last = int(network[0]) - start, int(network[-1]) - start
            for at in range(max(first, 0) // size, min(last // size, count - 1) + 1):
                overlap = min(last + 1, (at + 1) * size) - max(first, at * size)
                counted[at] += max(overlap >> of.host_bits, 1)
    cells = []
    for at in range(count):
        mine = min(given[at], each - free[at])
        first_address = str(type(of.network)((start + at * size, of.mask)).network_address)
        cells.append(Cell(first_address, mine, each - mine - free[at], free[at]))
    known = inventory.allocator.configs.get(config)
    return Strip(config, of, cells, known is None or not inventory.allocator.refusal(known))


def _around(inventory: Inventory) -> Iterator[Range]:
    """Yield, for each family, the smallest network around what nodes have, by the size of the smallest."""
    for version in (4, 6):
        blocks = [one for row in inventory.rows() for one in row.blocks if one.version == version]
        network = around(blocks) if blocks else None
        if network and network.prefixlen >= WIDEST[version]:
            yield Range(network, max(one.prefixlen for one in blocks))


class _Look(NamedTuple):
    """The characters of parts: wholly given, wholly others', free, and the more the higher otherwise."""

    given: str
    other: str
    free: str
    partly: str

    def of(self, cell: Cell) -> tuple[str, str]:
        """Return a part's character and its style."""
        blocks = cell.given + cell.other + cell.free
        if cell.free == blocks:
            return self.free, "dim"
        style = "cyan" if cell.given else "yellow"
        if cell.free:
            return self.partly[int(cell.used * len(self.partly))], style
        return self.given if cell.given else self.other, style

    def key(self) -> str:
        """Say what the characters mean."""
        partly = dict.fromkeys((self.partly[0], self.partly[-1]))
        return (
            f"{self.given} given  {'-'.join(partly)} in part  {self.other} taken by others  {self.free} free"
        )


UNICODE, ASCII = _Look("█", "▒", "·", "▁▂▃▄▅▆▇"), _Look("#", "x", ".", "+")


class Drawing:
    """Ranges for a terminal; what a colour says, a character says too."""

    def __init__(self, of: Sequence[Strip]) -> None:
        self._of = of

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        look = ASCII if options.ascii_only else UNICODE
        labels: dict[int, int] = {}  # the longest address of a family
        for strip in self._of:
            longest = max(len(row[0].first) for row in strip.rows())
            version = strip.range.network.version
            labels[version] = max(longest, labels.get(version, 0))
        for strip in self._of:
            yield verbatim(strip.headline())
            wide = COLUMNS[strip.range.network.version] // len(strip.rows()[0])
            for row in strip.rows():
                line = Text(f"{row[0].first:<{labels[strip.range.network.version]}} ", no_wrap=True)
                for character, style in map(look.of, row):
                    line.append(character * wide, style)
                yield line
        yield verbatim(look.key(), "dim")
