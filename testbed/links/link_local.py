"""Interfaces without link-local addresses, as ``ip -batch`` lines for before they are up.

Everything here speaks IPv4 only; so no neighbour discovery is flooded through the bridges while something is
measured. A kernel that was booted with ``ipv6.disable=1`` has none, and refuses to be asked for none;
machines elsewhere are taken to be booted as this one is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

IPV6 = Path("/proc/sys/net/ipv6/conf")


def none(interface: str) -> Iterator[str]:
    """Yield the line, if there is one."""
    if IPV6.exists():
        yield f"link set {interface} addrgenmode none"
