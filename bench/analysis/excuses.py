"""For which samples may the machine be to blame, if they fall short?

A neighbour can crowd a flow out only by getting what the flow does not, and only if the flow has something to
send. So it was not a neighbour, but the machine, that kept a sample low

* in which the machine stood still, or its processors were saturated, or its host took them away, or right
  after (``bench.observations.processors``),
* whose sender was idle: nothing of it waited anywhere, though its window would have carried far more,
* in which all links on its way had room: nobody took what the flow did not get.

Whoever limits a flow below its promise leaves senders idle and links with room as well, but does so all
along. These two are doubts only where they are the exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from bench.analysis.phases import Span
from bench.generators import generator_of
from bench.recording.records import Repetition
from testbed.scenario import Scenario, Traffic, enforcements, frames, links
from testbed.scenario.networks import path_of
from testbed.scenario.units import format_share

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from bench.analysis.samples import Tables

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

# Busy share from which processors count as saturated. Half-second averages of a machine that is
# the bottleneck are 0.98 to 1; the rest is the sampling clock's.
CPU_SATURATED = 0.97

# Share of all processor time that the hypervisor gave to others while something here wanted to run (steal
# in proc(5)), from which a machine was not itself. As with stalls, a tenth of the time is what makes a
# sample one that missed its guarantee (the scenario's thresholds.sample).
CPU_STOLEN = 0.1

# A sender is idle, and its flow limited by nothing on its way, if its window would have carried this many
# times what is expected. Windows that are used carry their flow once; a qdisc in the sender's own namespace
# holds a flow back through TCP's small queues (tcp_limit_output_bytes), which looks like 2 to 6 times what
# it then gets. Senders that had no processor are mostly at 9 and more: the queues on the way are empty, the
# round trip is short.
IDLE_WINDOWS = 3

# A link has room if what arrived over it is less than this share of the payload it can carry: flows that
# crowd others out fill 0.98 of it and more.
FULL_LINK = 0.96
# Where an enforcement lets traffic have only a share of the nodes' links (enforcements.Kind.link_share), they
# are full from this much below it on: the same 0.96 for a share of 0.99 (scenarios/networks/node.yaml).
BELOW_SHARE = 0.03

# A sample is this much later than it says: from its release on a sender takes 6 to 8 ms to its first packet
# (docs/explanation/why-a-number-may-be-believed.md, "The clock of the samples").
BEGIN_SECONDS = 0.01

MOST = 0.5  # of the samples of a flow in one phase

# With fewer samples, or exchanges, beyond doubt than this share of a phase's, no broken promise is shown.
FEWEST_SOUND = 0.2


class Moments(NamedTuple):
    """When the machine had no time to spare, in order; what touches is one."""

    stalls: list[Span]  # it stood still
    saturated: list[Span]  # a processor was saturated, or its host took processors away


def moments(repetition: Repetition) -> Moments:
    """Return the machine's bad moments in a repetition."""
    saturated = [Span(stretch.start_s, stretch.end_s) for stretch in repetition.saturated]
    # One processor is enough: a flow's packets, and a link's queue, are one processor's at a time.
    saturated += [
        Span(use.start_s, use.end_s)
        for use in repetition.cpu
        if (use.busy if use.busiest is None else use.busiest) >= CPU_SATURATED or use.steal >= CPU_STOLEN
    ]
    return Moments(
        _merged(Span(stall.start_s, stall.end_s) for stall in repetition.stalls), _merged(saturated)
    )


def together(several: Iterable[Moments]) -> Moments:
    """Return the moments of several repetitions as those of one."""
    found = list(several)
    return Moments(
        _merged(chain.from_iterable(one.stalls for one in found)),
        _merged(chain.from_iterable(one.saturated for one in found)),
    )


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def busy(share: float | None) -> str:
    """Return why a miss may be the machine's by how busy all its processors were, for the end of its words.

    Empty if it is not, or was not recorded.
    """
    if share is None or share < CPU_SATURATED:
        return ""
    return f"; the processors were {format_share(share)} busy, so it may be the machine"


def stalled(starts: Floats, ends: Floats, repetition: Repetition, interval: float) -> Flags:
    """Tell for each sample whether the machine had no time to spare in it, or just before it."""
    import numpy as np

    flags = np.zeros(len(starts), dtype=np.bool_)
    for start, end in chain.from_iterable(moments(repetition)):
        # What was held up arrives in the interval after.
        flags |= (starts < end + interval) & (ends + BEGIN_SECONDS > start)
    return flags


def idle(sent: pd.DataFrame | None, ends: Floats, expected: float) -> Flags:
    """Tell for each sample, known by its end, whether its sender had nothing waiting. ``sent``: its rows."""
    import numpy as np

    if sent is None or sent.empty:
        return np.zeros(len(ends), dtype=np.bool_)
    nearest = np.abs(sent["end_s"].to_numpy()[np.newaxis, :] - ends[:, np.newaxis]).argmin(axis=1)
    windows: Floats = sent["window_bps"].to_numpy()[nearest]
    return windows >= IDLE_WINDOWS * expected  # false where it is not known


def room(
    starts: Floats, ends: Floats, traffic: Traffic, tables: Tables, scenario: Scenario, repetition: int
) -> Flags:
    """Tell for each sample of a transfer whether all links on its way had room meanwhile.

    Those without a rate always have. Nothing is told where none has one, and beside traffic other than TCP's
    in full packets.
    """
    import numpy as np

    nothing = np.zeros(len(starts), dtype=np.bool_)
    ways = [(other, way) for other in scenario.traffic if (way := links.passed(scenario, other))]
    full_packets = all(o.protocol == "tcp" and generator_of(scenario, o).saturates for o, _ in ways)
    ours = links.passed(scenario, traffic)
    passed = [(link, rate) for link in ours if (rate := links.rate(scenario, link))]
    if not passed or not full_packets:
        return nothing
    mtu, overhead = path_of(scenario, traffic.source)
    flags = ~nothing
    for link, rate in passed:
        takes = overhead + scenario.underlay.frame_overhead
        full = _full(link, scenario) * rate * frames.payload_share(mtu, "tcp", takes)
        carried = np.zeros(len(starts))
        for other, way in ways:
            if link in way:
                carried += _carried(starts, ends, tables.get((other.label, repetition, "receiver")))
        flags &= carried / (ends - starts) < full
    return flags


def _full(link: links.Link, scenario: Scenario) -> float:
    """Return from which share of what a link carries on it is full. Nobody shares out trunks."""
    if link.trunk:
        return FULL_LINK
    return min(FULL_LINK, enforcements.of(scenario).link_share - BELOW_SHARE)


def _carried(starts: Floats, ends: Floats, received: pd.DataFrame | None) -> Floats:
    """Return how many bits of a transfer arrived from each start to its end."""
    import numpy as np

    if received is None or received.empty:
        return np.zeros(len(starts))
    begun, ended = received["start_s"].to_numpy(), received["end_s"].to_numpy()
    bits = np.cumsum(received["bits_per_second"].to_numpy() * (ended - begun))
    moments, sums = np.append(begun[:1], ended), np.append(0.0, bits)
    return np.asarray(np.interp(ends, moments, sums) - np.interp(starts, moments, sums), dtype=np.float64)
