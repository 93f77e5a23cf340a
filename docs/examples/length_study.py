"""How much of a guarantee is payload when frames are longer? A study in one file, from outside the project.

CONCORDE_EXTENSIONS=docs/examples/length_study.py ./invokew study length --scale 0.1
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from bench.recording import requests
from bench.recording.records import StudyRequest
from bench.studies.known import register
from bench.studies.study import Case, NamedRow, Study
from testbed.scenario.units import format_bps, format_percentage

SCENARIO = "kubernetes"
MTUS = ("1500", "9000")


class LengthStudy(Study):
    """The same scenario on links that carry frames of one length and of another."""

    name = "length"
    choices = ("mtu",)  # --choose mtu=4000

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return a case for each MTU of the links between nodes."""
        return [self._case(asked, mtu) for mtu in asked.choices.get("mtu", MTUS)]

    def tables(self, directory: Path) -> Sequence[RenderableType]:
        """Return what each flow was to get of its guarantee, and what it got."""
        table = Table("MTU", "flow", "guaranteed", "expected", "observed, quiet", "verdict", box=None)
        for row, result in zip(self.rows(directory), self.summaries(directory), strict=True):
            for flow in result.flows if result else ():
                if result and flow.guarantee_bps and flow.expected_goodput_bps and "quiet" in flow.phases:
                    table.add_row(
                        row.case,
                        flow.name,
                        format_bps(flow.guarantee_bps),
                        format_percentage(flow.expected_goodput_bps / flow.guarantee_bps),
                        format_percentage(flow.phases["quiet"].mean_bps / flow.guarantee_bps),
                        result.verdict,
                    )
        return [table]

    def _case(self, asked: StudyRequest, mtu: str) -> Case:
        request = asked.case(SCENARIO, (*asked.overrides, f"underlay.mtu={mtu}"))
        return Case(f"MTU {mtu}", request, requests.read(request), NamedRow(case=mtu))


register(LengthStudy())
