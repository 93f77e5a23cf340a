"""A run's outcome for the terminal: one table, and the verdict with its reasons and files.

Made to be read at 80 columns, in a log file and without colour: what a colour says, a word says too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.analysis import spread
from bench.analysis.summary import FlowSummary, PhaseSummary, RequestsPhaseSummary, Summary
from bench.observations.causes import Topic
from bench.presentation import wording
from bench.presentation.commands import Following
from bench.presentation.wording import verbatim
from bench.recording.directory import Recording
from testbed.resources import as_typed
from testbed.scenario.units import (
    Unit,
    format_digits,
    format_fixed,
    format_percentage,
    format_share,
    unit_for,
)

STYLES = {"held": "bold green", "violated": "bold red", "invalid": "bold yellow"}


def show(
    console: Console,
    summary: Summary,
    recording: Recording,
    remark: str = "",
    following: Following | None = None,
) -> None:
    """Print the table, the conclusion, and what to run next as the last line.

    ``remark`` is on the network (``wording.on_the_network``).
    """
    if summary.flows:
        console.print(flows(summary))
    for line in certainty(summary):
        console.print(line, soft_wrap=True)
    if summary.requests:
        console.print(requests(summary))
        for line in paths(summary):
            console.print(line, soft_wrap=True)
    console.print(conclusion(summary, recording, remark), soft_wrap=True)
    if following is not None:
        console.print(next_step(following), soft_wrap=True)


def next_step(following: Following) -> Text:
    """Return what is to be found out next, and by which command, on a line each."""
    return verbatim(f"to find out: {following.reason}\nnext: {as_typed(following.command)}")


def flows(summary: Summary) -> Table:
    """Return a table with a row for each phase of each flow; rates in one unit, named in its title."""
    unit = unit_for(flow.guarantee_bps for flow in summary.flows)
    table = borderless(f"{summary.scenario}, enforcement {summary.enforcement}, rates in {unit.name}")
    table.add_column("flow", overflow="fold", ratio=1)
    for heading in ("guaranteed", "expected"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    shown = [phase.judged for flow in summary.flows for phase in flow.phases.values()]
    for heading in ("observed", wording.lowest(shown), "attained"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for flow in summary.flows:
        for index, (name, phase) in enumerate(flow.phases.items()):
            table.add_row(*(_promise(flow, unit) if index == 0 else ("", "", "")), *_row(name, phase, unit))
        if not flow.phases:
            table.add_row(*_promise(flow, unit), "no samples", "", "", "", "")
    return table


def requests(summary: Summary) -> Table:
    """Return a table with a row for each phase of each kind of requests; times in milliseconds."""
    table = borderless(f"{summary.scenario}, enforcement {summary.enforcement}, from due to answered in ms")
    table.add_column("requests", overflow="fold", ratio=1)
    table.add_column("/s", justify="right", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    for heading in ("p50", "p90", "p99", "p99.9", "max", "late p99", "lost"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in summary.requests:
        for index, (name, phase) in enumerate(one.phases.items()):
            first = (verbatim(one.name), format_digits(one.rate)) if index == 0 else ("", "")
            table.add_row(*first, name, *_times(phase), _mark(phase.met, phase.missed))
        if not one.phases:
            table.add_row(verbatim(one.name), format_digits(one.rate), "no times", *[""] * 8)
    return table


def paths(summary: Summary) -> Iterator[Text]:
    """Yield lines for each kind of requests: on what they take on an idle path, and on who answered."""
    for one in summary.requests:
        for said in filter(None, (wording.idle(one), wording.endpoints(one))):
            yield verbatim(f"{one.name}: {said}")


def _times(phase: RequestsPhaseSummary) -> list[str | Text]:
    return [
        wording.percentile(phase.p50_s),
        wording.percentile(phase.p90_s),
        _decides(wording.percentile(phase.p99_s), "latency" in phase.missed),
        wording.percentile(phase.p999_s),
        wording.milliseconds(phase.max_s),
        wording.milliseconds(phase.lateness_p99_s),
        _decides(str(phase.lost), "lost" in phase.missed),
    ]


def certainty(summary: Summary) -> Iterator[Text]:
    """Yield a line on how well the means are known, and one on what a disturbance did at most."""
    phases = [(flow, phase) for flow in summary.flows for phase in flow.phases.values()]
    known = [
        (phase.intervals.mean_bps, flow.expected_goodput_bps)
        for flow, phase in phases
        if phase.intervals and flow.expected_goodput_bps
    ]
    if known:
        most = max(interval.half / expected for interval, expected in known)
        of = over(interval.unit for interval, _ in known)
        yield Text(f"95 % intervals {of}: means ± {format_share(most)} of what is expected, or less")
    effects = [(phase.effect, flow.name) for flow, phase in phases if phase.effect]
    if effects:
        effect, name = max(effects, key=lambda one: abs(one[0].share))
        low, high = effect.interval.low, effect.interval.high
        yield verbatim(
            f"largest effect of a disturbance: {format_share(effect.share)} "
            f"({format_share(low).removesuffix(' %')} to {format_share(high)}), {name}"
        )


def over(kinds: Iterable[spread.Unit]) -> str:
    """Say what intervals are made of."""
    return "over the repetitions" if set(kinds) == {"repetitions"} else "within this run"


def conclusion(summary: Summary, recording: Recording, remark: str = "") -> Text:
    """Return the verdict on one line, then its reasons, one a line, and where everything is."""
    text = Text()
    for flow in summary.flows:
        for name, phase in flow.phases.items():
            if said := wording.low(phase.judged):
                text.append(verbatim(f"{flow.name}, {wording.judged_in(name, phase)}: {said}\n", "dim"))
    text.append(summary.verdict, STYLES[summary.verdict])
    text.append(verbatim(f": {summary.title or summary.scenario}\n"))
    for reason in wording.reasons(summary):
        text.append(verbatim(f"  - {reason}\n"))
    for note in (*summary.notes, *filter(None, [remark])):
        text.append(verbatim(f"  note: {note}\n", "dim"))
    text.append(verbatim(f"recording: {recording.directory}\n"))
    text.append(verbatim(f"figures:   {recording.figures_directory}\n"))
    text.append(verbatim(f"report:    {recording.report_file}"))
    return text


def _promise(flow: FlowSummary, unit: Unit) -> tuple[Text, str, str]:
    rates = format_fixed(flow.guarantee_bps, unit), format_fixed(flow.expected_goodput_bps, unit)
    return verbatim(flow.name), *rates


def _row(name: str, phase: PhaseSummary, unit: Unit) -> tuple[str, str | Text, str, str | Text, Text]:
    """Return the numbers that the phase was judged by."""
    judged = phase.judged
    return (
        wording.judged_in(name, phase),
        _decides(format_fixed(judged.mean_bps, unit), wording.by_mean(judged)),
        format_fixed(judged.lowest_bps, unit),
        _decides(format_percentage(judged.attainment), "attainment" in judged.missed),
        _mark(phase.met, judged.missed),
    )


def _decides(number: str, decides: bool) -> str | Text:
    """Return a number with a mark before it if it is what a threshold was missed by."""
    return Text(f"✗ {number}", "bold red") if decides else number


def _mark(met: bool | None, missed: Collection[Topic]) -> Text:
    """Return whether a phase met its thresholds; nothing without any."""
    if met is None:
        return Text("")
    if met:
        return Text("held", "green")
    return Text("OVER" if "ceiling" in missed else "MISSED", "bold red")


def borderless(
    title: str | Text, gap: int = 1, texts: Sequence[str] = (), numbers: Sequence[str] = ()
) -> Table:
    """Return a table without lines, its title on the left, and so many blanks between columns.

    Its columns, by their headings, are of texts, which are folded where there is no room, then of numbers.
    """
    table = Table(
        title=verbatim(title) if isinstance(title, str) else title,
        title_justify="left",
        title_style="",
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
    )
    for heading in texts:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


@dataclass(frozen=True)
class Sheet:
    """A title, headings, and rows of texts; the first two columns say what a row is about."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def table(self) -> Table:
        """Return it for the terminal; what is behind a colon is said below the table, where there is room."""
        table = borderless(self.title)
        for number, heading in enumerate(self.headings):
            table.add_column(heading, justify="left" if number < 2 else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*(verbatim(cell.partition(":")[0]) for cell in row))
        return table

    def markdown(self) -> str:
        """Return its title as a sentence, and it below."""
        return f"{self.title[0].upper()}{self.title[1:]}.\n\n{markdown(self.headings, self.rows)}"


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n" for cells in lines
    )
