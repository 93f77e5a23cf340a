from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.analysis.flow_phases import FlowPhase, Measured
from bench.analysis.verdict import Verdict, judge, met, missed
from bench.observations.causes import Cause
from bench.recording.records import Calibration, Delayed, Fault, RunRecord, Stall
from testbed.scenario import Scenario
from tests.unit.bench.builders import record, scenario

EXPECTED = 1e8


def measured(
    share: float = 1.0, attainment: float = 1.0, busy: float | None = 0.5, samples: int = 50
) -> Measured:
    return Measured(
        samples=samples,
        mean_bps=share * EXPECTED,
        p01_bps=share * EXPECTED,
        attainment=attainment,
        cpu_busy=busy,
    )


def observation(*repetitions: Measured | None, flow: str = "A -> C", phase: Any = "disturbed") -> FlowPhase:
    whole = next((each for each in repetitions if each), None)
    return FlowPhase(flow, "guaranteed", phase, EXPECTED, whole, dict(enumerate(repetitions)))


def verdict(
    *observations: FlowPhase,
    of: Scenario | None = None,
    made: RunRecord | None = None,
    faults: list[Cause] | None = None,
) -> Verdict:
    of = of or scenario()
    return judge(of, made or record(of), observations, faults or [])


QUIET = observation(measured(), phase="quiet")


def test_held_needs_no_reasons() -> None:
    assert verdict(QUIET, observation(measured())) == Verdict("held", [], [])


@pytest.mark.parametrize(
    ("share", "attainment", "outcome"),
    [
        (0.99, 0.95, "held"),
        (1.2, 1.0, "held"),
        (0.9899, 1.0, "violated"),
        (1.0, 0.9499, "violated"),
        (0.6, 0.0, "violated"),
        (0.0, 0.0, "violated"),
    ],
)
def test_both_thresholds_count(share: float, attainment: float, outcome: str) -> None:
    assert verdict(QUIET, observation(measured(share, attainment))).outcome == outcome


def test_a_violation_is_explained_in_numbers() -> None:
    assert verdict(QUIET, observation(measured(0.75, 0.5))).reasons == [
        "A -> C, disturbed: the mean of 75 Mbit/s is 75 % of the expected 100 Mbit/s (at least 99 %) "
        "and 50 % of 50 samples reached 90 Mbit/s (at least 95 %)"
    ]


def test_attainment_alone_violates() -> None:
    assert verdict(QUIET, observation(measured(1.0, 0.9))).reasons == [
        "A -> C, disturbed: 90 % of 50 samples reached 90 Mbit/s (at least 95 %)"
    ]


@pytest.mark.parametrize(
    ("share", "attainment", "interval", "outcome"),
    [
        (1.0, 0.9, 0.1, "invalid"),  # 125 kB a sample
        (1.0, 0.9, 0.2, "violated"),
        (0.98, 0.9, 0.1, "violated"),  # the mean needs no samples
        (1.0, 1.0, 0.1, "held"),
    ],
)
def test_samples_of_few_bytes_break_no_promise(
    share: float, attainment: float, interval: float, outcome: str
) -> None:
    of = scenario(measurement={"interval": interval})
    low = replace(observation(measured(share / 10, attainment)), expected_bps=EXPECTED / 10)
    found = verdict(QUIET, low, of=of)
    assert found.outcome == outcome
    if outcome == "invalid":
        assert kinds(found) == ["measurement"]
        assert "a sample of 100 ms holds 125 kB, too few to tell: at least 205" in found.reasons[0]


def test_a_quiet_violation_counts_as_well() -> None:
    found = verdict(observation(measured(0.5), phase="quiet"), observation(measured()))
    assert found.outcome == "violated"
    assert found.reasons[0].startswith("A -> C, quiet: ")


def test_one_repetition_violates_whatever_the_others_got() -> None:
    of = scenario(measurement={"repetitions": 3})
    found = verdict(observation(measured(1.05), measured(0.97), measured(1.05)), of=of)
    assert found.outcome == "violated"
    assert len(found.reasons) == 1
    assert "A -> C, disturbed, repetition-1: the mean of 97 Mbit/s" in found.reasons[0]


def test_thresholds_are_the_scenarios() -> None:
    of = scenario(thresholds={"mean": 0.5, "attainment": 0.1})
    assert verdict(QUIET, observation(measured(0.6, 0.2)), of=of).outcome == "held"


