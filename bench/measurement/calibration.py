"""What the machine can carry, and whether it can tell: before the traffic, and once more after it.

The guaranteed flows' paths are used without any shaping, all at once, for a second. A promise near this
limit could be missed through the machine's fault alone. The probes are pods of their own, without a
guarantee, on the same nodes and in the same clusters: same veth, bridge, VXLAN and underlay.

Before the traffic, what disturbs it is on for the rest of that second, which tells whether the machine can
carry both. All takes longer between zones: TCP doubles what it sends once in a round trip, finds the limit by
losing packets, and is then some tens of round trips short of it. Two things keep a flow below its promise
without a neighbour's help.

*Too little processor time.* Unshaped probes and the disturbances compete for the processors, which the
kernel shares out fairly. So what a probe gets is what its flow has at least; and what flows leave that need
less, the others share: max-min fairness ("water-filling"; Bertsekas and Gallager, *Data Networks*, 6.5.2). A
flow's margin is what it can have in this way, over what it needs.

*Pauses.* Where processors stand still again and again, as with a quota, a flow with a ceiling cannot make up
for that later. What arrives meanwhile is what TCP's buffers take.

What requests take while nothing else is under way is asked for likewise, and what pings take. The difference
is what client and server add to the path. It is a function of the machine, so every run finds it out for
itself: between the pods, with the programs and at the rate of its own requests. What is found is in the
recording's raw files; one that is missing there is told of by the analysis.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from bench.generators import Exchanger, Generator, RawDataError, Record, idle_sample, promised
from bench.generators.promised import Promise
from bench.measurement import transfers
from bench.measurement.plan import Plan, Planned
from bench.recording.directory import CALIBRATION, IDLE, Moment
from bench.recording.records import SMALLER, Calibration, Foreseen, Repetition, Transfer, slugs
from testbed.access.place import Place, in_parallel
from testbed.scenario import Pod, Requests, Scenario, Traffic

SECONDS = 1
ALONE_SECONDS = 0.4  # of them without what disturbs
SETTLING_SECONDS = 0.1  # a sample: until what has just begun takes what it can
INTERVAL_SECONDS = 0.1  # of the samples, iperf3's shortest
MORE_ROUND_TRIPS = 100  # the time of the longest, where trunks take time
RECEIVE_BUFFER = "/proc/sys/net/ipv4/tcp_rmem"
ECHO_SECONDS = 30.0  # that the pings may take at most, where nodes are slow
SCALES = (1.0, *SMALLER)  # of the rates that were asked for

# The margin from which on a statement is expected, and the share of samples that has to have it. On 2 cores
# all of 19 runs with 3.2 and more held; two with 2.5 and 2.8, beside six processes and more, said nothing:
# flows waited for a processor longer than what they have in their buffers lasts.
MARGIN = 3.0
SAMPLES = 0.8

# Pauses of less than this share of the time are accidents, of which nothing can be foreseen.
STILL = 0.1
# tcp(7): half of a receive buffer is TCP's window, the rest is for the kernel's own bookkeeping.
WINDOW_SHARE = 0.5

_Place = tuple[str, str, str]  # cluster and node of a pod, and which end of a flow it is


@dataclass(frozen=True)
class Pauses:
    """How a machine stood still beside the probes."""

    share: float  # of the time, of a processor
    mean_s: float
    buffer_bytes: int  # the most that TCP's receive buffer takes


NONE = Pauses(0.0, 0.0, 0)


@dataclass(frozen=True)
class Probed:
    """A scenario with its probes, and what of it is needed to judge what they carry."""

    scenario: Scenario  # what a run brings up: with the probes' pods and transfers, after its own
    promise: Promise
    probes: Mapping[str, Traffic]  # by the label of the guaranteed flow whose path it takes
    others: Sequence[Traffic]  # what disturbs them: the most that is without a guarantee at one time
    settling: int  # seconds that TCP takes to find out what trunks that take time carry
    full_bps: float  # from which on flows and others together have filled the links

    @property
    def traffic(self) -> list[Traffic]:
        """What is sent to calibrate: the probes, then what disturbs them."""
        return [*self.probes.values(), *self.others]

    @property
    def idle(self) -> list[Requests]:
        """What is asked where nothing else is under way."""
        return [idle_sample(one) for one in self.scenario.requests]

    @property
    def alone_s(self) -> float:
        """How long the paths are used before anything disturbs them, seconds."""
        return _alone_s(self.settling)

    @property
    def seconds(self) -> int:
        """How long they are used, at last with what is beside them, if anything is."""
        return _seconds(self.settling, bool(self.others))

    @property
    def settled_s(self) -> float:
        """When TCP has settled beside what disturbs, or alone where nothing does, seconds."""
        return SETTLING_SECONDS * 1.5 + (self.alone_s + self.settling if self.others else 0.0)


def _alone_s(settling: int) -> float:
    return float(SECONDS + settling) if settling else ALONE_SECONDS


def _seconds(settling: int, beside: bool) -> int:
    return SECONDS + settling + (SECONDS + settling if settling and beside else 0)


def with_probes(scenario: Scenario) -> Probed:
    """Return the scenario with probes of guaranteed flows. Raises LookupError for an unknown generator."""
    promise = promised.of(scenario)
    flows = promise.flows
    # The longest way from one node to another passes the two trunks that take longest.
    longest = sum(sorted(zone.delay for zone in scenario.zones.values())[-2:])
    settling = math.ceil(MORE_ROUND_TRIPS * 2 * longest)
    disturbing = _disturbing(scenario, flows) if flows else []
    seconds = _seconds(settling, bool(disturbing))
    others = [
        other.model_copy(
            update={
                "name": f"calibration beside {number}",
                "start": _alone_s(settling),
                "duration": seconds,
            }
        )
        for number, other in enumerate(disturbing, start=1)
    ]
    pods = _stand_ins(scenario, flows)
    probes = _probes(scenario, flows, pods, seconds)
    disturbances = [*scenario.disturbances, *probes.values(), *others]
    added = {name: Pod(cluster=cluster, node=node) for (cluster, node, _), name in pods.items()}
    return Probed(
        scenario.model_copy(update={"pods": scenario.pods | added, "disturbances": disturbances}),
        promise,
        probes,
        others,
        settling,
        promised.full_bps(scenario, [*flows, *others]),
    )


def _stand_ins(scenario: Scenario, flows: Sequence[Traffic]) -> dict[_Place, str]:
    """Return what the pods are called that stand in for the ends of flows."""
    ends = [(flow, role) for flow in flows for role in ("source", "destination")]
    free = (name for number in count(1) if (name := f"probe-{number}") not in scenario.pods)
    return dict(zip(dict.fromkeys(_place(scenario, *end) for end in ends), free, strict=False))


def _probes(
    scenario: Scenario, flows: Sequence[Traffic], pods: Mapping[_Place, str], seconds: int
) -> dict[str, Traffic]:
    return {
        flow.label: Traffic(
            name=f"calibration {number}",
            source=pods[_place(scenario, flow, "source")],
            destination=pods[_place(scenario, flow, "destination")],
            duration=seconds,
            generator=flow.generator,
        )
        for number, flow in enumerate(flows, start=1)
    }


def _place(scenario: Scenario, flow: Traffic, role: str) -> _Place:
    """Return whose pod is at a flow's end, and on which node; for a device it is its gateway."""
    nodes = scenario.nodes_of(flow)
    return scenario.pods[flow.source].cluster, nodes[1 if role == "destination" else 0], role


