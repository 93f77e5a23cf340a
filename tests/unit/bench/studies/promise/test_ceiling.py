"""What the checks of ceilings make of runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from bench.recording import atomic
from bench.recording.records import StudyRequest
from bench.studies.promise.check import Check, Evidence, Ground, Judgement, all_checks, register
from bench.studies.promise.checks import ceiling
from bench.studies.promise.records import Round, Rounds
from tests.unit.bench.studies.promise.known import flow, ran, received

EXPECTED = {"1M": 0.955e6, "100M": 95.5e6, "1G": 955e6}
PROMISED = {"1M": 1e6, "100M": 100e6, "1G": 1e9}


def check(name: str) -> Check:
    return next(one for one in all_checks() if one.name == name)


def ground(link: float = 4e9) -> Ground:
    return Ground(StudyRequest(study="promise"), "node", int(link))


def judged(
    name: str, means: Mapping[str, float] | None = None, first: Mapping[str, float] | None = None
) -> Judgement:
    """Return what a check finds of flows with these means, and these rates in their first second."""
    got, begun = {**EXPECTED, **(means or {})}, {**EXPECTED, **(first or {})}
    flows = [flow(label, rate, PROMISED[label], rate, got[label]) for label, rate in EXPECTED.items()]
    samples = pd.concat([received(label, [begun[label]] * 10 + [EXPECTED[label]] * 20) for label in begun])
    run = ran(flows, samples=samples)
    return check(name).judge(Evidence({"rates": run}))


@pytest.mark.parametrize(
    ("name", "label"), [("rate-100m", "100M"), ("rate-1g", "1G"), ("second-pod", "100M")]
)
def test_a_rate_is_found_broken_below_and_above(name: str, label: str) -> None:
    assert judged(name).found == "held"
    for share in (0.0, 0.85, 1.1, 40.0):
        assert judged(name, {label: share * EXPECTED[label]}).found == "violated"


def test_a_slow_rate_has_a_run_of_its_own() -> None:
    for share, found in ((0.85, "violated"), (1.0, "held"), (1.1, "violated")):
        run = ran([flow("1M", 955e3, 1e6, share * 955e3)])
        assert check("rate-1m").judge(Evidence({"slow": run})).found == found


def test_a_neighbours_rate_is_found_whoever_has_it() -> None:
    assert judged("own-rate", {"1M": 1.3e6}).found == "held"
    assert judged("own-rate", {"1M": 95.5e6}).found == "violated"
    assert judged("own-rate", {"1G": 0.955e6}).found == "violated"


@pytest.mark.parametrize(
    ("label", "rate", "found"),
    [
        # 1.05 of what is expected, 84 ms of the rate, and a packet of 64 KiB.
        ("100M", 1.05 * 95.5e6 + 8.4e6 + 0.52e6, "held"),
        ("100M", 1.05 * 95.5e6 + 8.4e6 + 0.53e6, "violated"),
        ("1G", 1.05 * 955e6 + 83.8e6, "held"),
        ("1G", 1.2e9, "violated"),
        ("1M", 1.05 * 0.955e6 + 0.084e6 + 0.52e6, "held"),
        ("1M", 1.7e6, "violated"),
        ("100M", 3.3e9, "violated"),
    ],
)
def test_the_first_second_may_have_its_burst_and_no_more(label: str, rate: float, found: str) -> None:
    judgement = judged("first-second", first={label: rate})
    assert judgement.found == found
    assert len(judgement.numbers) == 3
    if found == "violated":
        assert judgement.words.startswith(f"{label}: ")


def test_a_unit_is_named_by_what_arrives() -> None:
    assert "bits, by powers of 1000" in judged("units").words
    assert "bits, by powers of 1024" in judged("units", {"1G": 1.0737 * 955e6}).words
    assert "bytes" in judged("units", {"1G": 8 * 955e6}).words
    assert "no unit" in judged("units", {"1G": 3 * 955e6}).words
    assert judged("units", {"1G": 1.0737 * 955e6}).found == "violated"


def test_on_a_slow_link_the_fast_pod_gets_a_quarter_and_its_check_says_so() -> None:
    (run,) = check("rate-100m").runs(ground(1e9)).values()
    assert run.settings == ("pods.fast.guarantee=250M", "pods.fast.ceiling=250M")
    assert check("rate-1g").lack(ground(1e9)) == "the links carry 1 Gbit/s, and this needs 2.2 Gbit/s"
    assert check("rate-1g").lack(ground()) is None
    assert check("rate-1g").lack(ground(2.2e9)) is None
    assert [run.settings for run in check("rate-1g").runs(ground(2.2e9)).values()] == [()]


def test_most_of_the_link_is_four_fifths_of_whatever_it_is() -> None:
    (run,) = check("rate-link").runs(ground(2e9)).values()
    assert run.settings == ("pods.most.guarantee=1600M", "pods.most.ceiling=1600M")


def test_bursts_are_those_of_the_paper() -> None:
    assert ceiling.said_burst(1e5) == 40_000
    assert ceiling.said_burst(1e8) == 8.4e6
    assert ceiling.said_burst(1e10) == 8 * 10 * 2**20


def test_every_check_names_itself_its_threads_and_how_it_is_measured() -> None:
    checks = all_checks()
    assert len({one.name for one in checks}) == len(checks)
    for one in checks:
        assert one.asks.endswith("?")
        assert one.measured
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+/issues/\d+", thread) for thread in one.threads)
    with pytest.raises(ValueError, match="there is a check 'udp' already"):
        register(check("udp"))


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ((1.0, 1.0, 1.0), "held"),
        ((1.0, 1.1, 1.0), "violated"),
        ((1.0, 1.0, 0.8), "violated"),
        ((1.0, 1.0, 4.0), "violated"),
    ],
)
def test_a_limit_is_kept_through_a_restart_if_it_is_before_and_after_it(
    shares: tuple[float, ...], found: str, tmp_path: Path
) -> None:
    rounds = [
        Round(
            name=f"round {number}",
            floor_bps=1e6,
            points=[(0.0, 0.0), (10.0, share * 1e7)],
            since_s=1.0,
            until_s=9.0,
            stalls=[],
            saturated=[],
        )
        for number, share in enumerate(shares)
    ]
    file = tmp_path / "after-restart.json"
    atomic.write_model(file, Rounds(rounds=rounds))
    judged = check("after-restart").judge(Evidence({}, file))
    assert judged.found == found
    assert len(judged.short) == (found == "violated")


def test_what_went_wrong_meanwhile_breaks_a_limit_that_was_kept(tmp_path: Path) -> None:
    whole = Round(
        name="again",
        floor_bps=1e6,
        points=[(0.0, 0.0), (10.0, 1e7)],
        since_s=1.0,
        until_s=9.0,
        stalls=[],
        saturated=[],
        faults=["the agent did not come back"],
    )
    file = tmp_path / "after-restart.json"
    atomic.write_model(file, Rounds(rounds=[whole]))
    judged = check("after-restart").judge(Evidence({}, file))
    assert (judged.found, judged.words.endswith("; the agent did not come back")) == ("violated", True)
    assert judged.short == []  # nobody took what it had


def test_where_nothing_runs_on_nothing_is_restarted() -> None:
    assert check("after-restart").lack(Ground(StudyRequest(study="promise"), "node", 10**9)) is not None
    agents = Ground(StudyRequest(study="promise"), "node", 10**9, agents=True)
    assert check("after-restart").lack(agents) is None
