"""What tables of nftables are made of, and the limit that an element of a set has of its own.

A limit is for nft, of what nft shows, and for the kernel.
"""

from __future__ import annotations

from struct import pack

from edge.netlink import attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Element = tuple[str, str, str]  # family, set, and the element as nft writes it
Rule = tuple[str, str]  # as nft writes it, and what it is for

_BEGINNING = " limit rate over "
# nft shows the largest units there are no fractions of.
_BYTES = {"bytes": 1, "kbytes": 1 << 10, "mbytes": 1 << 20}
# enum nft_limit_attributes, linux/netfilter/nf_tables.h
_RATE, _UNIT, _BURST, _TYPE, _FLAGS = 1, 2, 3, 4, 5
_SECOND, _IN_BYTES, _WHAT_IS_OVER = 1, 1, 1  # seconds, NFT_LIMIT_PKT_BYTES, NFT_LIMIT_F_INV


def over(rate: int, burst: int) -> str:
    """What is more than a rate (bytes a second) and than so many bytes at once, to stand behind a key."""
    return f"{_BEGINNING}{rate} bytes/second burst {burst} bytes"


def shown(limit: dict[str, Any]) -> str:
    """The same of what `nft -j` shows; empty for a limit that is not in bytes."""
    rate_unit, burst_unit = (_BYTES.get(limit.get(unit, "")) for unit in ("rate_unit", "burst_unit"))
    if rate_unit is None or burst_unit is None:
        return ""
    return over(limit["rate"] * rate_unit, limit["burst"] * burst_unit)


def parted(element: str) -> tuple[str, str]:
    """An element without its limit, and that."""
    key, beginning, rest = element.partition(_BEGINNING)
    return key, beginning + rest


def attributes(limit: str) -> bytes:
    """The attributes of the kernel's expression `limit`."""
    rate, _, _, burst, _ = limit[len(_BEGINNING) :].split()
    return (
        attribute(_RATE, pack("!Q", int(rate)))
        + attribute(_UNIT, pack("!Q", _SECOND))
        + attribute(_BURST, pack("!I", int(burst)))
        + attribute(_TYPE, pack("!I", _IN_BYTES))
        + attribute(_FLAGS, pack("!I", _WHAT_IS_OVER))
    )