@pytest.mark.parametrize(
    ("share", "busy", "outcome"),
    [(0.7, 0.98, "invalid"), (0.7, 0.96, "violated"), (0.7, None, "violated"), (1.0, 0.99, "held")],
)
def test_a_miss_on_a_saturated_machine_proves_nothing(share: float, busy: float | None, outcome: str) -> None:
    found = verdict(QUIET, observation(measured(share, busy=busy)))
    assert found.outcome == outcome


@pytest.mark.parametrize(("rest", "outcome"), [(1.0, "invalid"), (0.98, "violated"), (None, "violated")])
def test_a_miss_only_while_the_machine_stood_still_proves_nothing(rest: float | None, outcome: str) -> None:
    sound = None if rest is None else measured(rest)
    missed = measured(0.98).model_copy(update={"doubtful": int(sound is not None), "sound": sound})
    found = verdict(QUIET, observation(missed))
    assert found.outcome == outcome
    assert ("the machine stood still" in found.reasons[0]) == (outcome == "invalid")


@pytest.mark.parametrize(
    ("rest", "outcome"),
    [(measured(1.0, 0.9), "violated"), (measured(0.98, 1.0), "invalid"), (measured(0.98, 0.9), "violated")],
)
def test_without_the_doubtful_samples_it_is_the_same_threshold_that_is_missed(
    rest: Measured, outcome: str
) -> None:
    """What a doubtful sample lacked arrives in the next, so the mean of the others may be low for that."""
    missed = measured(1.0, 0.9).model_copy(update={"doubtful": 1, "sound": rest})
    assert verdict(QUIET, observation(missed)).outcome == outcome


@pytest.mark.parametrize(
    ("sound", "outcome"), [(None, "violated"), (20, "violated"), (19, "invalid"), (0, "invalid")]
)
def test_a_miss_of_which_hardly_a_sample_is_beyond_doubt_proves_nothing(
    sound: int | None, outcome: str
) -> None:
    missed = measured(0.5, samples=100)
    if sound is not None:
        rest = measured(0.5, samples=sound) if sound else None
        missed = missed.model_copy(update={"doubtful": 100 - sound, "sound": rest})
    assert verdict(QUIET, observation(missed)).outcome == outcome


def test_stalls_are_said_even_if_the_guarantee_held() -> None:
    of = scenario()
    made = record(of)
    made.repetitions[0].stalls = [Stall(start_s=1.0, end_s=1.06), Stall(start_s=2.0, end_s=2.04)]
    found = verdict(QUIET, observation(measured()), of=of, made=made)
    assert found.outcome == "held"
    assert found.notes == ["the machine stood still 2 times, for 60 ms at the longest"]


def test_how_busy_the_machine_was_is_said_even_if_the_guarantee_held() -> None:
    found = verdict(QUIET, observation(measured(busy=0.99)))
    assert found.notes == ["disturbed: the processors were saturated (up to 99 % busy)"]


def test_a_miss_with_capacity_to_spare_outweighs_one_without() -> None:
    of = scenario(measurement={"repetitions": 2})
    found = verdict(observation(measured(0.7, busy=0.99), measured(0.7, busy=0.5)), of=of)
    assert found.outcome == "violated"
    assert "repetition-1" in found.reasons[0]
    assert "it may be the machine" in found.reasons[1]


def calibrated(total: float | None, error: str | None = None) -> Calibration:
    return Calibration(seconds=1.0, bits_per_second={} if total is None else {"A -> C": total}, error=error)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"faults": ["pod A: eth0 has no HTB"]}, "pod A: eth0 has no HTB"),
        ({"repetitions": []}, "0 of 1 repetitions were recorded"),
        ({"calibration": calibrated(None, "no route")}, "the calibration failed: no route"),
        # 300 Mbit/s are promised: 80 % of 375
        (
            {"calibration": calibrated(374e6)},
            "the promise of 300 Mbit/s in all is more than 80% of the 374 Mbit/s",
        ),
    ],
)
def test_invalid_by_the_record(fields: dict[str, Any], words: str) -> None:
    found = verdict(QUIET, observation(measured()), made=record(scenario(), **fields))
    assert found.outcome == "invalid"
    assert any(words in reason for reason in found.reasons)


def test_a_machine_that_carries_just_enough_more_than_the_promise_can_tell() -> None:
    just = record(scenario(), calibration=calibrated(375e6))
    assert verdict(QUIET, observation(measured()), made=just).outcome == "held"


