"""Rates as people write them, and numbers as people read them.

What is written are Kubernetes quantities, in bits per second. The grammar is Kubernetes' own
(k8s.io/apimachinery, ``resource.Quantity``): a decimal number and one of the suffixes below, or an exponent.
``1G`` is 10^9 bit/s, ``1Gi`` is 2^30 bit/s.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

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


class Unit(NamedTuple):
    """A unit of rates: how many bits per second it is, and what it is called."""

    bits_per_second: float
    name: str


UNITS = (Unit(1e9, "Gbit/s"), Unit(1e6, "Mbit/s"), Unit(1e3, "kbit/s"), Unit(1.0, "bit/s"))


def unit_for(rates_bps: Iterable[float | None]) -> Unit:
    """Return the largest unit in which the largest of the rates is at least 1; without rates, Gbit/s."""
    largest = max((rate for rate in rates_bps if rate), default=0.0)
    if largest <= 0:
        return UNITS[0]
    return next((unit for unit in UNITS if largest >= unit.bits_per_second), UNITS[-1])


def format_bps(rate_bps: float, unit: Unit | None = None) -> str:
    """Return a rate with four significant digits and its unit: ``954.9 Mbit/s``, ``3 Gbit/s``."""
    unit = unit or unit_for([rate_bps])
    return f"{format_number(rate_bps / unit.bits_per_second)} {unit.name}"


def format_number(value: float) -> str:
    """Return a number with four significant digits and no exponent: ``0.9549``, ``3``, ``12400``."""
    digits = f"{value:.4g}"
    return f"{float(digits):.0f}" if "e+" in digits else digits


def format_fixed(rate_bps: float | None, unit: Unit) -> str:
    """Return a rate for a column whose heading names the unit: three decimals, or a dash for none."""
    return "–" if rate_bps is None else f"{rate_bps / unit.bits_per_second:.3f}"


def format_share(share: float) -> str:
    """Return a share as a percentage with no more than two decimals: ``94.66 %``, ``99 %``."""
    text = f"{share * 100:.2f}".rstrip("0").rstrip(".")
    return f"{'0' if text == '-0' else text} %"


def format_percentage(share: float | None) -> str:
    """Return a share for a column of percentages: one decimal, or a dash for none."""
    return "–" if share is None else f"{share * 100:.1f} %"


def format_factor(factor: float) -> str:
    """Return what all rates are multiplied by: ``half of every rate``, ``2 times every rate``."""
    shares = {0.5: "half of", 0.25: "a quarter of", 0.2: "a fifth of", 0.1: "a tenth of"}
    return f"{shares.get(factor, f'{format_number(factor)} times')} every rate"


def format_seconds(seconds: float) -> str:
    """Return a short time with three significant digits: ``0.213 ms``, ``600 ms``, ``1.25 s``."""
    if 0 < abs(seconds) < 1:
        return f"{format_digits(seconds * 1000)} ms"
    return f"{format_digits(seconds)} s"


def format_digits(value: float) -> str:
    """Return a number with three significant digits and no exponent: ``0.213``, ``15``, ``1250``."""
    return f"{float(f'{value:.3g}'):.0f}" if abs(value) >= 1000 else f"{value:.3g}"
