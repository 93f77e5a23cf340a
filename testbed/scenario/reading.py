"""YAML as scenarios use it: mappings, lists and plain values - and nothing that grows while it is read.

The values are those of YAML 1.2's core schema: a date is text. libyaml gives the events, for it takes a
hundredth of the time that pure Python does. What they amount to is put together here, because with anchors,
aliases and merge keys a few lines are as much as one likes: each alias is a copy of its own, and counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import yaml  # type: ignore[import-untyped]

from testbed.scenario.texts import shortened

# 10,000 pods and 10,000 flows are within it, with every default filled in.
MOST_BYTES = 4 * 2**20
MOST_VALUES = 150_000
MOST_DEPTH = 32
# Longer ones are text: no field takes such a number, and Python takes its time to write them.
LONGEST_NUMBER = 40

_MERGE = "<<"
_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)")
_NO_NUMBER = re.compile(r"\.nan|\.NaN|\.NAN")
_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (_NULL, lambda _: None),
    (_TRUE, lambda _: True),
    (_FALSE, lambda _: False),
    (_INTEGER, lambda text: int(text, 10 if text.lstrip("+-").isdecimal() else 0)),
    (_FLOAT, float),
    (_INFINITE, lambda text: -math.inf if text.startswith("-") else math.inf),
    (_NO_NUMBER, lambda _: math.nan),
)


class ReadingError(ValueError):
    """Text that is no YAML, or not as scenarios use it; the message names line and column."""


def parse(text: str) -> Any:
    """Return what one YAML document holds, None if there is none. Raises ReadingError."""
    if len(text) > MOST_BYTES:
        raise ReadingError(f"longer than {MOST_BYTES:,} characters")
    # libyaml compares each with all before it; and nothing here has a tag.
    if tag := re.search("^%TAG", text, re.MULTILINE):
        raise ReadingError(
            f"line {text.count(chr(10), 0, tag.start()) + 1}: %TAG directives are not supported"
        )
    try:
        return _Reader(text).document()
    except yaml.MarkedYAMLError as error:
        raise _error(error.problem_mark, f"not YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise ReadingError(f"not YAML: {getattr(error, 'reason', error)}") from None


def scalar(text: str) -> Any:
    """Return what a plain scalar stands for: a number, a truth, nothing, or the text that it is."""
    if len(text) <= LONGEST_NUMBER:
        for pattern, meaning in _KINDS:
            if pattern.fullmatch(text):
                return meaning(text)
    return text


def _error(mark: Any, problem: str) -> ReadingError:
    return ReadingError(f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem)


class _Reader:
    """Puts a document together as its events come, and stops at the first that it does not take."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._anchored: dict[str, Any] = {}
        self._count = 0

    def document(self) -> Any:
        """Return the only document's value."""
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value = self._value(next(self._events), 1)
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise _error(event.start_mark, "expected a single document")
        return value

    def _value(self, event: Any, depth: int) -> Any:
        self._spend(1, event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        if event.tag is not None:
            raise _error(event.start_mark, f"the tag {shortened(event.tag)!r} is not supported")
        if isinstance(event, yaml.ScalarEvent):
            value = scalar(event.value) if event.implicit[0] else event.value
        elif depth > MOST_DEPTH:
            raise _error(event.start_mark, f"nested more than {MOST_DEPTH} levels deep")
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._list(depth)
        else:
            value = self._mapping(depth)
        if event.anchor is not None:
            self._anchored[event.anchor] = value
        return value

    def _list(self, depth: int) -> list[Any]:
        values = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._value(event, depth + 1))
        return values

    def _mapping(self, depth: int) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] | None = None
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if _merges(event) and merged is None:
                merged = self._merged(next(self._events), depth)
                continue
            key = self._key(event)
            if key in own or _merges(event):
                raise _error(event.start_mark, f"found duplicate key {shortened(key)!r}")
            own[key] = self._value(next(self._events), depth + 1)
        return own if merged is None else merged | own

    def _key(self, event: Any) -> str:
        plain = isinstance(event, yaml.ScalarEvent) and event.tag is None and event.anchor is None
        if not plain:
            raise _error(event.start_mark, "a key must be a string")
        self._spend(1, event)
        text: str = event.value
        if event.implicit[0] and not isinstance(scalar(text), str):
            raise _error(event.start_mark, f"the key {text!r} must be a string; write it in quotes")
        return text

    def _merged(self, event: Any, depth: int) -> dict[str, Any]:
        """Return what ``<<`` stands for: a mapping, or several, of which the first to have a key counts."""
        value = self._value(event, depth + 1)
        several: Sequence[Any] = value if isinstance(value, list) else [value]
        together: dict[str, Any] = {}
        for one in reversed(several):
            if not isinstance(one, dict):
                raise _error(event.start_mark, "<< must be a mapping or a list of mappings")
            together |= one
        return together

    def _alias(self, event: Any, depth: int) -> Any:
        if event.anchor not in self._anchored:
            raise _error(event.start_mark, f"undefined alias *{shortened(event.anchor)}")
        return self._copy(self._anchored[event.anchor], event, depth)

    def _copy(self, value: Any, event: Any, depth: int) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        if depth > MOST_DEPTH:
            raise _error(event.start_mark, f"nested more than {MOST_DEPTH} levels deep")
        self._spend(len(value), event)
        if isinstance(value, list):
            return [self._copy(each, event, depth + 1) for each in value]
        return {key: self._copy(each, event, depth + 1) for key, each in value.items()}

    def _spend(self, count: int, event: Any) -> None:
        self._count += count
        if self._count > MOST_VALUES:
            raise _error(event.start_mark, f"more than {MOST_VALUES:,} values, with aliases expanded")


def _merges(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == _MERGE and bool(event.implicit[0])
