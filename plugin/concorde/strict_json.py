"""JSON in and out, strictly.

Not the json package, which loads re and enum: 5 ms of every call, a quarter of an ADD. This is the C
scanner and encoder which json itself is a wrapper of, as CPython 3.9 to 3.15 has them. They are its own, and
may change with each version: where they are otherwise, json is what there is.
"""

from __future__ import annotations

from .cni import UNDECODABLE, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Scan = Callable[[str, int], tuple[Any, int]]

_BLANKS = " \t\n\r"
# How another version's scanner and encoder show that they are otherwise.
_OTHERWISE = (ImportError, AttributeError, TypeError)


class _Rules:
    """What make_scanner() asks for: no key twice, no NaN, no endless numbers."""

    strict = True
    object_hook = None
    array_hook = None  # Python 3.15; python/cpython#146441
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
        document = value(content.decode())
    except ValueError as error:
        raise _malformed(str(error)) from error
    if not isinstance(document, dict):
        raise _malformed("not an object")
    return document


def value(text: str) -> Any:
    """Any value that some text is. Raises ValueError with the mistake."""
    text = text.strip(_BLANKS)
    try:
        found, end = _scanned(text)
    except (StopIteration, SystemError) as error:
        # SystemError: it looks for json's own exception, which CPython before 3.13 finds only if loaded.
        raise ValueError(_mistake(text)) from error
    except RecursionError as error:
        raise ValueError(str(error)) from error
    if end != len(text):
        raise ValueError(f"something follows the object at character {end}")
    return found


def _scanned(text: str) -> tuple[Any, int]:
    try:
        return _scanner()(text, 0)
    except _OTHERWISE:
        return _known_scanner()(text, 0)


def _scanner() -> Scan:
    from _json import make_scanner

    return make_scanner(_Rules)  # type: ignore[arg-type]  # it takes any attributes


def _known_scanner() -> Scan:
    from json import JSONDecoder

    rules = _Rules
    return JSONDecoder(
        object_pairs_hook=rules.object_pairs_hook,
        parse_constant=rules.parse_constant,
        parse_int=rules.parse_int,
        parse_float=rules.parse_float,
    ).raw_decode


def _mistake(text: str) -> str:
    import json  # only now: there is time for a mistake

    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return str(error)
    return "malformed"


def _malformed(mistake: str) -> CniError:
    return CniError(UNDECODABLE, f"standard input is not valid JSON: {mistake[:200]}")


def encode(document: dict[str, Any]) -> bytes:
    """A line of JSON, in ASCII. Raises TypeError and ValueError for what is not JSON."""
    try:
        text = "".join(_encoder()(document, 0))
    except _OTHERWISE:
        from json import dumps

        text = dumps(document, allow_nan=False)
    return text.encode() + b"\n"


def _encoder() -> Callable[[Any, int], tuple[str, ...]]:
    from _json import encode_basestring_ascii, make_encoder

    return make_encoder(None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False)


def _refuse(value: object) -> None:
    raise TypeError(f"{type(value).__name__} is not JSON")
