"""What nft is told is whole, whatever becomes of who tells it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge.services import node
from edge.services.node import RulesError, nft, room
from edge.services.rules import LEAST_ROOM

# Says how much it is told before it reads any of it: a pipe has no size.
COUNTS = '#!/bin/sh\nstat -Lc %s /dev/stdin\n[ "$1" = -f ] || { echo "no way" >&2; exit 1; }\n'


def test_nft_starts_when_all_of_the_text_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nft").write_text(COUNTS)
    (tmp_path / "nft").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert nft(["-f", "-"], "add table ip x\n" * 10_000) == "150000\n"
    with pytest.raises(RulesError, match="nft: no way"):
        nft(["list"])


@pytest.mark.parametrize(("said", "expected"), [("262144", 262_144), ("9", LEAST_ROOM), ("0", 0), ("?", 0)])
def test_there_is_room_for_as_many_connections_as_the_kernel_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: int
) -> None:
    (tmp_path / "most").write_text(f"{said}\n")
    monkeypatch.setattr(node, "MOST_TRACKED", tmp_path / "most")
    monkeypatch.setattr(node, "nft", lambda *_: "")
    assert room(lambda _: None) == expected


def test_where_nft_cannot_count_there_is_no_limit_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise RulesError("nft: Could not process rule: No such file or directory")

    said: list[str] = []
    monkeypatch.setattr(node, "nft", refuse)
    assert room(said.append) == 0
    assert said == [
        "no limit to the connections of one pod: nft: Could not process rule: No such file or directory"
    ]
