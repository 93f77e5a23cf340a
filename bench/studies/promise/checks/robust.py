"""Does a promise survive hostile neighbours, small packets, and pods that come and go?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.studies.promise import protection
from bench.studies.promise.attacks import SAMPLE
from bench.studies.promise.check import (
    MEASURED,
    About,
    Evidence,
    Found,
    Judgement,
    Number,
    Short,
    kept,
    register,
)
from bench.studies.promise.checks import measured
from bench.studies.promise.checks.goodput import worst
from bench.studies.promise.checks.measured import Measured
from bench.studies.promise.records import Round, Rounds
from testbed.scenario.units import format_share

# Of the floor: in the mean; and of the windows of 100 ms, so many have nine tenths of it.
LEAST, ATTAINED = 0.95, 0.9
FEWEST_FRAMES = 1000  # a second: of a machine that is busy with other things an attack is none


def endured(evidence: Evidence) -> Judgement:
    """Return whether the promised flow had its floor in every round."""
    rounds = kept(evidence, Rounds).rounds
    judged = [_one(one) for one in rounds]
    state = worst([found for found, _, _ in judged])
    told = [f"{number.name}: {words}" for found, words, number in judged if found == state]
    numbers = [number for *_, number in judged]
    if state == "held":
        lowest = min(numbers, key=lambda number: number.value)
        told = [f"{format_share(lowest.value)} of the floor at least, {lowest.name}"]
    broken = [number for number, (found, *_) in enumerate(judged) if found == "violated"]
    short = [each for number in broken for each in _short(rounds[number], number)]
    return Judgement(state, "; ".join(told), numbers, short)


def _short(one: Round, number: int) -> list[Short]:
    """Return the windows in which a round's flow had too little."""
    shares = protection.shares(one.points, one.floor_bps, one.since_s, one.until_s)
    return [
        Short(MEASURED, one.label, number, begin, begin + protection.STEP_S)
        for begin, share in _windows(one, shares)
        if share < protection.SHARE
    ]


def _windows(one: Round, shares: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield when each window began, and its share."""
    for count, share in enumerate(shares):
        yield one.since_s + count * protection.STEP_S, share


def _one(one: Round) -> tuple[Found, str, Number]:
    """Return what a round amounts to."""
    shares = protection.shares(one.points, one.floor_bps, one.since_s, one.until_s)
    mean, attained = _mean(shares), _attained(shares)
    number = Number(one.name, round(mean, 4), "share", LEAST)
    words = f"{format_share(mean)} of the floor; {format_share(attained)} of 100 ms had nine tenths of it"
    if one.faults:
        return "violated", f"{words}; {one.faults[0]}", number
    if one.sent is not None and one.sent < FEWEST_FRAMES * (one.until_s - one.since_s):
        return "invalid", f"{words}; only {one.sent} frames were sent against it", number
    if mean >= LEAST and attained >= ATTAINED:
        return "held", words, number
    if _doubtful(one, shares):
        return "invalid", f"{words}; the machine was the limit in those that fell short", number
    if one.lost:
        return "invalid", f"{words}; the machine itself dropped {one.lost} packets meanwhile", number
    return "violated", words, number


def _doubtful(one: Round, shares: Sequence[float]) -> bool:
    """Tell whether the windows in which nothing is in doubt would do."""
    excuses = [*protection.excuses(one), *protection.room(one)]
    sound = [
        share
        for begin, share in _windows(one, shares)
        if not any(start < begin + protection.STEP_S and begin < end for start, end in excuses)
    ]
    return not sound or (_mean(sound) >= LEAST and _attained(sound) >= ATTAINED)


def _mean(shares: Sequence[float]) -> float:
    # What is less than headers, as ARP is, counts for less than nothing.
    return max(0.0, sum(shares) / len(shares))


def _attained(shares: Sequence[float]) -> float:
    return sum(share >= protection.SHARE for share in shares) / len(shares)


def _about(name: str, asks: str, measured: str, *threads: str) -> About:
    return About(
        name, "robust", asks, measured, "floor", tuple(f"https://github.com/{one}" for one in threads)
    )


_FLOOR = (
    "a flow that was promised 0.4 of a full link has at least 0.95 of its floor, and nine tenths of it in "
    "90 % of all 100 ms"
)

for _check in (
    Measured(
        _about(
            "some-attacks",
            "Does a promise survive some of what a neighbour with CAP_NET_RAW may send as fast as it can?",
            f"{SAMPLE} attacks at most, each day others of them; 2 s of each are judged: {_FLOOR}; and "
            "all is as it was configured. --check attacks tries all",
        ),
        measured.some_attacks,
        endured,
        seconds=42,
        attacks=True,
    ),
    Measured(
        _about(
            "attacks",
            "Does a promise survive whatever a neighbour with CAP_NET_RAW sends as fast as it can?",
            f"one attack after another, 2 s of each are judged: {_FLOOR}; and all is as it was configured",
        ),
        measured.attacks,
        endured,
        seconds=75,
        attacks=True,
        on_request=True,
    ),
    Measured(
        _about(
            "without-gso",
            "Does a promise survive packets that nobody joins?",
            f"segmentation offload is off in all pods that send: {_FLOOR}",
        ),
        measured.without_gso,
        endured,
        seconds=8,
    ),
    Measured(
        _about(
            "churn",
            "Does a promise survive pods that come and go all the time?",
            f"three promised pods are ended and started again by turns: {_FLOOR}; and all is as it was "
            "configured",
            "projectcalico/calico/issues/8187",
        ),
        measured.churn,
        endured,
        seconds=10,
    ),
):
    register(_check)
