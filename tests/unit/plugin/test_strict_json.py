from __future__ import annotations

import _json
import json
import sys
from typing import Any

import pytest
from concorde import strict_json
from concorde.cni import CniError
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.examples import json_values

_json_scanner: Any = _json.make_scanner


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_what_is_accepted_is_what_json_reads(content: bytes) -> None:
    try:
        decoded = strict_json.decode(content)
    except CniError:
        return
    assert decoded == json.loads(content)


@given(st.dictionaries(st.text(), json_values))
def test_what_is_written_is_what_json_writes(document: dict[str, Any]) -> None:
    try:
        expected = json.dumps(document, allow_nan=False)
    except ValueError:
        with pytest.raises(ValueError, match="not JSON compliant"):
            strict_json.encode(document)
        return
    assert strict_json.encode(document) == expected.encode() + b"\n"


class Scanner:
    """A stand-in for the scanner of a Python that reads more attributes of what it is given."""

    READ = ("strict", "object_hook", "object_pairs_hook", "parse_float", "parse_int", "parse_constant")
    MORE: tuple[str, ...] = ()

    def __init__(self, context: Any) -> None:
        for name in (*self.READ, *self.MORE):
            getattr(context, name)
        self._scan = _json_scanner(context)

    def __call__(self, text: str, at: int) -> Any:
        return self._scan(text, at)


class Of3_15(Scanner):  # noqa: N801 - a version
    """Modules/_json.c, scanner_new(), since python/cpython#146441."""

    MORE = ("array_hook",)


class OfALaterOne(Scanner):
    MORE = ("array_hook", "a_hook_that_nobody_knows")


class AskedOtherwise:
    """It wants more to be told."""

    def __init__(self, context: Any, more: Any) -> None:
        """Never called."""


TEXTS = [
    '{"a": [1, 2.5, true, null, "\\u00e9"], "b": {}}',
    '{"a": 1, "a": 2}',
    '{"a": NaN}',
    '{"a": 123456789012345678901}',
    '{"a": 1e999}',
    '{"a": 1} {}',
    '{"a": }',
    "[]",
    "",
    '{"a": ' + "[" * 100_000,
    '{"a": "\x01"}',
]


def outcome(text: str) -> object:
    """What is decoded; of a mistake whether it is one, for words differ."""
    try:
        return strict_json.decode(text.encode())
    except CniError as error:
        return error.code


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:20])
@pytest.mark.parametrize("scanner", [Of3_15, OfALaterOne, AskedOtherwise, None], ids=lambda one: str(one))
def test_the_decoder_of_every_python_decodes_alike(
    text: str, scanner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = outcome(text)
    if scanner is None:
        monkeypatch.setitem(sys.modules, "_json", None)
    else:
        monkeypatch.setattr(_json, "make_scanner", scanner)
    if scanner is Of3_15:
        monkeypatch.setattr(strict_json, "_known_scanner", None)  # it costs 5 ms, and is not needed
    assert outcome(text) == expected


@pytest.mark.parametrize("encoder", [AskedOtherwise, None], ids=lambda one: str(one))
def test_the_encoder_of_every_python_encodes_alike(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"a": [1, 2.5, None, True], "ä": {"b": "\n"}}
    expected = strict_json.encode(document)
    if encoder is None:
        monkeypatch.setitem(sys.modules, "_json", None)
    else:
        monkeypatch.setattr(_json, "make_encoder", encoder)
    assert strict_json.encode(document) == expected
    for refused, kind in (({"a": {1}}, TypeError), ({"a": float("nan")}, ValueError)):
        with pytest.raises(kind):
            strict_json.encode(refused)
