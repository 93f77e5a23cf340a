"""``report.html``: one page that says what was promised, what was observed, and how that was judged.

The page is complete in itself: style, samples, figures and scripts are inline, and nothing is loaded from
anywhere. Without scripts, and on paper, there are the figures in place of the chart. Its bytes depend on the
recording and on the versions of the libraries alone.
"""

from __future__ import annotations

import base64
import functools
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from bench.analysis import ceilings, verdict
from bench.analysis.machine import Machine
from bench.analysis.phases import FEWEST_SAMPLES
from bench.analysis.summary import Summary
from bench.observations import observation
from bench.observations.observation import Observation
from bench.presentation import chart, commands, tables, wording
from bench.presentation.figures.registry import FIGURES
from bench.presentation.figures.throughput import TITLE
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import Repetition, RunRecord, foreseen_text
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

if TYPE_CHECKING:
    import pandas as pd


OWN = "bench.presentation"
SYMBOLS = {"held": "✓", "violated": "✗", "invalid": "?"}
SENTENCES = {
    "held": "Every guaranteed flow got what it was promised.",
    "violated": "At least one flow did not get what it was promised.",
    "invalid": "This run proves nothing about the guarantees.",
}
EXCEEDED = "At least one pod sent more than its network claims to let it."
SENTENCES_WITH_REQUESTS = {
    "held": "Every guaranteed flow got what it was promised, and requests took no longer than they may.",
    "violated": "A flow did not get what it was promised, or requests took longer, or were lost.",
    "invalid": "This run proves nothing about guarantees and requests.",
}


def render(
    recording: Recording,
    scenario: Scenario,
    record: RunRecord,
    summary: Summary,
    samples: pd.DataFrame,
    drawn: Mapping[str, Mapping[str, bytes]],
) -> str:
    """Return the page; ``drawn`` has each figure's files, by its name and their format."""
    return rendered(
        "report.html.j2",
        **_observed(scenario, record),
        **_commands(recording, record),
        summary=summary,
        wording=wording,
        folded=html,
        foreseen_text=foreseen_text,
        scenario=scenario,
        record=record,
        symbol=SYMBOLS[summary.verdict],
        sentence=_sentence(summary),
        following=commands.after_run(recording, summary),
        remark=wording.on_the_network(scenario, summary.verdict),
        unit=unit_for(flow.guarantee_bps for flow in summary.flows),
        chart=_chart(samples, scenario, record, summary),
        intervals_of=tables.over(
            phase.intervals.mean_bps.unit
            for flow in summary.flows
            for phase in flow.phases.values()
            if phase.intervals
        ),
        figures=_figures(scenario, drawn),
        yaml=recording.scenario_file.read_text(encoding="utf-8"),
        environment=_environment(recording),
        cpu=_cpu(record),
        limits=verdict,
        ceiling_most=ceilings.MOST,
        fewest_samples=FEWEST_SAMPLES,
        full_packets=_full_packets(scenario),
    )


def _observed(scenario: Scenario, record: RunRecord) -> dict[str, Any]:
    """Return what the page shows of each observation."""
    observed = list(observation.configured(scenario.settings).values())
    return {
        "details": functools.partial(_details, observed),
        "tables": [table for one in observed if (table := one.table(record))],
        "columns": [column for one in observed for column in one.columns],
    }


def _commands(recording: Recording, record: RunRecord) -> dict[str, Any]:
    """Return the commands that make run and figures again."""
    request = commands.asked(recording)
    start = request or commands.known(recording, record)
    return {
        "asked": commands.bench(request) if request else None,
        "start": start,
        "source_known": recording.beginning_file.exists(),
        "as_run": commands.bench(commands.as_run(start, record.run_id)),
        "figures_again": commands.figures(record.run_id, request),
    }


def _figures(scenario: Scenario, drawn: Mapping[str, Mapping[str, bytes]]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "title": figure.title,
            "caption": figure.caption(scenario),
            "png": inline(drawn[name]["png"]),
            "charted": figure.charted,
        }
        for name, figure in FIGURES.items()
        if name in drawn
    ]


