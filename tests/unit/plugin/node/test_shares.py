"""What the host has room for, by files like those of its sysctls."""

from __future__ import annotations

from pathlib import Path

import pytest
from concorde.node import shares


def room(root: Path, **of: str) -> None:
    for version, entries in of.items():
        (root / version / "neigh/default").mkdir(parents=True, exist_ok=True)
        (root / version / "neigh/default/gc_thresh3").write_text(entries)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shares, "_SYSCTL", str(tmp_path))
    return tmp_path


def test_where_the_host_does_not_tell_nothing_is_said(root: Path) -> None:
    assert shares.narrow() == shares.too_narrow(10_000) == []
    room(root, ipv4="many\n")
    assert shares.narrow() == []


def test_what_is_too_small_for_a_node_full_of_pods_is_named_with_what_it_should_be(root: Path) -> None:
    room(root, ipv4="1024\n", ipv6=f"{shares.WANTED}\n")
    (words,) = shares.narrow()
    assert words.startswith(f"net.ipv4.neigh.default.gc_thresh3 is 1024; 110 pods may take {shares.WANTED}")


def test_one_pods_share_must_leave_room_for_all_others(root: Path) -> None:
    room(root, ipv4="1024\n", ipv6="1024\n")
    most = 1024 - shares.NEIGHBOURS
    assert shares.too_narrow(most) == []
    assert [words.split(" is ")[0][:8] for words in shares.too_narrow(most + 1)] == ["net.ipv4", "net.ipv6"]