def _disturbing(scenario: Scenario, flows: Sequence[Traffic]) -> list[Traffic]:
    """Return the traffic without a guarantee of the moment that has most streams of it."""
    others = [one for one in scenario.traffic if one not in flows]
    together = [[one for one in others if one.start <= begun.start < one.end] for begun in others]
    return max(together, key=_streams, default=[])


def _streams(traffic: Sequence[Traffic]) -> int:
    return sum(one.parallel for one in traffic)


class Plans(NamedTuple):
    """How that is done on a testbed of ``Probed.scenario`` that is up."""

    traffic: Plan
    idle: Plan


def calibrate(plans: Plans, probed: Probed, directory: Path, moment: Moment) -> Calibration | None:
    """Do all of it before the traffic, or after it, where nothing is to be foreseen any more.

    Output lands in ``directory``, the recording's raw files.
    """
    found = measure(plans.traffic, probed, directory / CALIBRATION[moment], foreseeing=moment == "before")
    ask(plans.idle, directory / IDLE[moment])
    return found


def measure(planned: Plan, probed: Probed, directory: Path, foreseeing: bool = False) -> Calibration | None:
    """Use the guaranteed flows' paths; None if there are none.

    ``foreseeing``: alone at first, then beside what disturbs, to foresee whether the machine can tell.
    """
    if not probed.probes:
        return None
    begin, others = time.monotonic(), probed.others if foreseeing else ()
    if not foreseeing:
        planned = replace(planned, transfers=planned.transfers[: len(probed.probes)])
    beside = [other.label for other in others]
    done = transfers.run(planned, directory, lambda _seconds, _rates: None, beside)
    records, errors = _received(planned, probed, done, directory)
    errors += [f"{label}: {text}" for label in beside if (text := done.transfers[label].error)]
    alone = probed.alone_s if others else math.inf
    receiver = planned.transfers[0].receivers[0].network
    return Calibration(
        seconds=time.monotonic() - begin,
        bits_per_second={flow: _rate(of, alone) for flow, of in records.items()},
        error="; ".join(errors) or None,
        foreseen=_foreseen(probed, records, done, receiver) if foreseeing and not errors else None,
    )


