"""What nft is told is whole, whatever becomes of who tells it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge.services.node import RulesError, nft

# Says how much it is told before it reads any of it: a pipe has no size.
COUNTS = '#!/bin/sh\nstat -Lc %s /dev/stdin\n[ "$1" = -f ] || { echo "no way" >&2; exit 1; }\n'


def test_nft_starts_when_all_of_the_text_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nft").write_text(COUNTS)
    (tmp_path / "nft").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert nft(["-f", "-"], "add table ip x\n" * 10_000) == "150000\n"
    with pytest.raises(RulesError, match="nft: no way"):
        nft(["list"])
