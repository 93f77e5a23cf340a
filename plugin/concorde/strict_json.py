"""JSON in and out, strictly.

Not the json package, which loads re and enum: 5 ms of every call, a quarter of an ADD. This is the C
scanner and encoder which json itself is a wrapper of, the same in CPython 3.9 to 3.13.
"""

from __future__ import annotations

from _json import encode_basestring_ascii, make_encoder, make_scanner

from .cni import UNDECODABLE, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANKS = " \t\n\r"


class _Rules:
    """What make_scanner() asks for: no key twice, no NaN, no endless numbers."""

    strict = True
    object_hook = None
    memo: dict[str, str]

    @staticmethod
    def object_pairs_hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            # Parsers differ on which of the two counts: two readers would see two configurations.
            raise ValueError("a key appears twice in an object")
        return result

    @staticmethod
    def parse_constant(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    @staticmethod
    def parse_int(digits: str) -> int:
        if len(digits) > 20:
            raise ValueError("a number has more than 20 digits")
        return int(digits)

    @staticmethod
    def parse_float(digits: str) -> float:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            raise ValueError("a number is too large")
        return value


def decode(content: bytes) -> dict[str, Any]:
    """The object in some UTF-8 text. Raises CniError 6."""
    try:
        text = content.decode().strip(_BLANKS)
        document, end = make_scanner(_Rules)(text, 0)  # type: ignore[arg-type]  # it takes any attributes
    except (StopIteration, SystemError) as error:
        # SystemError: it looks for json's own exception, which CPython before 3.13 finds only if loaded.
        raise _malformed(_mistake(text)) from error
    except (ValueError, RecursionError) as error:
        raise _malformed(str(error)) from error
    if end != len(text):
        raise _malformed(f"something follows the object at character {end}")
    if not isinstance(document, dict):
        raise _malformed("not an object")
    return document


def _mistake(text: str) -> str:
    import json  # only now: there is time for a mistake

    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return "malformed"


def _malformed(mistake: str) -> CniError:
    return CniError(UNDECODABLE, f"standard input is not proper JSON: {mistake[:200]}")


def encode(document: dict[str, Any]) -> bytes:
    """A line of JSON, in ASCII. Raises TypeError and ValueError for what is not JSON."""
    encoder = make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False)
    return "".join(encoder(document, 0)).encode() + b"\n"


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is not JSON")
