"""Does a promise survive hostile neighbours, small packets, and pods that come and go?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from bench.studies.promise import protection
from bench.studies.promise.attacks import SAMPLE
from bench.studies.promise.check import (
    MEASURED,
    Check,
    Evidence,
    Found,
    Judgement,
    Number,
    Short,
    kept,
    register,
    together,
)
from bench.studies.promise.checks import measured
from bench.studies.promise.records import Round, Rounds
from testbed.scenario.units import format_share

# Of the floor: in the mean; and of the windows of 100 ms, so many have nine tenths of it.
LEAST, ATTAINED = 0.95, 0.9
FEWEST_FRAMES = 1000  # a second: of a machine that is busy with other things an attack is none


def _endured(evidence: Evidence) -> Judgement:
    """Return whether the promised flow had its floor in every round."""
    rounds = kept(evidence, Rounds).rounds
    judged = [_one(one) for one in rounds]
    numbers = [number for *_, number in judged]
    short = [
        each
        for count, (found, *_) in enumerate(judged)
        if found == "violated"
        for each in _short(rounds[count], count)
    ]
    whole = together([(found, f"{number.name}: {words}") for found, words, number in judged], numbers, short)
    if whole.found != "held":
        return whole
    lowest = min(numbers, key=lambda number: number.value)
    return replace(whole, words=f"{format_share(lowest.value)} of the floor at least, {lowest.name}")


def _short(one: Round, count: int) -> list[Short]:
    """Return the windows in which a round's flow had too little."""
    return [
        Short(MEASURED, one.label, count, begin, begin + protection.STEP_S)
        for begin, share in _windows(one)
        if share < protection.SHARE
    ]


def _windows(one: Round) -> list[tuple[float, float]]:
    """Return when each window began, and its share of the floor."""
    shares = protection.shares(one.points, one.floor_bps, one.since_s, one.until_s)
    return [(one.since_s + count * protection.STEP_S, share) for count, share in enumerate(shares)]


def _one(one: Round) -> tuple[Found, str, Number]:
    """Return what a round amounts to."""
    windows = _windows(one)
    mean, attained = _mean(windows), _attained(windows)
    number = Number(one.name, round(mean, 4), "share", LEAST)
    words = f"{format_share(mean)} of the floor; {format_share(attained)} of 100 ms had nine tenths of it"
    if one.faults:
        return "violated", f"{words}; {one.faults[0]}", number
    if one.sent is not None and one.sent < FEWEST_FRAMES * (one.until_s - one.since_s):
        return "invalid", f"{words}; only {one.sent} frames were sent against it", number
    if mean >= LEAST and attained >= ATTAINED:
        return "held", words, number
    if _doubtful(one, windows):
        return "invalid", f"{words}; the machine was the limit in those that fell short", number
    if one.lost:
        return "invalid", f"{words}; the machine itself dropped {one.lost} packets meanwhile", number
    return "violated", words, number


def _doubtful(one: Round, windows: Sequence[tuple[float, float]]) -> bool:
    """Tell whether the windows in which nothing is in doubt would do."""
    excuses = [*protection.excuses(one), *protection.room(one)]
    sound = [
        (begin, share)
        for begin, share in windows
        if not any(start < begin + protection.STEP_S and begin < end for start, end in excuses)
    ]
    return not sound or (_mean(sound) >= LEAST and _attained(sound) >= ATTAINED)


def _mean(windows: Sequence[tuple[float, float]]) -> float:
    # What is less than headers, as ARP is, counts for less than nothing.
    return max(0.0, sum(share for _, share in windows) / len(windows))


def _attained(windows: Sequence[tuple[float, float]]) -> float:
    return sum(share >= protection.SHARE for _, share in windows) / len(windows)


_FLOOR = (
    "a flow that was promised 0.4 of a full link has at least 0.95 of its floor, and nine tenths of it in "
    "90 % of all 100 ms"
)

_check = partial(Check, rule=_endured, profile="robust")

register(
    _check(
        "some-attacks",
        "Does a promise survive some of what a neighbour with CAP_NET_RAW may send as fast as it can?",
        f"{SAMPLE} attacks at most, each day others of them; 2 s of each are judged: {_FLOOR}; and "
        "all is as it was configured. --check attacks tries all",
        make=measured.some_attacks,
        seconds=42,
        lack=measured.lacks_consent,
        attacks=True,
    ),
    _check(
        "attacks",
        "Does a promise survive whatever a neighbour with CAP_NET_RAW sends as fast as it can?",
        f"one attack after another, 2 s of each are judged: {_FLOOR}; and all is as it was configured",
        make=measured.attacks,
        seconds=75,
        lack=measured.lacks_consent,
        attacks=True,
        on_request=True,
    ),
    _check(
        "without-gso",
        "Does a promise survive packets that nobody joins?",
        f"segmentation offload is off in all pods that send: {_FLOOR}",
        make=measured.without_gso,
        seconds=8,
        lack=measured.lacks_own_pods,
    ),
    _check(
        "churn",
        "Does a promise survive pods that come and go all the time?",
        f"three promised pods are ended and started again by turns: {_FLOOR}; and all is as it was "
        "configured",
        make=measured.churn,
        seconds=10,
        lack=measured.lacks_own_pods,
        threads=("projectcalico/calico/issues/8187",),
    ),
)
