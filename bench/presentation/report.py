"""``report.html``: one page that says what was promised, what was observed, and how that was judged.

The page is complete in itself: style and figure are inline, nothing is loaded from anywhere. Its bytes
depend on the recording alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bench.analysis import verdict
from bench.analysis.phases import FEWEST_SAMPLES
from bench.analysis.summary import Summary
from bench.presentation import again, tables, words
from bench.presentation.figures.known import FIGURES
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import RunRecord
from testbed.scenario import Scenario
from testbed.scenario.frames import frame_bytes, payload_bytes
from testbed.scenario.networks import pod_mtu
from testbed.scenario.units import (
    format_bps,
    format_fixed,
    format_number,
    format_percentage,
    format_share,
    unit_for,
)

SYMBOLS = {"held": "✓", "violated": "✗", "invalid": "?"}
SENTENCES = {
    "held": "Every guaranteed flow got what it was promised.",
    "violated": "At least one flow did not get what it was promised.",
    "invalid": "This run proves nothing about the guarantees.",
}


def render(
    recording: Recording,
    scenario: Scenario,
    record: RunRecord,
    summary: Summary,
    drawn: Mapping[str, Mapping[str, bytes]],
) -> str:
    """Return the page; ``drawn`` has each figure's files, by its name and their format."""
    request = again.asked(recording)
    start = request or again.known(recording, record)
    mtu = min(pod_mtu(scenario, cluster) for cluster in scenario.clusters)
    return (
        templates()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            words=words,
            scenario=scenario,
            record=record,
            symbol=SYMBOLS[summary.verdict],
            sentence=SENTENCES[summary.verdict],
            unit=unit_for(flow.guarantee_bps for flow in summary.flows),
            intervals_of=tables.over(
                phase.intervals.mean_bps.unit
                for flow in summary.flows
                for phase in flow.phases.values()
                if phase.intervals
            ),
            figures=[
                {
                    "title": figure.title,
                    "caption": figure.caption(scenario),
                    "svg": inline(drawn[name]["svg"]),
                }
                for name, figure in FIGURES.items()
            ],
            yaml=recording.scenario_file.read_text(encoding="utf-8"),
            environment=_environment(recording),
            cpu=_cpu(record),
            limits=verdict,
            fewest_samples=FEWEST_SAMPLES,
            pod_mtu=mtu,
            frame=frame_bytes(mtu),
            payload={"tcp": payload_bytes(mtu, "tcp"), "udp": payload_bytes(mtu, "udp")},
            asked=again.bench(request) if request else None,
            start=start,
            source_known=recording.beginning_file.exists(),
            as_run=again.bench(again.as_run(start, record.run_id)),
            figures_again=again.figures(record.run_id, request),
        )
    )


def templates() -> Environment:
    """Return what renders pages, with the filters they share."""
    environment = Environment(
        loader=PackageLoader("bench.presentation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bps=format_bps, fixed=format_fixed, number=format_number, share=_share, percentage=_percentage
    )
    environment.tests["nested"] = lambda value: isinstance(value, (dict, list)) and bool(value)
    return environment


def _share(value: float) -> str:
    return format_share(value).replace(" ", "\N{NO-BREAK SPACE}")


def _percentage(value: float | None) -> str:
    return format_percentage(value).replace(" ", "\N{NO-BREAK SPACE}")


def inline(svg: bytes) -> Markup:
    """Return an SVG file as an element within a page: without the XML prologue and document type.

    The figure is made by matplotlib, which escapes the text it is given.
    """
    text = svg.decode("utf-8")
    return Markup(text[text.index("<svg") :])


def _environment(recording: Recording) -> Any:
    try:
        return atomic.read_json(recording.environment_file)
    except atomic.StoredError as error:
        return {"not readable": str(error).removeprefix(f"{recording.environment_file}: ")}


def _cpu(record: RunRecord) -> list[dict[str, float]]:
    """Return for each repetition how busy the processors were: on average, at most, and time stolen."""
    rows = []
    for repetition in record.repetitions:
        seconds = math.fsum(use.end_s - use.start_s for use in repetition.cpu)
        if seconds > 0:
            busy = math.fsum(use.busy * (use.end_s - use.start_s) for use in repetition.cpu) / seconds
            rows.append(
                {
                    "mean": busy,
                    "most": max(use.busy for use in repetition.cpu),
                    "stolen": max(use.steal for use in repetition.cpu),
                }
            )
    return rows