def _sentence(summary: Summary) -> str:
    """Return the verdict as a sentence, which is about requests too where these have thresholds."""
    broken = [cause for cause in summary.causes if cause.kind == "promise"]
    if summary.verdict == "violated" and all("ceiling" in cause.topics for cause in broken):
        return EXCEEDED
    judged = any(phase.met is not None for one in summary.requests for phase in one.phases.values())
    return (SENTENCES_WITH_REQUESTS if judged else SENTENCES)[summary.verdict]


def _full_packets(scenario: Scenario) -> list[dict[str, Any]]:
    """Return, for each MTU that pods have, what a full packet holds, bytes, and whose it is."""
    clusters: dict[int, list[str]] = {}
    for name in scenario.clusters:
        clusters.setdefault(pod_mtu(scenario, name), []).append(name)
    return [
        {
            "mtu": mtu,
            "clusters": names,
            "frame": frame_bytes(mtu),
            "tcp": payload_bytes(mtu, "tcp"),
            "udp": payload_bytes(mtu, "udp"),
        }
        for mtu, names in clusters.items()
    ]


@functools.cache
def templates(package: str = OWN) -> Environment:
    """Return what renders a package's templates, which may use ours and the filters that all share.

    It keeps those that it has compiled.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(one) for one in dict.fromkeys((package, OWN))]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bps=format_bps, fixed=format_fixed, number=format_number, share=_share, percentage=_percentage
    )
    return environment


def rendered(template: str, package: str = OWN, **values: Any) -> str:
    """Return a package's template, filled in."""
    return templates(package).get_template(template).render(**values)


def inline(png: bytes) -> str:
    """Return a picture in base64, with a palette: that is a third of the bytes, and looks the same."""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        drawn = picture.quantize(256, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    drawn.save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _share(value: float) -> str:
    return format_share(value).replace(" ", "\N{NO-BREAK SPACE}")


def _percentage(value: float | None) -> str:
    return format_percentage(value).replace(" ", "\N{NO-BREAK SPACE}")


def _chart(
    samples: pd.DataFrame, scenario: Scenario, record: RunRecord, summary: Summary
) -> dict[str, Any] | None:
    """Return what the chart is made of; None if nothing was sampled."""
    if samples.empty:
        return None
    library = {name: Markup(text) for name, text in chart.library().items()}
    return {"title": TITLE, "data": chart.data(samples, scenario, record, summary), **library}


def _details(observed: Sequence[Observation], repetition: Repetition, machine: Machine) -> dict[str, Any]:
    """Return what is unfolded of a repetition, by what it is."""
    found = {name: value for one in observed for name, value in one.details(repetition).items()}
    return {**found, "segments sent again": machine.retransmits or "not known"}


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


MOST_BESIDE = 3  # values of a list that stand beside each other; more stand below each other
NOTHING = "–"


def html(value: Any) -> Markup:
    """Return data as JSON and YAML have it, or of a record."""
    return Markup(_shown(value))


def _shown(value: Any) -> str:
    if not _is_nested(value):
        return _plain(value)
    if isinstance(value, dict):
        return _table(value)
    if _is_nested(value[0]):
        return f"<ol>{''.join(f'<li>{_shown(inner)}</li>' for inner in value)}</ol>\n"
    values = [str(inner) for inner in value]
    if len(values) > MOST_BESIDE:
        return f"<pre>{_escaped(chr(10).join(values))}</pre>\n"
    return f"{_escaped(', '.join(values))}\n"


def _table(value: dict[Any, Any]) -> str:
    rows, folded = [], []
    for key, inner in value.items():
        name = _escaped(str(key))
        if _is_nested(inner):
            folded.append(f"<details><summary>{name}</summary>{_shown(inner)}</details>\n")
        else:
            rows.append(f"<dt>{name}</dt><dd>{_plain(inner)}</dd>\n")
    return f"<dl>\n{''.join(rows)}</dl>\n{''.join(folded)}"


def _plain(value: Any) -> str:
    text = "" if value is None or value == {} or value == [] else str(value)
    return f"<pre>{_escaped(text)}</pre>\n" if "\n" in text else f"{_escaped(text or NOTHING)}\n"


def _is_nested(value: Any) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


@functools.lru_cache(maxsize=10_000)
def _escaped(text: str) -> str:
    """Return a text as HTML has it; names, and most values, are the same in each pod."""
    return str(escape(text))