def _received(
    planned: Plan, probed: Probed, done: Repetition, directory: Path
) -> tuple[dict[str, list[Record]], list[str]]:
    """Return the receivers' records by flow, and why there are none of others."""
    tools = {one.traffic.label: one.generator for one in planned.transfers}
    records, errors = {}, []
    for flow, probe in probed.probes.items():
        transfer, tool = done.transfers[probe.label], tools[probe.label]
        assert isinstance(tool, Generator)
        try:
            if transfer.error:
                raise RawDataError(transfer.error)
            records[flow] = tool.read_records(directory / tool.file_name(transfer.slug, "receiver"))
        except RawDataError as error:
            errors.append(f"{probe.label}: {error}")
    return records, errors


def _rate(records: Sequence[Record], until: float) -> float:
    """Return the mean rate of the records that end by a moment, payload bits per second."""
    used = [record for record in records if record.end_s <= until + SETTLING_SECONDS / 2] or records[:1]
    return sum(record.bytes for record in used) * 8 / used[-1].end_s


def _foreseen(
    probed: Probed, records: Mapping[str, Sequence[Record]], done: Repetition, receiver: Place
) -> list[Foreseen]:
    begun = probed.alone_s if probed.others else 0.0
    alone = math.fsum(_rate(of, begun or math.inf) for of in records.values())
    samples = [
        {flow: record.bits_per_second for flow, record in zip(records, row, strict=True)}
        for row in zip(*records.values(), strict=False)
        if row[0].end_s > probed.settled_s and row[0].end_s - row[0].start_s > INTERVAL_SECONDS / 2
    ]
    return foresee(
        probed.promise.goodputs,
        samples,
        _streams(probed.others),
        filled=carried(probed, samples, done.transfers) >= probed.full_bps,
        fits=lambda scale: probed.promise.fits(alone, scale),
        pauses=_pauses(receiver, done, begun, probed.seconds),
    )


def _pauses(receiver: Place, done: Repetition, since: float, until: float) -> Pauses:
    """Return how the harness's machine stood still between two moments."""
    lengths = [
        end - start
        for stall in done.stalls
        if (end := min(stall.end_s, until)) > (start := max(stall.start_s, since))
    ]
    share = sum(lengths) / (until - since) / len(os.sched_getaffinity(0))
    if share < STILL:
        return NONE
    # Lowest, usual and greatest size, bytes: tcp(7).
    text = receiver.run(["cat", RECEIVE_BUFFER]).stdout
    return Pauses(share, sum(lengths) / len(lengths), int(text.split()[-1]))


