"""The table that a night begins with: tonight beside the nights before."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.studies.nightly import nightly
from bench.studies.nightly.findings import Acknowledgements
from bench.studies.nightly.night import Night
from bench.studies.nightly.report import Row, percentage
from bench.studies.nightly.report import rows as rows_of
from tests.unit.bench.studies.nightly.builders import night, scenario, silent

QUIET = "small/A -> C/quiet/mean"


def rows(nights: list[Night]) -> dict[str, Row]:
    report = nightly.conclude(nights, {}, Acknowledgements(Path("nightly.yaml")))
    main, rest = rows_of(nights, report.findings)
    assert {row.metric for row in main} | {row.metric for row in rest} >= {QUIET, "small/up"}
    assert len({row.metric for row in (*main, *rest)}) == len(main) + len(rest)
    return {row.metric: row for row in main}


def test_without_a_change_tonight_is_compared_with_the_median_of_the_twenty_nights_before() -> None:
    nights = [night(number, scenario(0, C=1.0 + number / 1000)) for number in range(30)]
    row = rows(nights)[QUIET]
    seen = [one.scenarios["small"].flows["A -> C"].phases["quiet"].mean_bps for one in nights]
    assert row.tonight == seen[-1]
    assert row.median == pytest.approx((seen[18] + seen[19]) / 2)  # nights 9 to 28
    assert (row.change, row.since) == (percentage(seen[-1] * 2 / (seen[18] + seen[19]) - 1), "–")
    assert set(rows(nights)) == {
        f"small/{flow}/mean"
        for flow in ("A -> C/quiet", "A -> C/disturbed", "B -> D/quiet", "B -> D/disturbed")
    }


def test_with_a_change_levels_are_compared_though_the_median_follows() -> None:
    nights = [
        night(number, scenario(number, C=0.95 if number >= 20 else 1.0, up=2.0 if number >= 20 else 1.0))
        for number in range(45)
    ]
    found = rows(nights)
    assert found[QUIET].since == "2026-11-21 (25 nights, 24 days)"
    assert found[QUIET].change.startswith(("-4.", "-5."))
    assert found[QUIET].median == pytest.approx(0.95 * 95.5e6, rel=0.01)
    assert found["small/up"].change.startswith(("+9", "+10"))  # what is no rate, but worse, is there too
    assert found["small/B -> D/quiet/mean"].since == "–"


def test_a_night_that_says_nothing_has_no_numbers() -> None:
    row = rows([*(night(number) for number in range(5)), silent(5)])[QUIET]
    assert (row.tonight, row.change, row.since) == (None, "–", "–")
    assert row.median is not None
    assert rows([night(0)])[QUIET].texts[2:] == ("–", "–", "–")


def test_a_share_of_nothing_has_no_sign() -> None:
    assert [percentage(share) for share in (0.0, -0.0004, 0.0004, 0.05, -0.05)] == [
        "0.0 %",
        "0.0 %",
        "0.0 %",
        "+5.0 %",
        "-5.0 %",
    ]
    assert percentage(0.05, signed=False) == "5.0 %"
