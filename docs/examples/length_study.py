"""How much of a guarantee is payload when frames are longer? A study in one file, from outside the project.

CONCORDE_EXTENSIONS=docs/examples/length_study.py ./invokew study length --scale 0.1
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field
from rich.console import RenderableType
from rich.table import Table

from bench.recording import requests
from bench.recording.records import StudyRequest
from bench.studies.known import register
from bench.studies.study import Case, NamedRow, Study
from testbed.scenario.units import format_bps, format_percentage
from testbed.scenario.words import Part

SCENARIO = ("kubernetes",)


class Lengths(Part):
    """A scenario's settings.study.length."""

    mtus: list[int] = Field([1500, 9000], min_length=1, description="of the links, bytes; a case for each")


class LengthStudy(Study):
    """The same scenario on links that carry frames of one length and of another."""

    name = "length"
    choices = ("scenario",)  # --choose scenario=mine.yaml
    settings = Lengths()

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return a case for each MTU of the links between nodes."""
        (scenario,) = asked.choices.get("scenario", SCENARIO)
        lengths = self.given(requests.read(asked.case(scenario, asked.overrides)))
        return [self._case(asked, scenario, mtu) for mtu in lengths.mtus]

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

    def _case(self, asked: StudyRequest, scenario: str, mtu: int) -> Case:
        request = asked.case(scenario, (*asked.overrides, f"underlay.mtu={mtu}"))
        return Case(f"MTU {mtu}", request, requests.read(request), NamedRow(case=str(mtu)))


register(LengthStudy())
