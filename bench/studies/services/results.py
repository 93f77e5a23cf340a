"""What the files in ``measured/`` amount to; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from bench.analysis.statistics import supported
from bench.observations.delays import FEWEST_FRAMES, direction, lateness
from bench.studies.services.index import Autoscaled, Measured
from bench.studies.services.records import Run
from bench.studies.services.situations import BY_NAME, DELAY_S, NAMES, expected
from bench.studies.timed import PUNCTUAL, Late, too_late
from edge.services.hints import MODES, OFF

# What delays packets may be late, with one frame in a hundred (or more, where there are few in all), by this
# share of a round trip between zones, which is what is to be told from none.
LATE_SHARE = 0.1
ROUND_TRIP_S = 4 * DELAY_S  # two trunks, there and back
# What an endpoint can do at most, of what an autoscaler wants it to do: a half of its processor is wanted.
MOST_LOAD = 2.0
# Kubernetes' autoscaler leaves alone what is off by less (--horizontal-pod-autoscaler-tolerance).
TOLERANCE = 0.1
_LATEST_S = 2 ** math.ceil(math.log2(LATE_SHARE * ROUND_TRIP_S * 1e6)) / 1e6  # as lateness is counted
USUAL = "in-proportion"  # the case that is compared with where one has no run without hints


def summed_up(runs: Iterable[Run]) -> list[Measured]:
    """Return what was measured, in the order of cases, then of modes."""
    known = {(run.case, run.mode): run for run in runs}
    usual = known.get((USUAL, OFF))
    return [
        measured(run, known.get((case, OFF), usual))
        for case in NAMES
        for mode in MODES
        if (run := known.get((case, mode)))
    ]


def measured(run: Run, off: Run | None) -> Measured:
    """Return what a run shows beside the same one without hints."""
    load = loads(run)
    asked = sum(one.count for one in run.asked)
    situation = BY_NAME[run.case]
    wanted = None
    if situation.event is None:
        shares = {one.zone: one.count / asked for one in run.asked}
        wanted = {pod: share * len(load) for pod, share in expected(shares, run.used).items()}
        wanted = {pod: round(wanted.get(pod, 0.0), 6) for pod in load}
    each = _between(run) / asked
    return Measured(
        case=run.case,
        mode=run.mode,
        seconds=run.seconds,
        requests=asked,
        lost=sum(sum(one.lost.values()) for one in run.asked),
        took=run.took,
        by_zone={one.zone: one.took for one in run.asked},
        hinted=run.hinted,
        why_not=run.why_not,
        between_bytes=_between(run),
        of_off=None if off is None else round(each / (_between(off) / _count(off)), 6),
        known_s=max([run.known_s, *(one.known_s for one in run.changes)]),
        even=asked / len(load),
        expected=wanted,
        load={pod: round(share, 6) for pod, share in load.items()},
        likely=None if wanted is None else likely(run),
        autoscaled=None if wanted is None else autoscaled(run),
        changes=len(run.changes),
        out_s=run.out_s,
        invalid=faults(run),
    )


def loads(run: Run) -> dict[str, float]:
    """Return the load of each endpoint that is ready, as a share of an even one."""
    ready = [pod for pod in run.asked[0].answered if pod not in BY_NAME[run.case].told.unready]
    even = sum(one.count for one in run.asked) / len(ready)
    return {pod: sum(one.answered[pod] for one in run.asked) / even for pod in ready}


def likely(run: Run) -> float | None:
    """Return how likely counts are that are at least as far from what is expected (Pearson's chi-squared).

    What each zone asks is known, and who gets it is not: it has a degree of freedom for each endpoint that it
    uses but one. None where there is no choice.
    """
    from scipy.special import chdtrc

    distance, freedom = 0.0, 0
    for one in run.asked:
        used = run.used[one.zone]
        each = sum(one.answered.values()) / len(used)
        distance += math.fsum((one.answered[pod] - each) ** 2 / each for pod in used)
        freedom += len(used) - 1
    return round(float(chdtrc(freedom, distance)), 6) if freedom else None


def autoscaled(run: Run) -> Autoscaled:
    """Return what an autoscaler wants whose target is an even load, and what it would take in each zone.

    It goes by the mean of all endpoints, of which none can do more than ``MOST_LOAD``: what is asked beyond
    waits, and no autoscaler sees it.
    """
    load = loads(run)
    even = sum(one.count for one in run.asked) / len(load)
    used = {one.zone: run.used[one.zone] for one in run.asked}
    return Autoscaled(
        wanted=replicas([min(one, MOST_LOAD) for one in load.values()]),
        needed={one.zone: math.ceil(one.count / even - 1e-9) for one in run.asked},
        there={zone: len(pods) for zone, pods in used.items()},
    )


def replicas(load: list[float]) -> int:
    """Return how many endpoints a HorizontalPodAutoscaler wants, of these with such shares of its target.

    desired = ceil(current x mean / target), and the current ones within the tolerance (Kubernetes' docs,
    "Horizontal Pod Autoscaling", algorithm details).
    """
    ratio = math.fsum(load) / len(load)
    return len(load) if abs(ratio - 1) <= TOLERANCE else max(1, math.ceil(len(load) * ratio - 1e-9))


def faults(run: Run) -> list[str]:
    """Return, in words, why the machine was not as it should be: the delays, or the generator, were late."""
    return [*_late_delays(run), *_late_generators(run)]


def _late_delays(run: Run) -> Iterator[str]:
    for one in run.delayed or []:
        if one.dropped:
            yield f"the {one.means} {direction(one)} lost {one.dropped} packets itself"
        told = supported(PUNCTUAL, one.frames or 0)
        late = lateness(one, told)
        if late is not None and late > _LATEST_S and (one.frames or 0) >= FEWEST_FRAMES:
            by = f"by up to {late * 1000:.1f} ms with {told * 100:.0f} % of its frames"
            yield f"the {one.means} {direction(one)} was late: {by}"


def _late_generators(run: Run) -> Iterator[str]:
    for one in run.asked:
        if late := too_late(Late(one.late_p99_s, one.late_s), one.took):
            yield f"the generator of {one.zone} was {late * 1000:.1f} ms late"


def _between(run: Run) -> int:
    return sum(one.out_bytes for one in run.trunks)


def _count(run: Run) -> int:
    return sum(one.count for one in run.asked)


def fall_in_round_trips(off: Measured, on: Measured) -> float | None:
    """Return by how many round trips between zones the median is shorter; None if either is not known."""
    if off.took.p50_s is None or on.took.p50_s is None:
        return None
    return (off.took.p50_s - on.took.p50_s) / ROUND_TRIP_S
