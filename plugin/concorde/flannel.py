"""flannel's subnet.env: which part of the cluster's network this node has, and the overlay's MTU."""

from __future__ import annotations

from . import addresses, files

_LONGEST = 4096


def read(path: str) -> tuple[addresses.Subnet, int]:
    """The node's subnet and the MTU (bytes) in the file flanneld wrote.

    Raises OSError, and ValueError with a message for people.
    """
    entries = _entries(path)
    subnet = entries.get("FLANNEL_SUBNET", "")
    mtu = entries.get("FLANNEL_MTU", "")
    if not (mtu.isascii() and mtu.isdigit() and len(mtu) <= 5):
        raise ValueError("has no valid FLANNEL_MTU")
    if not addresses.LEAST_MTU <= int(mtu) <= addresses.MOST_MTU:
        raise ValueError(f"has FLANNEL_MTU={mtu}, not from {addresses.LEAST_MTU} to {addresses.MOST_MTU}")
    try:
        return addresses.parse_interface(subnet)[1], int(mtu)
    except ValueError as error:
        raise ValueError(f"FLANNEL_SUBNET={subnet[:40]} {error}") from error


def cluster(path: str) -> addresses.Subnet | None:
    """The network of all nodes' pods, or None where the file does not tell, or not of one."""
    try:
        return addresses.parse_subnet(_entries(path).get("FLANNEL_NETWORK", ""))
    except (OSError, ValueError):
        return None


def _entries(path: str) -> dict[str, str]:
    text = files.read(path, _LONGEST).decode("ascii", "replace")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
