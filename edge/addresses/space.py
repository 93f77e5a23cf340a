"""Free address space of one family: which block is the lowest that nobody has.

A binary trie over the addresses' bits that knows for every prefix the largest free block below it, so that a
block is found, taken and given back in as many steps as an address has bits, however many are taken.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Network, IPv6Network
from typing import Optional, Union

Network = Union[IPv4Network, IPv6Network]


class Space:
    """What is taken of 2 to the power of ``bits`` addresses; a block may be taken more than once.

    A prefix is a number: a 1, and then its bits. So its halves are ``2 * n`` and ``2 * n + 1``, and 1 is all.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._taken: Counter[int] = Counter()
        # How many of those prefixes have which length: of the 128 that there can be, a few.
        self._lengths: Counter[int] = Counter()
        # The length of the largest free block below a prefix; more than ``bits``: there is none. A prefix
        # that is not in here is wholly free.
        self._largest: dict[int, int] = {}
        # How many blocks of a length are free below a prefix, where that was asked once.
        self._counts: dict[int, dict[int, int]] = {}

    def take(self, block: Network) -> None:
        """Take a block, wherever it lies, and whoever has taken it before."""
        prefix = self._prefix(block)
        if prefix not in self._taken:
            self._recount(prefix, -1)
            self._lengths[block.prefixlen] += 1
            self._largest[prefix] = self._bits + 1
            self._tell_upwards(prefix)
        self._taken[prefix] += 1

    def release(self, block: Network) -> None:
        """Give a block back, once for each time that it was taken. Raises KeyError if it is not."""
        prefix = self._prefix(block)
        if prefix not in self._taken:
            raise KeyError(str(block))
        self._taken[prefix] -= 1
        if not self._taken[prefix]:
            del self._taken[prefix]
            self._lengths -= Counter([block.prefixlen])
            self._tell_upwards(2 * prefix)
            self._recount(prefix, 1)

    def has(self, within: Network, length: int) -> bool:
        """Whether a network has a block of a prefix length that overlaps nothing taken."""
        prefix = self._prefix(within)
        return self._largest.get(prefix, within.prefixlen) <= length and not self._covered(prefix)

    def lowest(self, within: Network, length: int) -> Optional[Network]:  # noqa: UP045
        """Return the lowest of these blocks, or None."""
        if not self.has(within, length):
            return None
        prefix = self._prefix(within)
        for own in range(within.prefixlen + 1, length + 1):
            prefix *= 2
            if self._largest.get(prefix, own) > length:
                prefix += 1
        return self._network(prefix, within)

    def free(self, within: Network, length: int) -> int:
        """Return how many blocks of a prefix length are left in a network; they are counted once only."""
        prefix = self._prefix(within)
        counts = self._counts.setdefault(prefix, {})
        if length not in counts:
            counts[length] = self._count(prefix, length)
        return counts[length]

    def runs(self, within: Network, length: int, count: int) -> list[Network]:
        """Return the lowest ``count`` free blocks of a length; those side by side as larger networks."""
        prefix = self._prefix(within)
        found: list[int] = []
        if not self._covered(prefix):
            self._gather(prefix, length, count, found)
        return [self._network(one, within) for one in found]

    def _gather(self, prefix: int, length: int, count: int, found: list[int]) -> int:
        """Add what is free below a prefix to ``found``; return how many blocks are still to be found."""
        own = prefix.bit_length() - 1
        largest = self._free_below(prefix)
        if not count or largest > length:
            return count
        if largest == own and 1 << (length - own) <= count:
            found.append(prefix)
            return count - (1 << (length - own))
        rest = self._gather(2 * prefix, length, count, found)
        return self._gather(2 * prefix + 1, length, rest, found)

    def _recount(self, prefix: int, sign: int) -> None:
        """Add to what is counted, or subtract, what is free where a prefix is; taken, it has nothing free."""
        for within, counts in self._counts.items():
            if _overlap(within, prefix):
                for length in counts:
                    counts[length] += sign * self._count(_in_common(within, prefix, length), length)

    def _count(self, prefix: int, length: int) -> int:
        return 0 if self._covered(prefix) else self._count_below(prefix, length)

    def _count_below(self, prefix: int, length: int) -> int:
        own = prefix.bit_length() - 1
        largest = self._free_below(prefix)
        if largest > length:
            return 0
        if largest == own:
            return 1 << (length - own)
        return self._count_below(2 * prefix, length) + self._count_below(2 * prefix + 1, length)

    def _covered(self, prefix: int) -> bool:
        """Whether somebody has taken this or a larger block around it."""
        own = prefix.bit_length() - 1
        return any(length <= own and prefix >> own - length in self._taken for length in self._lengths)

    def _free_below(self, prefix: int) -> int:
        return self._largest.get(prefix, prefix.bit_length() - 1)

    def _tell_upwards(self, prefix: int) -> None:
        """Let what is around a prefix learn from its halves what is free there, up to where nothing changes.

        Written out, for of IPv6 that may be 128 steps.
        """
        largest, own = self._largest, prefix.bit_length() - 1
        while own and prefix >> 1 not in self._taken:
            half, other = largest.get(prefix, own), largest.get(prefix ^ 1, own)
            prefix, own = prefix >> 1, own - 1
            before = largest.get(prefix, own)
            if half == other == own + 1:
                found = own
                largest.pop(prefix, None)
            else:
                found = largest[prefix] = half if half < other else other
            if found == before:
                return

    def _prefix(self, block: Network) -> int:
        length = block.prefixlen
        return 1 << length | int(block.network_address) >> (self._bits - length)

    def _network(self, prefix: int, like: Network) -> Network:
        length = prefix.bit_length() - 1
        return type(like)(((prefix - (1 << length)) << (self._bits - length), length))


def _overlap(one: int, other: int) -> bool:
    deeper = one.bit_length() - other.bit_length()
    return one >> deeper == other if deeper > 0 else other >> -deeper == one


def _in_common(within: int, prefix: int, length: int) -> int:
    """Return where blocks of a length in a network overlap a prefix: one of them at least."""
    return max(within, prefix >> max(prefix.bit_length() - 1 - length, 0))
