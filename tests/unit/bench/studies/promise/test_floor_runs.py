"""What the checks of floors make of recordings: a flow alone, one that meets others, one that is joined."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.analysis.summary import FlowSummary, RequestsSummary
from bench.recording import atomic, queues
from bench.recording.directory import Recording
from bench.recording.queues import Queue
from bench.recording.records import Repetition, RunRecord, Seconds, Stall, StudyRequest, Transfer
from bench.studies.promise.check import Check, Evidence, Ground, Judgement, Ran, all_checks
from bench.studies.promise.checks import ceiling, floor, latency  # noqa: F401 - they register their checks
from testbed.scenario import Scenario, load
from testbed.scenario.goodput import expected_goodput_of
from tests.paths import ROOT
from tests.unit.bench.studies.promise.known import cause, flow, ran, received

IDLE = load(ROOT / "scenarios" / "promise" / "idle.yaml")
PROTECTION = load(ROOT / "scenarios" / "promise" / "protection.yaml")
LINK = 1e9 * 1398 / 1514  # payload of full frames: an MTU of 1450 within the headers of VXLAN


def check(name: str) -> Check:
    return next(one for one in all_checks() if one.name == name)


def alone(share: float, *causes: str, scenario: Scenario = IDLE) -> Judgement:
    promised = flow("promised", 190e6, 200e6, share * LINK)
    doubts = [cause(kind, f"a doubt of kind {kind}") for kind in causes]
    return check("idle-capacity").judge(Evidence({"idle": ran([promised], doubts, scenario=scenario)}))


@pytest.mark.parametrize(("share", "found"), [(0.97, "held"), (0.901, "held"), (0.899, "violated")])
def test_alone_a_pod_has_most_of_the_link(share: float, found: str) -> None:
    judged = alone(share)
    assert judged.found == found
    (number,) = judged.numbers
    assert (number.value, number.least) == (share, 0.9)
    assert judged.words.endswith(" of what the link carries")


def test_alone_a_doubt_excuses_what_is_missed_and_nothing_else() -> None:
    assert alone(0.5, "promise").found == "violated"
    missed = alone(0.5, "machine")
    assert missed.found == "invalid"
    assert missed.words.endswith("; a doubt of kind machine")
    assert alone(0.95, "machine").found == "held"


def test_alone_without_a_rate_of_the_link_or_a_measurement_nothing_is_said() -> None:
    underlay = IDLE.underlay.model_copy(update={"rate": None})
    unknown = alone(0.97, scenario=IDLE.model_copy(update={"underlay": underlay}))
    assert (unknown.found, unknown.words) == ("invalid", "nobody knows the link's rate")
    unmeasured = flow("promised", 190e6, 200e6, LINK)
    unmeasured.phases.clear()
    judged = check("idle-capacity").judge(Evidence({"idle": ran([unmeasured], scenario=IDLE)}))
    assert (judged.found, judged.words) == ("invalid", "nothing was measured")


RUNNING = [one.name for one in all_checks() if not one.make]


@pytest.mark.parametrize("name", RUNNING)
def test_a_run_that_was_not_made_is_named(name: str) -> None:
    runs = check(name).runs(Ground(StudyRequest(study="promise"), "node", 4 * 10**9))
    judged = check(name).judge(Evidence({each: Ran(None, "no room for it") for each in runs}))
    assert judged.found == "invalid"
    assert judged.words.startswith("not run: no room for it")


def disturbed(mean: float, attainment: float, met: bool) -> FlowSummary:
    promised = flow("promised", 100e6, 100e6, mean)
    promised.phases["disturbed"] = promised.phases.pop("quiet").model_copy(
        update={"met": met, "attainment": attainment, "repetitions": []}
    )
    return promised


def test_beside_others_the_samples_that_fell_short_are_named_but_those_of_the_beginning() -> None:
    samples = received(
        "promised", [1e6] * 30 + [100e6, 89e6, 91e6, 50e6]
    )  # the common scenario judges from 3 s on
    run = ran([disturbed(82e6, 0.5, met=False)], samples=samples)
    judged = check("full-link-1").judge(Evidence({"beside": run}))
    assert judged.found == "violated"
    assert [(short.start_s, short.end_s) for short in judged.short] == [
        pytest.approx((3.106, 3.206)),
        pytest.approx((3.306, 3.406)),
    ]
    assert [(number.value, number.least) for number in judged.numbers] == [(82e6, 90e6), (0.5, 0)]
    kept = ran([disturbed(100e6, 1.0, met=True)], samples=samples)
    held = check("full-link-1").judge(Evidence({"beside": kept}))
    assert (held.found, held.short) == ("held", ())


def test_incast_is_told_of_each_kind_of_noise_and_never_kept() -> None:
    samples = received("promised", [1e6] * 30 + [100e6, 50e6])
    runs = {
        "TCP": ran([disturbed(100e6, 1.0, met=True)]),
        "UDP": ran([disturbed(50e6, 0.2, met=False)], samples=samples),
    }
    judged = check("incast").judge(Evidence(runs))
    assert judged.found == "violated"
    assert [number.name for number in judged.numbers] == [
        f"{what} beside {noise}" for noise in runs for what in ("mean", "samples with nine tenths")
    ]
    assert [(short.run, round(short.start_s, 3)) for short in judged.short] == [("UDP", 3.106)]
    assert judged.words.startswith(
        "beside TCP: 100 Mbit/s, 100 % of the expected 100 Mbit/s; 100 % of the samples"
    )


SECONDS = Seconds(up=0.1, calibration=0.1, traffic=3.0, down=0.1)
FLOOR = expected_goodput_of(PROTECTION, PROTECTION.flows[0]) or 0.0


def joined(directory: Path, late_ms: list[int], **fields: object) -> Judgement:
    """Return what is found of repetitions in which the floor was missed for so long once a neighbour sent."""
    repetitions = []
    for number, milliseconds in enumerate(late_ms):
        transfers = {
            "promised": Transfer(slug="promised", started_s=0.0),
            "neighbour": Transfer(slug="neighbour", started_s=1.0),
        }
        repetitions.append(Repetition.model_validate({"transfers": transfers, "cpu": [], **fields}))
        there = directory / "raw" / f"repetition-{number}"
        there.mkdir(parents=True)
        passed, text = 0.0, ""
        for hundredth in range(311):
            text += queues.line(
                hundredth / 100,
                [
                    Queue("veth1", queues.DEVICE, "", "", round(passed / 8), 0, 0, 0, 0),
                    Queue("veth2", queues.DEVICE, "", "", hundredth, 0, 0, 0, 0),
                ],
            )
            starved = 100 <= hundredth < 100 + milliseconds / 10
            passed += (0.5 if starved else 1.0) * FLOOR / 100
        (there / queues.file_name("worker-02")).write_text(text)
    recording = Recording(directory)
    record = RunRecord(
        run_id="r", started_at="2026-01-01T00:00:00Z", provider="netns", orchestrator="cni", seconds=SECONDS,
        calibration=None, repetitions=repetitions, faults=[],
    )  # fmt: skip
    atomic.write_model(recording.run_file, record)
    run = ran([], scenario=PROTECTION, directory=directory)
    return check("protection-from-a-neighbour").judge(Evidence({"begins": run}))


def test_a_floor_is_protected_if_it_is_there_soon_in_every_repetition(tmp_path: Path) -> None:
    judged = joined(tmp_path / "held", [0, 0, 0, 0, 0])
    assert (judged.found, judged.short) == ("held", [])
    assert [number.name for number in judged.numbers] == [f"repetition {number}" for number in range(1, 6)]
    judged = joined(tmp_path / "violated", [0, 0, 200, 0, 0])
    assert judged.found == "violated"
    (short,) = judged.short
    assert (short.run, short.flow, short.repetition, short.start_s) == ("begins", "promised", 2, 1.0)


@pytest.mark.parametrize(
    "fields",
    [
        {"stalls": [Stall(start_s=1.0, end_s=1.25)]},  # the machine stood still when it was judged
        {"transfers": {"promised": Transfer(slug="promised", started_s=0.0)}},  # nobody joined it
        {
            "transfers": {
                "promised": Transfer(slug="promised", started_s=0.2),  # it went on after the last reading
                "neighbour": Transfer(slug="neighbour", started_s=1.0),
            }
        },
        {
            "transfers": {
                "promised": Transfer(slug="promised", started_s=0.0),
                "neighbour": Transfer(slug="neighbour", started_s=1.0, error="no connection"),
            }
        },
    ],
    ids=["stalls", "nobody", "not counted", "error"],
)
def test_repetitions_that_do_not_show_it_are_none(fields: dict[str, object], tmp_path: Path) -> None:
    assert joined(tmp_path, [200] * 6, **fields).found == "invalid"


def test_counters_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    joined(tmp_path, [0] * 5)
    (tmp_path / "raw" / "repetition-3" / queues.file_name("worker-02")).write_text("[1")
    judged = check("protection-from-a-neighbour").judge(
        Evidence({"begins": ran([], scenario=PROTECTION, directory=tmp_path)})
    )
    assert judged.found == "invalid"
    assert judged.words.startswith("repetition 3: ")


def took(name: str, **phases: dict[str, object]) -> RequestsSummary:
    same: dict[str, object] = {
        "exchanges": 100, "lost": 0, "p50_s": 0.001, "p90_s": 0.002, "p99_s": 0.003, "p999_s": None,
        "max_s": 0.004, "lateness_p99_s": 0.0, "lateness_max_s": 0.0, "round_trip_s": None, "doubtful": 0,
        "cpu_busy": None, "met": None, "repetitions": [], "p50_interval_s": None, "p99_interval_s": None,
    }  # fmt: skip
    return RequestsSummary.model_validate(
        {
            "name": name, "protocol": "tcp", "connections": "one", "rate": 200, "size": 64, "answer": 64,
            "guarantee_bps": None, "latency_s": None, "lost_share": None, "idle": [],
            "phases": {phase: {**same, **fields} for phase, fields in phases.items()},
        }
    )  # fmt: skip


def waits(*asked: RequestsSummary) -> Judgement:
    return check("limited-pod").judge(Evidence({"requests": ran([], requests=asked)}))


def test_what_messages_wait_is_told_idle_and_under_load() -> None:
    label = "in the limited pod"
    judged = waits(
        took("another", quiet={"p50_s": 9.0}, disturbed={}),
        took(label, quiet={"lost": 1}, disturbed={"lost": 2, "p50_s": 0.01, "p99_s": None}),
    )
    assert judged.found == "held"
    assert judged.words == "p50 idle 1.00 ms, p99 idle 3.00 ms, p50 under load 10.00 ms; 3 lost"
    assert [(number.name, number.value) for number in judged.numbers] == [
        ("p50 idle", 0.001), ("p99 idle", 0.003), ("p50 under load", 0.01),
    ]  # fmt: skip
    assert waits(took(label, quiet={})).words == "under load: no request was answered"
    assert waits(took("another", quiet={}, disturbed={})).found == "invalid"
