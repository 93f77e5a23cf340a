"""What comes to this node, by the node that it comes from.

An overlay's packets have the address of the node that sent them. Routed ones have a pod's: who sent these is
told by the hardware address of their frame. The kernel knows whose that is, for agents talk to each other.
"""

from __future__ import annotations

from .. import addresses, files
from ..node import peers
from . import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What came from no node of the fabric.
ELSEWHERE = "0.0.0.0"
NEIGHBOURS = "/proc/net/arp"  # proc(5): address, type, flags, hardware address, mask, device
_LONGEST = 1 << 20  # bytes, of some 80 a neighbour
_AGAIN, _ANEW = 1.0, 10.0  # seconds between two looks, for whom nobody knows and at the latest


class Arrivals:
    """Counts what came by an uplink."""

    def __init__(self, uplink: str, neighbours: str = NEIGHBOURS) -> None:
        """Raises OSError."""
        self._uplink, self._file = uplink, neighbours
        self._counters = kernel.Counters()
        self._owners: dict[bytes, str] = {}  # of hardware addresses
        self._looked = float("-inf")

    def close(self) -> None:
        """End it."""
        self._counters.close()

    def look(self, now: float) -> Mapping[str, int]:
        """Bytes of IP that came since the last look, by node. Raises OSError."""
        return self.by_node(self._counters.look(peers.ARRIVED), now)

    def by_node(self, counted: Mapping[bytes, int], now: float) -> Mapping[str, int]:
        """The same of the elements' keys: an address, which is 0 of what is routed, and one of hardware."""
        routed = {key[4:10] for key in counted if not kernel.node(key)}
        since = now - self._looked
        if routed and (since > _ANEW or (since > _AGAIN and not routed <= self._owners.keys())):
            self._looked = now
            self._owners = self._read()
        found: dict[str, int] = {}
        for key, count in counted.items():
            number = kernel.node(key)
            node = addresses.dotted(number) if number else self._owners.get(key[4:10], ELSEWHERE)
            found[node] = found.get(node, 0) + count
        return found

    def _read(self) -> dict[bytes, str]:
        """Whose the hardware addresses of neighbours are."""
        lines = files.read(self._file, _LONGEST).decode("ascii", "replace").splitlines()[1:]
        told = [fields for line in lines if len(fields := line.split()) == 6 and fields[5] == self._uplink]
        return {bytes.fromhex(fields[3].replace(":", "")): fields[0] for fields in told}