def carried(probed: Probed, samples: Sequence[Mapping[str, float]], done: Mapping[str, Transfer]) -> float:
    """Return what probes and disturbances together carried, bits per second."""
    sent = 0.0
    if probed.others:
        sent_bytes = sum(done[one.label].sender_interface_bytes or 0 for one in probed.others)
        sent = sent_bytes * 8 / (probed.seconds - probed.alone_s)
    return sent + sum(sum(sample.values()) for sample in samples) / max(1, len(samples))


def foresee(
    needs: Mapping[str, float],
    samples: Sequence[Mapping[str, float]],
    others: int,
    filled: bool = False,
    fits: Callable[[float], bool] = lambda _scale: True,
    pauses: Pauses = NONE,
) -> list[Foreseen]:
    """Return at which scales the machine can tell, the one asked for first.

    ``needs`` is the goodput that each flow must have at one time, ``samples`` what its path carried in each
    interval beside ``others``, streams that take what they get; both in bits per second. Links that were
    ``filled`` were the limit, and not the machine. ``fits`` tells whether a scale's promise is far enough
    from what the paths carry by themselves.
    """
    found = []
    for scale in SCALES:
        wanted = {flow: need * scale for flow, need in needs.items()}
        margins = sorted(margin(wanted, sample, others) for sample in samples)
        # The least of those that as many samples as must have.
        least = margins[len(margins) - math.ceil(SAMPLES * len(margins))] if margins else 0.0
        can_tell = fits(scale) and (filled or least >= MARGIN) and bridged(wanted, pauses)
        found.append(Foreseen(scale=scale, margin=least, can_tell=can_tell))
    return found


def bridged(needs: Mapping[str, float], pauses: Pauses) -> bool:
    """Tell whether TCP's buffers take what the flows need while the machine stands still."""
    window_bits = WINDOW_SHARE * pauses.buffer_bytes * 8
    return pauses.share < STILL or max(needs.values()) * pauses.mean_s <= window_bits


def margin(needs: Mapping[str, float], shares: Mapping[str, float], others: int) -> float:
    """Return what the flows can have, over what they need, of the flow that has least.

    ``shares`` is what each gets while all, ``others`` too, take as much as they get.
    """
    wanted = sorted(needs[flow] / shares[flow] if shares.get(flow) else float("inf") for flow in needs)
    room, left = float(len(wanted) + others), len(wanted) + others
    level = 1.0
    for want in wanted:  # those that want least first: they leave the most to the others
        level = room / left
        if want > level:
            break
        room, left = room - want, left - 1
    return level / wanted[-1]


def ask(planned: Plan, directory: Path) -> None:
    """Ask on the paths of some requests, and ping there meanwhile; the output lands in ``directory``."""
    if not planned.transfers:
        return
    directory.mkdir(parents=True, exist_ok=True)
    names = slugs(one.traffic.label for one in planned.transfers)
    # At the same time: a processor that sleeps takes long to wake, for both alike.
    work: list[Callable[[], object]] = [
        partial(transfers.run, planned, directory, lambda _seconds, _rates: None),
        *(
            partial(_ping, one, directory, names[one.traffic.label])
            for one in planned.transfers
            if not one.told_to_end  # nobody answers pings at a service's address
        ),
    ]
    in_parallel(lambda one: one(), work)


def _ping(planned: Planned, directory: Path, name: str) -> None:
    exchanger, sample = planned.generator, planned.traffic
    assert isinstance(exchanger, Exchanger)
    assert isinstance(sample, Requests)
    process = planned.source.start(
        exchanger.echo(sample, planned.address),
        stdout=directory / exchanger.file_name(name, "echo"),
        stderr=directory / f"{name}.echo.stderr",
    )
    try:
        process.wait(ECHO_SECONDS)
    finally:
        process.kill()
