from __future__ import annotations

import pytest

from bench.analysis.flow_phases import FlowPhase, observe
from bench.analysis.samples import parted
from bench.recording.records import CpuUse, Stall
from tests.unit.bench.builders import record, repetition, samples, scenario, with_senders

EXPECTED = 1e8 * 1398 / 1464


def by_key(observations: list[FlowPhase]) -> dict[tuple[str, str], FlowPhase]:
    return {(o.flow, o.phase): o for o in observations}


def test_every_flow_has_its_phases_in_order() -> None:
    experiment = scenario()
    observed = observe(parted(samples(experiment, lambda _f, _t: 1e8)), experiment, record(experiment))
    assert [(o.flow, o.role, o.phase) for o in observed] == [
        ("A -> C", "guaranteed", "quiet"),
        ("A -> C", "guaranteed", "disturbed"),
        ("B -> D", "guaranteed", "quiet"),
        ("B -> D", "guaranteed", "disturbed"),
        ("noise", "disturbance", "disturbed"),
    ]


def test_phases_are_measured_apart_and_the_warm_up_not_at_all() -> None:
    experiment = scenario()

    def rate(_flow: str, time: float) -> float:
        return 9e9 if time < 0.5 else 4e7 if 3 <= time < 6 else EXPECTED

    observed = by_key(observe(parted(samples(experiment, rate)), experiment, record(experiment)))
    quiet, disturbed = observed["A -> C", "quiet"], observed["A -> C", "disturbed"]
    assert quiet.overall is not None
    assert disturbed.overall is not None
    assert (quiet.overall.samples, disturbed.overall.samples) == (65, 30)
    assert quiet.overall.mean_bps == pytest.approx(EXPECTED)
    assert disturbed.overall.mean_bps == pytest.approx(4e7)
    assert (quiet.overall.attainment, disturbed.overall.attainment) == (1.0, 0.0)
    assert quiet.shortfall == pytest.approx(0)
    assert disturbed.shortfall == pytest.approx(1 - 4e7 / EXPECTED)


def test_a_disturbance_has_no_warm_up() -> None:
    experiment = scenario(measurement={"warm_up": 5})
    observed = by_key(
        observe(parted(samples(experiment, lambda _f, _t: 1.0)), experiment, record(experiment))
    )
    overall = observed["noise", "disturbed"].overall
    assert overall is not None
    assert overall.samples == 30


def test_repetitions_apart_and_together() -> None:
    experiment = scenario(measurement={"repetitions": 2}, disturbances=[])
    table = samples(experiment, lambda _f, _t: EXPECTED)
    table.loc[table["repetition"] == 1, "bits_per_second"] = 0.0
    observed = by_key(observe(parted(table), experiment, record(experiment)))["A -> C", "quiet"]
    means = {number: measured.mean_bps for number, measured in observed.repetitions.items() if measured}
    assert means == pytest.approx({0: EXPECTED, 1: 0.0})
    assert observed.overall is not None
    assert observed.overall.mean_bps == pytest.approx(EXPECTED / 2)
    assert observed.overall.samples == 190


def test_processors_are_averaged_over_the_phase() -> None:
    experiment = scenario()
    made = repetition(experiment)
    made.cpu = [
        CpuUse(start_s=0, end_s=3, busy=0.2, steal=0),
        CpuUse(start_s=3, end_s=6, busy=1.0, steal=0),
        CpuUse(start_s=6, end_s=10, busy=0.2, steal=0),
    ]
    table = samples(experiment, lambda _f, _t: 1.0)
    observed = by_key(observe(parted(table), experiment, record(experiment, repetitions=[made])))
    for phase, busy in (("quiet", 0.2), ("disturbed", 1.0)):
        overall = observed["A -> C", phase].overall
        assert overall is not None
        assert overall.cpu_busy == pytest.approx(busy)


