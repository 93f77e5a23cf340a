"""Who knocks where nobody is to hear it: what a gateway of a segment drops, and what a place has got."""

from __future__ import annotations

import re
from collections.abc import Iterable

from testbed.access.place import Place
from tests.system.testbed import exchanges
from tests.waiting import until

PROGRAM = ["/usr/bin/python3", "-I", "-S", str(exchanges.__file__)]
# Of /proc/net/snmp: datagrams, connections, and what was answered that nobody listens there.
HEARD = ("Udp:InDatagrams", "Udp:NoPorts", "Tcp:PassiveOpens", "Tcp:OutRsts")


def dropped(gateway: Place) -> int:
    """Return how many packets a gateway kept from passing."""
    listed = gateway.run(["nft", "list", "table", "inet", "segments"]).stdout
    return sum(map(int, re.findall(r"counter packets (\d+) ", listed)))


def heard(place: Place) -> int:
    """Return how many datagrams and requests for connections a place has got."""
    lines = [line.split() for line in place.run(["cat", "/proc/net/snmp"]).stdout.splitlines()]
    found = {
        kind + word: int(count)
        for (kind, *words), (_, *counts) in zip(lines[::2], lines[1::2], strict=True)
        for word, count in zip(words, counts, strict=True)
    }
    return sum(found[one] for one in HEARD)


def knock(gateway: Place, source: Place, targets: Iterable[str]) -> None:
    """Send a datagram and a SYN to each target, and see that the gateway drops as many at least."""
    ends, before = list(targets), dropped(gateway)
    source.run([*PROGRAM, "knock", *ends])
    until(lambda: dropped(gateway) >= before + 2 * len(ends))
