"""The page of the architecture says of each room what the room says of itself."""

from __future__ import annotations

from docs.parts import rooms


def test_the_page_has_the_rooms_that_there_are() -> None:
    page = rooms.PAGE.read_text(encoding="utf-8")
    assert page == rooms.render(), "make it: ./invokew schema"
    assert "| `recording/` | What a run leaves on disk" in page
    assert "| `doctor.py` | What this machine lacks" in page
