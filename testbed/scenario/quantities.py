"""Rates as people write them: Kubernetes quantities, in bits per second.

The grammar is Kubernetes' own (k8s.io/apimachinery, ``resource.Quantity``): a decimal number and one of
the suffixes below, or an exponent. ``1G`` is 10^9 bit/s, ``1Gi`` is 2^30 bit/s.
"""

from __future__ import annotations

import re
import reprlib
from decimal import Decimal

SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
HIGHEST = 10**15  # bits per second, far beyond all links
LONGEST = 64  # characters, far more than any rate needs
_QUANTITY = re.compile(r"(?P<number>\d+(\.\d+)?|\.\d+)(?P<suffix>[kMGT]|[KMGT]i|[eE][+-]?\d{1,2}|)", re.ASCII)


def parse_rate(value: object) -> int:
    """Return the bits per second that a quantity (``"1G"``, ``"0.5M"``, ``1000``) stands for.

    Raises ValueError for anything that is not a quantity of at least one bit per second, or beyond all links.
    """
    text = str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    match = _QUANTITY.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(
            f"{_shown(value)} is not a rate; write bits per second as a quantity such as 1G or 250M"
        )
    suffix = match["suffix"]
    factor = Decimal(SUFFIXES[suffix]) if suffix in SUFFIXES else Decimal(10) ** int(suffix[1:])
    bits_per_second = int(Decimal(match["number"]) * factor)
    if bits_per_second < 1:
        raise ValueError(f"{value!r} is not a positive rate")
    if bits_per_second > HIGHEST:
        raise ValueError(f"{value!r} is more than any link carries")
    return bits_per_second


def format_rate(bits_per_second: int) -> str:
    """Return the shortest quantity that stands for exactly this rate: ``1G``, ``2500M``, ``1047210300``."""
    for suffix in ("T", "G", "M", "k"):
        if bits_per_second % SUFFIXES[suffix] == 0:
            return f"{bits_per_second // SUFFIXES[suffix]}{suffix}"
    return str(bits_per_second)


def _shown(value: object) -> str:
    brief = reprlib.Repr()
    brief.maxstring = LONGEST
    return brief.repr(value)
