"""The page of the chains that were tried."""

from __future__ import annotations

from docs.parts import chains

RECORD: chains.Record = {
    "plugins": "plugins 1",
    "linux": "6.1",
    "outcomes": ["works"],
    "lists": {},
}
SMALL = 50_000  # bytes


def test_the_page_is_made_of_the_record() -> None:
    assert chains.FILE.read_text(encoding="utf-8") == chains.render(chains.read())
    assert chains.RECORD.stat().st_size < SMALL


def test_everything_recorded_works_or_is_refused() -> None:
    faults = [words for words in chains.read()["outcomes"] if words.startswith("FAILS")]
    assert not faults


def test_orders_of_the_same_plugins_are_counted_together() -> None:
    record = {**RECORD, "outcomes": ["works"], "lists": {}}
    chains.note(record, ("bridge", "portmap", "concorde"), "node", "works")
    chains.note(record, ("bridge", "concorde", "portmap"), "node", "works")
    chains.note(record, ("concorde", "bridge", "portmap"), "node", "refused: a|b")
    chains.note(record, ("ptp", "concorde", "sbr", "portmap", "tuning"), "pod", "works")
    assert chains.noted(record, ("bridge", "portmap", "concorde"), "node")
    assert not chains.noted(record, ("bridge", "portmap", "concorde"), "pod")
    page = chains.render(record)
    assert "| bridge | portmap | 3 |  |  | 2 a, 1 b |\n" in page
    assert "| b | refused: a\\|b |\n" in page
    assert "| ptp, concorde, sbr, portmap, tuning |  | a |  |\n" in page
