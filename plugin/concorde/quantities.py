"""Kubernetes quantities, read as bits per second.

Grammar: k8s.io/apimachinery/pkg/api/resource/quantity.go. Kubernetes reads the bandwidth annotations as
bits per second, so `1G` is 1 Gbit/s.
"""

from __future__ import annotations

LEAST = 1_000
MOST = 1_000_000_000_000

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LONGEST = 40


def bits_per_second(text: str) -> int:
    """A rate such as `1G`, `500M`, `1Gi`, `1e9` or `0.5G`, in bits per second.

    A fraction of a bit is rounded up, as Quantity.Value() does. Raises ValueError, with a message for
    people, for anything malformed or outside 1 kbit/s to 1 Tbit/s.
    """
    numerator, denominator = _ratio(text)
    return in_range(-(-numerator // denominator))


def in_range(rate: int) -> int:
    """The same rate (bits per second). Raises ValueError outside 1 kbit/s to 1 Tbit/s."""
    if not LEAST <= rate <= MOST:
        raise ValueError("is outside 1k to 1T (bits per second)")
    return rate


def _ratio(text: str) -> tuple[int, int]:
    number = text.rstrip("".join(_BINARY) + "numkMGTPE")
    suffix = text[len(number) :]
    mantissa, mark, power_text = number.replace("E", "e").partition("e")
    exponent = _exponent(power_text) if mark else 0
    whole, _, fraction = mantissa.removeprefix("+").partition(".")
    digits = whole + fraction
    if not digits.isascii() or not digits.isdigit() or len(text) > _LONGEST:
        raise ValueError("is not a quantity such as 1G, 500M or 1e9")
    if mark and suffix:
        raise ValueError("has both an exponent and a suffix")
    if suffix in _BINARY:
        return int(digits) << 10 * _BINARY[suffix], 10 ** len(fraction)
    if suffix not in _DECIMAL:
        raise ValueError(f"has an unknown suffix {suffix!r}")
    power = _DECIMAL[suffix] + exponent - len(fraction)
    return int(digits) * 10 ** max(power, 0), 10 ** max(-power, 0)


def _exponent(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > 2:
        raise ValueError("has a malformed exponent")
    return sign * int(digits)
