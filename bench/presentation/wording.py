"""What terminal and page say in the same words, and words from outside, as they may be shown."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from bench.analysis.flow_phases import Measured
from bench.analysis.machine import Machine
from bench.analysis.summary import PhaseSummary, RequestsSummary, Summary
from bench.observations.observation import NOT_RECORDED
from testbed.scenario import Scenario, enforcements
from testbed.scenario.texts import escaped
from testbed.scenario.units import format_digits, format_percentage, format_seconds

# What a verdict is about, by the kind of its first cause; a promise is called by its flow, if it has one.
BRIEFLY = {
    "promise": "a promise was not kept",
    "machine": "the machine may have been the limit",
    "measurement": "the measurement has gaps or contradicts itself",
    "state": "the kernel was not as configured",
}


def on_the_network(scenario: Scenario, verdict: str) -> str:
    """Return what is to be known of a network without a floor whose rates were there; empty for others."""
    kind = enforcements.of(scenario)
    if verdict != "held" or kind.promises:
        return ""
    if "ceiling" in kind.claims:
        return f"{kind.name} claims a ceiling, not a floor: it keeps no room, there was some"
    return f"{kind.name} claims nothing: it keeps no room, there was some"


def briefly(summary: Summary) -> str:
    """Return a verdict and what it is about in a line, for where there is no room; empty if it is *held*."""
    if summary.verdict == "held":
        return ""
    kind = summary.causes[0].kind if summary.causes else None
    flows = list(dict.fromkeys(one.flow for one in summary.causes if one.kind == "promise" and one.flow))
    if kind == "promise" and flows:
        more = f" and {len(flows) - 1} more" if len(flows) > 1 else ""
        return f"{summary.verdict}: {flows[0]}{more}".replace("->", "→")
    return f"{summary.verdict}: {BRIEFLY[kind]}" if kind else summary.verdict


def reasons(summary: Summary) -> list[str]:
    """Return why a run is not held, each with where a flow's bytes were lost, if that was looked for."""
    places = [one.lost.text if one.lost else "" for one in summary.causes] or [""] * len(summary.reasons)
    return ["; ".join(filter(None, both)) for both in zip(summary.reasons, places, strict=True)]


def judged_in(name: str, phase: PhaseSummary) -> str:
    """Return a phase's name, with the repetition that it was judged by if that is one of several."""
    judged = phase.judged
    if judged is phase or len(phase.repetitions) < 2:
        return name
    return f"{name}, rep. {next(one.repetition for one in phase.repetitions if one is judged)}"


def by_mean(judged: Measured) -> bool:
    """Tell whether it is by their mean that samples did not hold: too little, or more than a ceiling."""
    return not {"mean", "ceiling"}.isdisjoint(judged.missed)


def lowest(phases: Iterable[Measured]) -> str:
    """Return what a column is called that shows the ``lowest_bps`` of each of these."""
    kinds = {one.shows_minimum for one in phases}
    return "min/p01" if len(kinds) > 1 else "min" if True in kinds else "p01"


def low(samples: Measured) -> str:
    """Return how many samples are low, and how many of these the machine accounts for; empty if none is."""
    if not samples.low:
        return ""
    doubtful = samples.low_doubtful or 0
    if doubtful == samples.low:
        which = {1: "it", 2: "both"}.get(doubtful, "all")
    else:
        which = f"{doubtful} of them" if doubtful else "none"
    return f"{samples.low} of {samples.samples} low, and the machine accounts for {which}"


def low_briefly(samples: Measured) -> str:
    """Return the same in a cell of a table."""
    if samples.low is None:
        return "–"
    return f"{samples.low} ({samples.low_doubtful})" if samples.low else "0"


def percentile(seconds: float | None) -> str:
    """Return a percentile of requests' times, milliseconds, where it may be among the lost."""
    return "lost" if seconds is None else format_digits(seconds * 1000)


def milliseconds(seconds: float | None) -> str:
    """Return a time in milliseconds, for a column, or a dash for none."""
    return "–" if seconds is None else format_digits(seconds * 1000)


def idle(requests: RequestsSummary) -> str:
    """Return what requests take on an idle path, and what of that is not the path's; empty if not known."""
    parts = []
    for path in requests.idle:
        said = f"{format_seconds(path.exchange_s)} {path.moment} the traffic"
        if path.echo_s is not None and path.overhead_s is not None:
            sign = "-" if path.overhead_s < 0 else "+"
            overhead = format_seconds(abs(path.overhead_s))
            said += f" (ping {format_seconds(path.echo_s)} {sign} {overhead})"
        parts.append(said)
    return f"on the idle path {', '.join(parts)}" if parts else ""


def endpoints(requests: RequestsSummary) -> str:
    """Return how many requests each pod of a service has seen; empty if they were not to one."""
    seen = ", ".join(f"{pod} {count:,}" for pod, count in requests.endpoints.items())
    return f"requests that each pod has seen: {seen}" if seen else ""


def softirq(machine: Machine) -> str:
    """Return the share of each processor's time in software interrupts, machine by machine."""
    if machine.softirq is None:
        return NOT_RECORDED
    return "; ".join(
        ", ".join(format_percentage(share) for share in shares) for shares in machine.softirq.values()
    )


def pressure(machine: Machine) -> str:
    """Return the share of time in which something waited for a processor."""
    if machine.softirq is None:
        return NOT_RECORDED
    return "not readable" if machine.pressure is None else format_percentage(machine.pressure)


def irregular(machine: Machine) -> float | None:
    """Return the largest share of irregular intervals that a receiver had."""
    return max((one.share for one in machine.irregular.values()), default=None)


def longest(machine: Machine) -> str:
    """Return the longest interval that a receiver had."""
    lengths = [one.longest_s for one in machine.irregular.values()]
    return f"{max(lengths):.3f} s" if lengths else NOT_RECORDED


def verbatim(words: str, style: str = "") -> Text:
    """Return words from outside as Rich shows them, in tables and elsewhere."""
    return Text(escaped(words), style)


def estimate(seconds: float) -> str:
    """Return a time as people estimate it: ``about 40 s``, ``about 4 min``, ``about 2 h 10 min``."""
    if seconds < 60:
        return f"about {max(round(seconds / 5), 1) * 5} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"about {minutes} min"
    hours, minutes = divmod(round(minutes / 10) * 10, 60)
    return f"about {hours} h {minutes} min" if minutes else f"about {hours} h"
