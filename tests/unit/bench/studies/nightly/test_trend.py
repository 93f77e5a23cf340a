"""The trend page, as it is without a browser: its headline, its charts' axes and marks, its tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from bench.studies.nightly import nightly, trend
from bench.studies.nightly.findings import Acknowledgements
from bench.studies.nightly.night import Night
from tests.unit.bench.studies.nightly.builders import night, scenario

COMMITS = ("a" * 40, "b" * 40)


def page(nights: Sequence[Night]) -> str:
    report = nightly.conclude(nights, {}, Acknowledgements(Path("nightly.yaml")))
    return trend.render(report)


@cache
def changed() -> str:
    """40 nights, of which those from 22 to 31 found a flow slower, after a commit."""
    return page(
        [
            night(number, scenario(number, C=0.95 if 22 <= number < 32 else 1.0)).model_copy(
                update={"commit": COMMITS[number >= 22]}
            )
            for number in range(40)
        ]
    )


def charts(text: str) -> dict[str, str]:
    found = re.findall(r'aria-label="([^"]*), night by night">(.*?)</svg>', text, re.DOTALL)
    return dict(found)


def test_each_change_has_its_date_and_commit() -> None:
    marks = {
        name: re.findall(r'text-anchor="\w+">(2026-\d\d-\d\d \w+)<', svg)
        for name, svg in charts(changed()).items()
    }
    assert marks["small: A -&gt; C, quiet"] == ["2026-11-23 bbbbbbb", "2026-12-03 bbbbbbb"]
    assert marks["small: B -&gt; D, quiet"] == []
    table = changed().partition("<h2>Changes")[2].partition("</table>")[0]
    rows = [re.sub(r"<[^>]+>", "|", row) for row in re.findall(r"<tr><th scope.*", table)]
    assert len(rows) == 4
    for row in rows[:2]:
        assert "2026-12-03" in row
        assert "back to the level before||" in row
    for row in rows[2:]:
        assert f"{'a' * 12}..{'b' * 12}" in row
        assert "worse, until 2026-12-03" in row


def test_charts_have_axes_with_numbers_and_days() -> None:
    found = charts(changed())
    assert len(found) == 2 * (2 * 2 + 1) + 4
    for svg in found.values():
        days = re.findall(r">(\d{4}-\d\d-\d\d)<", svg)
        assert days == ["2026-11-01", "2026-11-21", "2026-12-10"]
        levels = [
            (float(y), float(number))
            for y, number in re.findall(r'y="([\d.]+)" text-anchor="end">(-?[\d.]+)<', svg)
        ]
        assert len(levels) >= 2
        assert sorted(levels) == sorted(levels, key=lambda pair: -pair[1])  # upwards


def test_texts_of_changes_that_are_near_stand_in_rows_of_their_own() -> None:
    factors = [1.0] * 60 + [0.95] * 6 + [0.9] * 6 + [0.85] * 6 + [0.8] * 6
    svg = charts(page([night(number, scenario(number, C=factor)) for number, factor in enumerate(factors)]))
    texts = re.findall(r'y="(\d+)" text-anchor="end">2[-\d]+ c', svg["small: A -&gt; C, quiet"])
    assert len(texts) == len(set(texts)) == 4


@pytest.mark.parametrize("count", [1, 40])
def test_no_table_has_more_than_six_columns(count: int) -> None:
    text = changed() if count == 40 else page([night(0)])
    heads = re.findall(r"<thead>(.*?)</thead>", text, re.DOTALL)
    assert len(heads) >= 5
    assert max(head.count("<th") - head.count("<thead") for head in heads) <= 6


def test_older_nights_are_folded_and_slow_ones_are_marked() -> None:
    open_, _, folded = changed().partition("<h2>Nights")[2].partition("<details><summary>Nights before (10)")
    assert open_.count('<tr><th scope="row"') == 30
    assert folded.partition("</details>")[0].count('<tr><th scope="row"') == 10
    assert open_.count("✗ worse") == 10
    assert open_.count("worse: small/A -&gt; C/*/mean") == 1
