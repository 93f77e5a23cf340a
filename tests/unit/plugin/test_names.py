from __future__ import annotations

from concorde import names
from hypothesis import given
from hypothesis import strategies as st


@given(st.text(max_size=20))
def test_no_accepted_name_contains_syntax(text: str) -> None:
    for accepted in (names.is_interface(text), names.is_identifier(text), names.is_path(text)):
        if accepted:
            assert text.split() == [text]
            assert not text.startswith("-")
            assert not set(text) & set("'\"#\\;$`|&<>\n\0")


def test_fnv_1a_is_the_published_function() -> None:
    assert names.digest("foobar") == 0x85944171F73967E8
