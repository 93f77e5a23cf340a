"""How long requests took, in which phase, and what counts as lost."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from bench.analysis import exchanges, latency, statistics, summary, verdict
from bench.analysis.latency import Latency
from bench.analysis.verdict import judge
from bench.recording.records import Repetition, RunRecord, Stall
from testbed.scenario import Scenario
from tests.unit.bench.builders import exchanges as made
from tests.unit.bench.builders import record, repetition, scenario

FAST = 0.0002


def asking(**fields: object) -> Scenario:
    """Ten seconds of requests, 100 a second, and a disturbance from 3 s to 6 s."""
    requests = {"name": "ask", "from": "B", "to": "C", "rate": 100, **fields}
    return scenario(flows=[], requests=[requests])


def observed(of: Scenario, took: object = None, late: object = None) -> dict[str, Latency]:
    table = made(of, took or (lambda _name, _due: FAST), late or (lambda _due: 0.0))  # type: ignore[arg-type]
    return {one.phase: one for one in latency.observe(table, of, record(of))}


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50), (0.9, 90), (0.99, 99), (0.999, 100), (1, 100), (0.001, 1)]
)
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(share: float, value: int) -> None:
    assert statistics.percentile([*range(100, 0, -1)], share) == value


def test_a_percentile_may_be_among_the_lost() -> None:
    values = [0.1] * 98 + [math.inf] * 2
    assert statistics.percentile(values, 0.98) == 0.1
    assert statistics.percentile(values, 0.99) == math.inf
    with pytest.raises(ValueError, match="needs values"):
        statistics.percentile([], 0.5)


def test_an_exchange_counts_in_the_phase_in_which_it_was_due() -> None:
    phases = observed(asking())
    assert list(phases) == ["quiet", "disturbed"]
    # 10 s, less 0.5 s at the beginning, 3 s of disturbance, and 0.5 s after it.
    assert [one.overall and one.overall.exchanges for one in phases.values()] == [600, 300]


def test_one_that_waits_into_a_disturbance_was_disturbed() -> None:
    of = asking()
    table = made(of, lambda _name, due: 0.2 if due > 2.9 else FAST)
    assert set(table[(table["due_s"] > 2.81) & (table["due_s"] < 2.9)]["phase"]) == {"quiet"}
    assert set(table[(table["due_s"] > 2.91) & (table["due_s"] < 6.0)]["phase"]) == {"disturbed"}
    assert set(table[(table["due_s"] >= 6.0) & (table["due_s"] < 6.5)]["phase"]) == {"warm-up"}


def test_percentiles_of_a_known_distribution() -> None:
    quiet = observed(asking(), lambda _name, due: round(due * 100) / 1000)["quiet"].overall
    assert quiet is not None
    # What was due from 0.5 s on took 50 ms and more; what was due from 2.73 s on waited into the disturbance;
    # what was due from 6.5 to 10 s took 650 to 999 ms.
    ordered = [*range(50, 273), *range(650, 1000)]
    assert quiet.exchanges == len(ordered)
    for name, share in {"p50_s": 0.5, "p90_s": 0.9, "p99_s": 0.99, "p999_s": 0.999}.items():
        assert getattr(quiet, name) == ordered[math.ceil(share * len(ordered)) - 1] / 1000
    assert quiet.max_s == pytest.approx(0.999)
    assert quiet.lost == 0


def test_the_lost_are_counted_and_longer_than_all() -> None:
    took = observed(asking(), lambda _name, due: None if round(due * 100) % 50 == 0 else FAST)
    for one in took.values():
        assert one.overall is not None
        assert one.overall.lost == one.overall.exchanges // 50
        assert one.overall.p90_s == pytest.approx(FAST)
        assert one.overall.p99_s is None
        assert one.overall.max_s == pytest.approx(FAST)


def test_a_stop_of_600_ms_is_as_many_latencies_as_were_due_in_it() -> None:
    took = observed(asking(), lambda _name, due: max(FAST, 8.6 - due) if 8 <= due < 8.6 else FAST)
    quiet = took["quiet"].overall
    assert quiet is not None
    assert quiet.max_s == pytest.approx(0.6)
    # 60 of 600, evenly from 0 to 600 ms: a client that waits for its answer would have seen one.
    assert quiet.p90_s == pytest.approx(FAST)
    assert quiet.p99_s == pytest.approx(0.54)


def test_lateness_is_the_generators_own() -> None:
    quiet = observed(asking(), late=lambda due: 0.0001 if due < 9.9 else 0.004)["quiet"].overall
    assert quiet is not None
    assert quiet.lateness_p99_s == pytest.approx(0.004)
    assert quiet.lateness_max_s == pytest.approx(0.004)


@pytest.mark.parametrize(
    ("rate", "late", "invalid"),
    [
        (100, 0.0006, False),
        (100, 0.0007, True),
        (101, 0.0006, True),
        (1000, 0.0003, False),
        (1001, 0.0003, True),
        (1000, 0.00031, True),
        (5000, 0.0001, False),  # a tenth of a millisecond,
        (5000, 0.00011, True),
    ],
)
def test_a_generator_that_was_late_itself_proves_nothing(rate: float, late: float, invalid: bool) -> None:
    took = observed(asking(rate=rate), lambda _name, _due: 0.001, lambda _due: late)
    found = [cause for one in took.values() for cause in verdict.of_requests(one)]
    assert [cause.kind for cause in found] == (["machine"] * 2 if invalid else [])
    if invalid:
        assert "the generator itself was up to" in found[0].text
        assert found[0].required == pytest.approx(0.0001)


@pytest.mark.parametrize(
    ("fields", "took", "words"),
    [
        ({"latency": 0.01}, 0.0101, "99 % took up to 10.1 ms (at most 10 ms for 99 %)"),
        ({"latency": 0.01}, None, "over 1 % were lost (at most 10 ms for 99 %)"),
        ({"lost": 0.4}, None, "300 of 300 were lost, which is 100 % (at most 40 %)"),
        (
            {"latency": 0.01, "lost": 0},
            None,
            "over 1 % were lost (at most 10 ms for 99 %) and 300 of 300 were lost, which is 100 % "
            "(at most 0 %)",
        ),
    ],
)
def test_a_threshold_that_is_missed_is_a_broken_promise(
    fields: dict[str, float], took: float | None, words: str
) -> None:
    of = asking(**fields)
    table = made(of, lambda _name, due: took if 3 <= due < 6 else FAST)
    found = latency.observe(table, of, record(of))
    (cause,) = [cause for one in found for cause in verdict.of_requests(one)]
    assert (cause.kind, cause.flow, cause.phase, cause.repetition) == ("promise", "ask", "disturbed", 0)
    assert cause.text == f"ask, disturbed: {words}"
    assert judge(of, record(of), [], [], found).outcome == "violated"
    told = summary.requests_of(of, found, {})[0].phases
    assert [(name, phase.met) for name, phase in told.items()] == [("quiet", True), ("disturbed", False)]


def test_thresholds_that_are_met_hold() -> None:
    of = asking(latency=0.01, lost=0.01)
    found = latency.observe(made(of, lambda _name, _due: 0.01), of, record(of))
    assert judge(of, record(of), [], [], found).outcome == "held"


def test_without_thresholds_nothing_is_judged() -> None:
    of = asking()
    found = latency.observe(made(of, lambda _name, _due: 3.0), of, record(of))
    judged = judge(of, record(of), [], [], found)
    assert judged.outcome == "invalid"
    assert judged.reasons == [
        "no flow has a guarantee, and no requests a threshold, so there is nothing to hold"
    ]
    assert summary.requests_of(of, found, {})[0].phases["quiet"].met is None


def with_repetition(of: Scenario, **fields: object) -> RunRecord:
    done: Repetition = repetition(of).model_copy(update=fields)
    return record(of, repetitions=[done])


def test_a_miss_on_saturated_processors_may_be_the_machines() -> None:
    of = asking(latency=0.01)
    busy = record(of, repetitions=[repetition(of, busy=0.98)])
    found = latency.observe(made(of, lambda _name, _due: 0.02), of, busy)
    judged = judge(of, busy, [], [], found)
    assert judged.outcome == "invalid"
    assert {cause.kind for cause in judged.causes} == {"machine"}
    assert "the processors were 98 % busy, so it may be the machine" in judged.reasons[0]


def test_a_miss_only_while_the_machine_stood_still_is_the_machines() -> None:
    of = asking(latency=0.01)

    def stood(_name: str, due: float) -> float:
        return 8.1 - due if 8.0 <= due < 8.1 else FAST

    still = with_repetition(of, stalls=[Stall(start_s=8.0, end_s=8.1)])
    found = latency.observe(made(of, stood), of, still)
    assert judge(of, still, [], [], found).outcome == "invalid"
    # The same without a stall is a broken promise.
    found = latency.observe(made(of, stood), of, record(of))
    assert judge(of, record(of), [], [], found).outcome == "violated"


@pytest.mark.parametrize(("sound", "machine"), [(20, False), (19, True), (0, True)])
def test_a_miss_of_which_hardly_an_exchange_is_beyond_doubt_may_be_the_machines(
    sound: int, machine: bool
) -> None:
    """A fifth of a hundred is enough, and those missed it, too."""
    slow = latency.Took(
        exchanges=sound,
        lost=0,
        p50_s=0.02,
        p90_s=0.02,
        p99_s=0.02,
        p999_s=0.02,
        max_s=0.02,
        lateness_p99_s=0.0,
        lateness_max_s=0.0,
        round_trip_s=None,
        cpu_busy=None,
    )
    took = slow.model_copy(
        update={"exchanges": 100, "doubtful": 100 - sound, "sound": slow if sound else None}
    )
    of = asking(latency=0.01)
    (cause,) = verdict.of_requests(latency.Latency(of.requests[0], "quiet", took, {0: took}))
    assert cause.kind == ("machine" if machine else "promise")


def test_a_miss_by_a_late_generator_is_the_machines() -> None:
    of = asking(latency=0.001)
    found = latency.observe(made(of, lambda _name, _due: 0.0012, lambda _due: 0.0005), of, record(of))
    judged = judge(of, record(of), [], [], found)
    assert judged.outcome == "invalid"
    assert "the generator itself was up to 0.5 ms late, so it may be the machine" in judged.reasons[0]


def test_requests_that_are_missing_make_the_run_invalid() -> None:
    of = asking(latency=1)
    nothing = made(of, lambda _name, _due: FAST).iloc[:0]
    found = latency.observe(nothing, of, record(of))
    judged = judge(of, record(of), [], [], found)
    assert judged.outcome == "invalid"
    assert judged.reasons[0] == "ask, quiet: 0 exchanges are too few to tell (at least 3)"


def _took(seconds: float, _name: str, _due: float) -> float:
    return seconds


def test_percentiles_have_an_interval_over_five_repetitions() -> None:
    of = asking().model_copy(update={"measurement": scenario(measurement={"repetitions": 5}).measurement})
    milliseconds = [1, 2, 3, 4, 5]
    tables = [made(of, partial(_took, number / 1000), number=number - 1) for number in milliseconds]
    found = latency.observe(exchanges.joined(tables), of, record(of))
    told = summary.requests_of(of, found, {})[0].phases["quiet"]
    assert len(told.repetitions) == 5
    assert told.p99_interval_s is not None
    # Student's: 3 +- 2.776 * 1.581 / sqrt(5) milliseconds.
    assert told.p99_interval_s.low == pytest.approx(0.001037, abs=1e-6)
    assert told.p99_interval_s.high == pytest.approx(0.004963, abs=1e-6)
    found = latency.observe(exchanges.joined(tables[:4]), of, record(of))
    assert summary.requests_of(of, found, {})[0].phases["quiet"].p99_interval_s is None


def test_late_answers_count_as_lost() -> None:
    table = made(asking(), lambda _name, _due: 6.0)
    assert np.isinf(exchanges.latencies(table.assign(status="late"))).all()