def test_a_promise_well_below_the_machines_limit() -> None:
    made = record(scenario(), calibration=calibrated(376e6))
    assert verdict(QUIET, observation(measured()), made=made).outcome == "held"


def test_promises_at_different_times_do_not_add_up() -> None:
    of = scenario(
        flows=[{"from": "A", "to": "C", "duration": 5}, {"from": "B", "to": "D", "start": 5, "duration": 5}],
        disturbances=[],
    )
    assert verdict(QUIET, of=of, made=record(of, calibration=calibrated(260e6))).outcome == "held"


@pytest.mark.parametrize(("reached", "outcome"), [(330e6, "held"), (250e6, "invalid")])
def test_a_calibration_that_fills_the_underlay_is_not_the_machines_limit(
    reached: float, outcome: str
) -> None:
    of = scenario(underlay={"rate": "350M"})
    made = record(of, calibration=calibrated(reached))
    assert verdict(QUIET, observation(measured()), of=of, made=made).outcome == outcome


def test_without_calibration_there_is_a_note() -> None:
    found = verdict(QUIET, observation(measured()), made=record(scenario(), calibration=None))
    assert found.outcome == "held"
    assert "no calibration" in found.notes[0]


LOST = Cause(kind="measurement", text="noise, repetition-0: iperf3: busy", flow="noise", repetition=0)


def test_faults_make_a_run_invalid_even_if_a_guarantee_was_missed() -> None:
    found = verdict(QUIET, observation(measured(0.5)), faults=[LOST])
    assert found.outcome == "invalid"
    assert found.reasons[0] == "noise, repetition-0: iperf3: busy"
    assert "50 %" in found.reasons[1]


@pytest.mark.parametrize("lost", [None, measured(samples=2)])
def test_too_few_samples(lost: Measured | None) -> None:
    found = verdict(QUIET, observation(lost))
    assert found.outcome == "invalid"
    assert "disturbed, repetition-0" in found.reasons[0]
    assert "too few to judge" in found.reasons[0]


def test_a_disturbance_that_no_guaranteed_flow_saw() -> None:
    found = verdict(QUIET)
    assert found.reasons == ["no guaranteed flow was measured while anything disturbed it"]


def test_nothing_promised_is_nothing_held() -> None:
    of = scenario(flows=[{"from": "C", "to": "A"}], disturbances=[])
    found = verdict(of=of, made=record(of, calibration=None))
    assert found.outcome == "invalid"
    assert found.reasons == ["no flow has a guarantee, so there is nothing to hold"]


def test_enforcement_none_is_judged_alike() -> None:
    of = scenario(enforcement="none")
    assert verdict(QUIET, observation(measured(0.6)), of=of).outcome == "violated"
    assert verdict(QUIET, observation(measured()), of=of).outcome == "held"


def test_met_tells_flows_apart() -> None:
    of = scenario()
    assert met(of, observation(measured())) is True
    assert met(of, observation(measured(), measured(0.9))) is False
    assert met(of, FlowPhase("noise", "disturbance", "disturbed", None, measured(), {0: measured()})) is None


def kinds(found: Verdict) -> list[str]:
    return [cause.kind for cause in found.causes]


def test_a_miss_says_whose_and_what_was_required() -> None:
    of = scenario(measurement={"repetitions": 2})
    (cause,) = verdict(observation(measured(), measured(0.5, 0.2)), of=of).causes
    assert (cause.kind, cause.flow, cause.phase, cause.repetition) == ("promise", "A -> C", "disturbed", 1)
    assert (cause.observed, cause.required) == (0.5 * EXPECTED, 0.99 * EXPECTED)
    (cause,) = verdict(QUIET, observation(measured(1.0, 0.9))).causes
    assert (cause.observed, cause.required) == (0.9, 0.95)


def test_each_reason_has_its_kind() -> None:
    assert kinds(verdict(QUIET, observation(measured(0.7, busy=0.99)))) == ["machine"]
    assert kinds(verdict(QUIET, observation(None))) == ["measurement"]
    assert kinds(verdict(QUIET)) == ["measurement"]
    near = record(scenario(), calibration=calibrated(374e6))
    assert kinds(verdict(QUIET, observation(measured()), made=near)) == ["machine"]
    failed = record(scenario(), calibration=calibrated(None, "no route"))
    assert kinds(verdict(QUIET, observation(measured()), made=failed)) == ["measurement"]


