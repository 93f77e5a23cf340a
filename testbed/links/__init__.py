"""How nodes are joined, as text for ``ip`` and ``tc``: rendered here, run elsewhere.

What interfaces that the testbed makes are given: the queue of a rate, and no link-local address.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

# A link's bucket and queue, in time, so that they mean the same at every rate. The bucket must hold a whole
# GSO packet (64 KiB), or the kernel takes it apart at a cost that falsifies what is measured behind it. And
# it must last longer than a busy machine's timers are late, or a link would lose that much of its rate for
# good.
BUCKET_SECONDS = 0.005
SMALLEST_BUCKET = 128 * 1024  # bytes
QUEUE_SECONDS = 0.01


def bucket(rate: int) -> str:
    """Return the words for ``tc qdisc add`` of a link of so many bits per second."""
    size = max(SMALLEST_BUCKET, round(rate / 8 * BUCKET_SECONDS))
    limit = size + round(rate / 8 * QUEUE_SECONDS)
    return f"tbf rate {rate}bit burst {size} limit {limit}"


# Everything here speaks IPv4 only; so no neighbour discovery is flooded through the bridges while something
# is measured. A kernel that was booted with ``ipv6.disable=1`` has none, and refuses to be asked for none;
# machines elsewhere are taken to be booted as this one is.
IPV6 = Path("/proc/sys/net/ipv6/conf")


def without_link_local(interface: str) -> Iterator[str]:
    """Yield the ``ip -batch`` line for an interface that is not up yet, if there is one."""
    if IPV6.exists():
        yield f"link set {interface} addrgenmode none"
