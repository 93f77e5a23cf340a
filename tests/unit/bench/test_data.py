"""The lines of docs/reference/data-for-programs.md, run as a reader does, on the recordings that are kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from bench import pipeline
from bench.recording.directory import Recording, point_latest_to
from tests.paths import ROOT

BLOCKS = re.findall(
    r"```python\n(.*?)```",
    (ROOT / "docs/reference/data-for-programs.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.usefixtures("undrawn")
def test_the_lines_for_pandas_do_what_the_page_says(
    recorded: Callable[[str], Recording], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    summaries = []
    for name in ("held", "violated"):
        directory = recorded(name).directory.rename(reports / f"20260101T000000Z-{name}-pod")
        summaries.append(pipeline.analyse(Recording(directory)))
    point_latest_to(directory)
    monkeypatch.chdir(tmp_path)

    in_pandas, shares_of_guarantees = BLOCKS
    assert len([line for line in in_pandas.splitlines() if line]) == 10
    names: dict[str, pd.DataFrame] = {}
    exec(in_pandas, names)
    exec(shares_of_guarantees, names)

    runs, shares = names["runs"], names["shares"]
    written = [pd.read_parquet(file) for file in sorted(reports.glob("2*/samples.parquet"))]
    assert len(runs) == sum((table["source"] == "receiver").sum() for table in written)
    assert set(runs["run_id"]) == {summary.run_id for summary in summaries}
    assert runs["guarantee_bps"].dtype == "float64"
    for summary in summaries:
        for flow in summary.flows:
            rows = runs[(runs["run_id"] == summary.run_id) & (runs["flow"] == flow.name)]
            if flow.guarantee_bps is None:
                assert rows["guarantee_bps"].isna().all()
                continue
            assert set(rows["guarantee_bps"]) == {flow.guarantee_bps}
            if summary.verdict == "held":
                expected = (flow.expected_goodput_bps or 0.0) / flow.guarantee_bps
                assert shares.loc[(summary.run_id, flow.name), "mean"] == pytest.approx(expected, rel=0.02)
