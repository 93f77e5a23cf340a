"""Keys of clusters: read, left, known by all agents of a node, and taken away again."""

from __future__ import annotations

from pathlib import Path

import pytest
from concorde.cni import CniError
from concorde.fabric import keys

A, B = b"a" * 16, b"b" * 16


def test_the_keys_of_all_networks_are_those_of_the_node(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert (keys.of(str(state)), keys.changed(str(state))) == ([], ())
    for network, key in (("one", A), ("two", B), ("three", A)):
        keys.leave(f"{state}/{network}", key)
    assert sorted(keys.of(str(state))) == [A, B]
    before = keys.changed(str(state))
    keys.forget(f"{state}/two")
    keys.forget(f"{state}/two")
    assert keys.of(str(state)) == [A]
    assert keys.changed(str(state)) != before


def test_a_key_that_is_another_shows_and_one_that_is_the_same_does_not(tmp_path: Path) -> None:
    keys.leave(f"{tmp_path}/state/one", A)
    before = keys.changed(f"{tmp_path}/state")
    keys.leave(f"{tmp_path}/state/one", A)
    assert keys.changed(f"{tmp_path}/state") == before
    keys.leave(f"{tmp_path}/state/one", B)
    assert keys.changed(f"{tmp_path}/state") != before


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), (b" short \n", "at least 16 bytes, not 5"), (b"x" * 4097, "longer than 4096")],
)
def test_a_file_that_has_no_key_is_refused_with_its_path(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CniError, match=words) as caught:
        keys.read(str(file))
    assert caught.value.code == 7
    assert str(file) in caught.value.msg
