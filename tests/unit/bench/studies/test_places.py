"""What a study of places makes of its recordings' summaries."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from bench import pipeline
from bench.analysis.summary import FlowSummary, PhaseSummary, SecondsSummary, Summary
from bench.analysis.verdict import Outcome
from bench.cli.verbs import experiments
from bench.presentation.figures.sheet import PAGE
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import StudyRequest
from bench.studies.places import figure
from bench.studies.places import study as places
from bench.studies.places.index import CLAIMS, POINTS, UNSHAPED, Places, Row
from bench.studies.places.study import PlacesStudy, measured

EXPECTED = {"A-1": 95e6, "A-2": 286e6}


def phase(mean: float, expected: float | None) -> PhaseSummary:
    met = None if expected is None else mean >= 0.99 * expected
    return PhaseSummary(
        mean_bps=mean,
        p01_bps=mean,
        attainment=None if met is None else float(met),
        samples=20,
        shortfall=None,
        met=met,
        cpu_busy=0.3,
        repetitions=[],
    )


def flow(name: str, expected: float | None, **means: float) -> FlowSummary:
    return FlowSummary(
        name=name,
        role="unguaranteed" if expected is None else "guaranteed",
        protocol="tcp",
        guarantee_bps=expected,
        expected_goodput_bps=expected,
        phases={kind: phase(mean * 1e6, expected) for kind, mean in means.items()},
    )


def summary(
    alone: float,
    towards: tuple[float, float],
    sending: tuple[float, float],
    disturbed: tuple[float, float],
    verdict: Outcome = "violated",
) -> Summary:
    one, two = EXPECTED["A-1"], EXPECTED["A-2"]
    return Summary(
        run_id="r",
        started_at="2026-01-01T00:00:00Z",
        scenario="s",
        title="",
        provider="netns",
        orchestrator="cni",
        enforcement="none",
        verdict=verdict,
        reasons=[],
        notes=[],
        flows=[
            flow("A-1 alone", one, quiet=alone),
            flow("to A-1", None, quiet=towards[0]),
            flow("to A-2", None, quiet=towards[1]),
            flow("A-1", one, quiet=sending[0], disturbed=disturbed[0]),
            flow("A-2", two, quiet=sending[1], disturbed=disturbed[1]),
            flow("containers", None, disturbed=100),
        ],
        calibration=None,
        seconds=SecondsSummary(up=0, calibration=0, traffic=0, down=0, analysis=0),
    )


FREE = summary(460, (400, 60), (400, 60), (250, 30))


def row(place: str, result: Summary) -> Row:
    return measured(Row(place=place, classes="one", recording="r"), result, FREE)


def answers(place: str, result: Summary) -> dict[str, bool | None]:
    found = row(place, result).answers
    assert found is not None
    return found.model_dump()


def test_without_shaping_nothing_is_shaped_and_nobody_gets_a_promise() -> None:
    assert answers(UNSHAPED, FREE) == {
        "per_pod_sending": False,
        "per_pod_towards": False,
        "shapes_egress": False,
        "shapes_towards": False,
        "floor": False,
        "idle_used": True,
    }


def test_a_limit_for_each_pod_that_does_not_survive_the_containers() -> None:
    assert answers("eth0", summary(95, (400, 60), (95, 286), (80, 50))) == {
        "per_pod_sending": True,
        "per_pod_towards": False,
        "shapes_egress": True,
        "shapes_towards": False,
        "floor": False,
        "idle_used": False,
    }


def test_one_class_for_all_is_seen_by_what_is_missing_in_all() -> None:
    found = answers("vtep", summary(382, (400, 60), (340, 40), (200, 20)))
    assert (found["per_pod_sending"], found["shapes_egress"], found["idle_used"]) == (False, True, True)


def test_a_class_for_each_pod_in_the_other_direction() -> None:
    found = answers("bridge-veth", summary(460, (95, 286), (400, 60), (250, 30)))
    assert (found["per_pod_towards"], found["shapes_towards"]) == (True, True)
    assert (found["per_pod_sending"], found["shapes_egress"]) == (False, False)


def test_a_miss_on_a_machine_that_was_the_limit_is_no_answer_but_a_kept_promise_is() -> None:
    found = answers("vtep", summary(95, (400, 60), (95, 286), (80, 50), verdict="invalid"))
    assert (found["per_pod_sending"], found["floor"]) == (True, None)


def test_without_the_unshaped_run_there_are_rates_but_no_answers() -> None:
    alone = measured(Row(place="vtep", classes="one"), FREE, None)
    assert alone.answers is None
    assert alone.rates_bps["alone"] == {"A-1": 460e6}
    assert alone.expected_bps == EXPECTED


def test_a_measurement_that_is_missing_is_left_out() -> None:
    flows = [flow for flow in FREE.flows if flow.name not in ("A-1 alone", "to A-2")]
    broken = FREE.model_copy(update={"flows": flows})
    assert places.rates(broken)["alone"] == {}
    assert places.rates(broken)["towards"] == {"A-1": 400e6}


def test_what_was_not_measured_or_may_be_the_machines_fault_is_no_answer() -> None:
    flows = [flow for flow in FREE.flows if flow.name not in ("A-1 alone", "to A-2")]
    found = answers("vtep", FREE.model_copy(update={"flows": flows}))
    assert found["idle_used"] is found["shapes_towards"] is found["shapes_egress"] is None

    starved = summary(300, (400, 60), (400, 60), (250, 30))
    busy = starved.flows[0].phases["quiet"].model_copy(update={"cpu_busy": 1.0})
    flows = [starved.flows[0].model_copy(update={"phases": {"quiet": busy}}), *starved.flows[1:]]
    assert answers("vtep", starved.model_copy(update={"flows": flows}))["shapes_egress"] is None
    assert answers("vtep", starved)["shapes_egress"] is True


def test_a_study_of_which_nothing_could_be_run_still_has_a_figure(tmp_path: Path) -> None:
    study = Places(rows=[Row(place="physical", classes="one", reason="tc ended with 1")])
    first, second = (figure.render(tmp_path, study, PAGE) for _ in range(2))
    assert first == second
    assert b"<svg" in first["svg"]


def test_the_tables_fit_80_columns_and_hold_claims_beside_answers() -> None:
    bad = Row(place="physical", classes="u32: inner source", reason="tc ended with 1")
    study = Places(rows=[row(UNSHAPED, FREE), row("bridge-veth", FREE), bad])
    stream = io.StringIO()
    console = Console(file=stream, width=80)
    console.print(places.rates_table(study))
    console.print(places.answers_table(study))
    lines = stream.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    words = [line.split() for line in lines]
    shown = "bridge-veth one 460 400 / 60 400 / 60 250 / 30"
    assert shown.split() in words
    assert ["bridge-veth", "one", "no", "nothing", "no", "yes", "violated", "yes,", "no"] in words
    assert ["physical", "u32:", "inner", "source", "–", "–", "–", "–"] in words
    assert ["physical", "u32:", "inner", "source", "?", "?", "?", "?", "not", "run", "no,", "yes"] in words


def test_every_case_loads_and_the_first_is_what_all_are_compared_with() -> None:
    assert POINTS[0].place == UNSHAPED
    for case in PlacesStudy().cases(StudyRequest(study="places", scale=0.1)):
        assert case.scenario is not None
        assert case.row.place == case.scenario.name
        assert case.scenario.underlay.rate == 500_000_000
    assert set(CLAIMS) <= {point.place for point in POINTS}


def test_an_unknown_place_is_bad_input() -> None:
    with pytest.raises(LookupError, match="no place 'moon'"):
        PlacesStudy().cases(StudyRequest(study="places", choices={"place": ("moon",)}))


@pytest.mark.long(one_in=0)
def test_a_study_from_before_is_still_drawn_again(
    recorded: Callable[[str], Recording], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.analyse(recorded("held"))
    rows = [
        {"place": UNSHAPED, "classes": "none", "recording": "held"},
        {"place": "vtep", "classes": "one", "reason": "tc ended with 1"},
    ]
    atomic.write_json(tmp_path / "places.json", {"schema_version": 1, "rows": rows})
    assert experiments.draw_figures(str(tmp_path), Path("reports"), {}) == 3
    assert [row["verdict"] for row in atomic.read_json(tmp_path / "places.json")["rows"]] == ["held", None]
    assert (tmp_path / "figures" / "places.svg").stat().st_size > 1000
    assert "not run: vtep, one: tc ended with 1" in capsys.readouterr().out