def test_missing_samples_are_seen() -> None:
    experiment = scenario()
    table = samples(experiment, lambda _f, _t: 1.0)
    gone = (table["flow"] == "A -> C") & (table["start_s"].between(2.9, 6.1))
    observed = by_key(observe(parted(table[~gone]), experiment, record(experiment)))["A -> C", "disturbed"]
    assert observed.overall is None
    assert observed.repetitions == {0: None}
    assert observed.shortfall is None


def test_the_senders_own_count_is_not_judged() -> None:
    experiment = scenario()
    table = samples(experiment, lambda _f, _t: 1.0).assign(source="sender")
    assert all(o.overall is None for o in observe(parted(table), experiment, record(experiment)))


def test_samples_in_which_the_machine_stood_still_are_told_apart() -> None:
    experiment = scenario(disturbances=[])
    table = samples(experiment, lambda _f, time: 0.0 if 4.95 < time < 5.05 else EXPECTED)
    made = record(experiment)
    made.repetitions[0].stalls = [Stall(start_s=5.01, end_s=5.07)]
    overall = by_key(observe(parted(table), experiment, made))["A -> C", "quiet"].overall
    assert overall is not None
    assert overall.mean_bps < EXPECTED
    assert overall.sound is not None
    assert overall.sound.mean_bps == pytest.approx(EXPECTED)
    # The sample itself, and the next, in which what was held up arrives.
    assert overall.samples - overall.sound.samples == 2


def test_a_machine_that_never_stood_still_has_nothing_to_tell_apart() -> None:
    experiment = scenario()
    for observed in observe(parted(samples(experiment, lambda _f, _t: 1e8)), experiment, record(experiment)):
        assert observed.overall is not None
        assert observed.overall.sound is None


def test_samples_of_a_saturated_half_second_are_told_apart() -> None:
    experiment = scenario(disturbances=[])
    table = samples(experiment, lambda _f, time: 0.0 if 4.95 < time < 5.05 else EXPECTED)
    made = record(experiment)
    made.repetitions[0].cpu = [
        CpuUse(start_s=4.0, end_s=4.5, busy=0.8, steal=0.0),
        CpuUse(start_s=4.8, end_s=5.3, busy=0.99, steal=0.0),
    ]
    overall = by_key(observe(parted(table), experiment, made))["A -> C", "quiet"].overall
    assert overall is not None
    assert overall.sound is not None
    assert overall.sound.mean_bps == pytest.approx(EXPECTED)


def test_samples_with_an_idle_sender_are_told_apart() -> None:
    experiment = scenario(disturbances=[])
    table = samples(experiment, lambda _f, time: 0.0 if 4.95 < time < 5.05 else EXPECTED)
    full, empty = EXPECTED, 9 * EXPECTED
    idle = with_senders(table, lambda time: empty if 4.95 < time < 5.05 else full)
    overall = by_key(observe(parted(idle), experiment, record(experiment)))["A -> C", "quiet"].overall
    assert overall is not None
    assert overall.doubtful == 1
    assert overall.sound is not None
    assert overall.sound.mean_bps == pytest.approx(EXPECTED)


@pytest.mark.parametrize("window", [EXPECTED / 2, 6 * EXPECTED, float("nan")])
def test_a_sender_that_waits_or_whose_window_is_not_known_is_not_idle(window: float) -> None:
    experiment = scenario(disturbances=[])
    table = with_senders(samples(experiment, lambda _f, _t: EXPECTED / 2), lambda _t: window)
    overall = by_key(observe(parted(table), experiment, record(experiment)))["A -> C", "quiet"].overall
    assert overall is not None
    assert overall.doubtful == 0
    assert overall.sound is None


@pytest.mark.parametrize(("low", "doubtful"), [(0.3, 30), (0.8, 0)])
def test_room_on_the_links_all_along_is_no_excuse(low: float, doubtful: int) -> None:
    experiment = scenario(disturbances=[], underlay={"rate": "1G"})
    table = samples(experiment, lambda _f, time: 1e8 if time < 10 * low else 4.9e8)
    overall = by_key(observe(parted(table), experiment, record(experiment)))["A -> C", "quiet"].overall
    assert overall is not None
    assert overall.doubtful == pytest.approx(doubtful, abs=6)  # the warm-up is left out