def test_what_was_found_during_a_repetition_is_its_own_once() -> None:
    made = record(scenario())
    made.repetitions[0].faults = [
        Fault(kind="state", text="pod A: class 1:1 is half as fast"),
        Fault(kind="measurement", text="clocks drift"),
    ]
    made.faults = ["pod A: class 1:1 is half as fast", "clocks drift", "of an earlier version"]
    found = verdict(QUIET, observation(measured()), made=made)
    assert found.outcome == "invalid"
    assert [(cause.kind, cause.repetition) for cause in found.causes] == [
        ("state", 0),
        ("measurement", 0),
        ("state", None),
    ]


@pytest.mark.parametrize(("after", "said"), [(81e6, False), (79e6, True), (121e6, True)])
def test_a_machine_that_drifts_is_noted(after: float, said: bool) -> None:
    made = record(scenario(), calibrations=[calibrated(100e6), calibrated(after)])
    notes = verdict(QUIET, observation(measured()), made=made).notes
    assert any("not the same all along" in note for note in notes) == said


@pytest.mark.parametrize(("samples", "said"), [(19, True), (20, False)])
def test_of_few_samples_the_share_means_all(samples: int, said: bool) -> None:
    notes = verdict(QUIET, observation(measured(samples=samples))).notes
    assert notes == (["disturbed: 19 samples are so few that 95 % of them means all"] if said else [])


def test_of_few_samples_the_fewest_and_the_most_are_said() -> None:
    notes = verdict(QUIET, observation(measured(samples=19), measured(samples=18))).notes
    assert notes == ["disturbed: 18 to 19 samples are so few that 95 % of them means all"]


def test_a_ceiling_is_marked_in_the_phases_and_repetitions_that_were_above_it() -> None:
    of = scenario()
    seen = observation(measured(), measured(1.2), measured(1.3), None)
    causes = [
        Cause(
            kind="promise", text="above", flow=flow, repetition=number, required=required, topics=("ceiling",)
        )
        for flow, number, required in (
            ("A -> C", 0, 1.1 * EXPECTED),  # it was, but in another phase
            ("A -> C", 1, 1.1 * EXPECTED),
            ("B -> C", 2, 1.1 * EXPECTED),
            ("A -> C", 3, 1.1 * EXPECTED),
        )
    ]
    assert missed(of, seen, causes) == {0: (), 1: ("ceiling",), 2: ()}


def test_a_trunk_that_is_full_is_the_link_s_limit_and_not_the_machine_s() -> None:
    zones = {
        "zones": {"north": {"rate": "300M"}, "south": {}},
        "nodes": {"master": {"zone": "north"}, "left": {"zone": "north"}, "right": {"zone": "south"}},
    }
    reached = Calibration(seconds=1.0, bits_per_second={"A -> C": 1.3e8, "B -> D": 1.3e8})
    for fields, outcome in ((zones, "held"), ({}, "invalid")):
        of = scenario(**fields)
        made = record(of, calibration=reached)
        assert verdict(QUIET, observation(measured()), of=of, made=made).outcome == outcome


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        ({"late": 11}, "the relay out of zone north was late: 1.1 % of the frames came more than a tenth of"),
        ({"dropped": 1}, "the relay out of zone north lost 1 packets itself"),
        ({"late": 10}, ""),
        ({"late": 1, "worst_s": 0.101}, "the relay out of zone north stood still: a frame came 101 ms"),
        ({"late": 1, "worst_s": 0.1}, ""),
        ({"frames": 99, "late": 99}, ""),
    ],
)
def test_a_delay_that_was_late_or_lost_packets_proves_nothing(counted: dict[str, int], words: str) -> None:
    of = scenario()
    made = record(of)
    fields = {"frames": 1000, "late": 0, "worst_s": 0.003, "dropped": 0, "lateness": [1000], **counted}
    made.repetitions[0].delayed = [
        Delayed(zone="north", out=True, means="relay", delay_s=0.005, **fields),  # type: ignore[arg-type]
        Delayed(zone="north", out=False, means="netem", delay_s=0.005),
    ]
    found = verdict(QUIET, observation(measured()), of=of, made=made)
    assert found.outcome == ("invalid" if words else "held")
    assert [cause.kind for cause in found.causes] == (["machine"] if words else [])
    assert all(words in reason for reason in found.reasons)
