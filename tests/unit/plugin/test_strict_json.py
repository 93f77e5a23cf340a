from __future__ import annotations

import json
from typing import Any

import pytest
from concorde import strict_json
from concorde.cni import CniError
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.examples import json_values


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
