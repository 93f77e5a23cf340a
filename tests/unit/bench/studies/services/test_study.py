"""The study of services: what it is asked for, its arithmetic, and what it makes of runs that are known."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from bench.console.progress import Display
from bench.presentation.figures.sheet import PAGE, PRESETS, Sheet
from bench.recording import archive, atomic
from bench.recording.records import Delayed, StudyRequest
from bench.studies import loop
from bench.studies.services import figure, page, results, sheets, situations
from bench.studies.services.index import Services, read
from bench.studies.services.records import Run
from bench.studies.services.results import faults, measured, replicas
from bench.studies.services.situations import BY_NAME, NAMES, SITUATIONS
from bench.studies.services.study import ServicesStudy
from bench.studies.study import figure_files
from bench.studies.timed import took
from tests.paths import ROOT
from tests.unit.bench.presentation.figures import looked_at
from tests.unit.bench.presentation.figures.looked_at import drawn
from tests.unit.bench.studies.services import known


def asked(**choices: tuple[str, ...]) -> StudyRequest:
    return StudyRequest(study="services", choices=choices)


@pytest.fixture(scope="module")
def found() -> Services:
    return known.study()


def expected(case: str, mode: str) -> float | None:
    """Return the largest load that hints lead to; it is just that of runs that are known."""
    one = measured(known.run(BY_NAME[case], mode), None)
    assert one.worst == pytest.approx(one.worst_expected, rel=0.01)
    return one.worst_expected


@pytest.mark.parametrize(
    ("case", "loads"),
    [
        ("in-proportion", {"off": 1.0, "auto": 1.0, "strict": 1.0, "close": 1.0}),
        ("one-zone", {"off": 1.0, "auto": 3.0, "close": 3.0}),
        ("4-4-3", {"off": 1.0, "auto": 1.0, "strict": 1.0, "close": 11 / 9}),
        ("2-to-1", {"off": 1.0, "auto": 1.0, "close": 4 / 3}),
        ("1-to-4", {"off": 1.0, "auto": 1.4, "strict": 1.12}),
        ("1-to-8", {"off": 1.0, "auto": 1.0, "strict": 32 / 27}),
        ("most-down", {"off": 1.0, "auto": 7 / 3, "strict": 7 / 3, "close": 7 / 3}),
        ("tainted", {"off": 1.0, "auto": 1.5, "close": 1.0}),
        ("no-endpoint", {"off": 1.0, "auto": 1.0, "close": 4 / 3 - 1 / 3, "nearest": 4 / 3}),
    ],
)
def test_the_most_that_is_expected_of_an_endpoint_follows_from_hints(
    case: str, loads: dict[str, float]
) -> None:
    assert {mode: expected(case, mode) for mode in loads} == pytest.approx(loads, abs=1e-5)


def test_bytes_are_compared_with_the_same_case_without_hints_or_with_the_usual_one(found: Services) -> None:
    assert found.measured["in-proportion"]["off"].of_off == 1
    assert found.measured["in-proportion"]["auto"].of_off == 0
    assert found.measured["two-ready"]["auto"].of_off == pytest.approx(1, abs=0.01)
    assert found.measured["4-4-3"]["auto"].of_off == 1
    assert found.measured["2-to-1"]["auto"].of_off == pytest.approx(1 / 3, abs=0.01)


def test_who_asks_less_than_expected_is_likely_and_who_is_passed_over_is_not() -> None:
    run = known.run(BY_NAME["in-proportion"], "off")
    assert results.likely(run) == pytest.approx(1, abs=0.01)
    one = run.asked[0]
    unfair = {**one.answered, "web-north-1": 0, "web-north-2": 2 * one.answered["web-north-2"]}
    other = run.model_copy(update={"asked": [one.model_copy(update={"answered": unfair}), *run.asked[1:]]})
    assert results.likely(other) == 0
    alone = known.run(BY_NAME["two-ready"], "auto")
    only = {zone: ["web-north-2"] for zone in situations.ZONES}
    everything = [{**dict.fromkeys(each.answered, 0), "web-north-2": each.count} for each in alone.asked]
    no_choice = [
        each.model_copy(update={"answered": all_of_it})
        for each, all_of_it in zip(alone.asked, everything, strict=True)
    ]
    assert results.likely(alone.model_copy(update={"used": only, "asked": no_choice})) is None


@pytest.mark.parametrize(
    ("load", "wanted"),
    [
        ([1.0] * 6, 6),
        ([1.09] * 6, 6),
        ([1.2] * 6, 8),
        ([0.5] * 6, 3),
        ([3.0, 3.0, 0, 0, 0, 0], 6),
        ([2.0, 2.0, 0, 0, 0, 0], 4),
        ([0.0, 0.0], 1),
    ],
)
def test_an_autoscaler_goes_by_the_mean(load: list[float], wanted: int) -> None:
    assert replicas(load) == wanted


def test_an_autoscaler_takes_endpoints_away_where_one_zone_alone_asks(found: Services) -> None:
    scaled = found.measured["one-zone"]["auto"].autoscaled
    assert scaled is not None
    assert (scaled.wanted, scaled.needed, scaled.there) == (4, {"north": 6}, {"north": 2})


def test_delays_that_were_late_make_a_run_invalid_and_it_has_no_numbers() -> None:
    run = known.run(BY_NAME["in-proportion"], "off", late=11)
    assert faults(run) == ["the relay out of zone north was late: by up to 4.1 ms with 99 % of its frames"]
    assert not faults(known.run(BY_NAME["in-proportion"], "off", late=10))
    one = run.asked[0].model_copy(update={"late_p99_s": 0.005})
    slow = run.model_copy(update={"delayed": [], "asked": [one]})
    assert faults(slow) == ["the generator of north was 5.0 ms late"]
    assert not faults(slow.model_copy(update={"asked": [one.model_copy(update={"late_s": 0.0005})]}))
    lossy = Delayed(zone="south", out=False, means="relay", delay_s=0.01, frames=1000, late=0, dropped=2)
    assert "lost 2 packets itself" in faults(run.model_copy(update={"delayed": [lossy]}))[0]
    shown = sheets.requests(Services(results=results.summed_up([run]))).rows
    assert shown == [["in-proportion", "off", "invalid", *["–"] * 5]]


def test_a_few_late_ones_do_not_spoil_a_short_run_but_tell_no_99th_percentile() -> None:
    run = known.run(BY_NAME["in-proportion"], "off")
    few = Delayed(zone="north", out=True, means="relay", delay_s=0.005, frames=200)
    spoiled = {
        late: faults(run.model_copy(update={"delayed": [few.model_copy(update={"lateness": lateness})]}))
        for late, lateness in ((10, [190, *[0] * 12, 10]), (11, [189, *[0] * 12, 11]))
    }
    late = "the relay out of zone north was late: by up to 8.2 ms with 95 % of its frames"
    assert spoiled == {10: [], 11: [late]}
    (measured,) = results.summed_up([run])
    times = [sheets.times(measured.model_copy(update={"requests": count})) for count in (1000, 999)]
    assert times == ["40.4 / 40.4", "40.4 / –"]


def test_what_was_not_answered_took_longer_than_all_others() -> None:
    from bench.generators.generator import Exchange

    sound = [Exchange(k / 10, k / 10, k / 10 + 0.02, "answered", None) for k in range(98)]
    lost = [Exchange(k / 10, k / 10, None, "lost", None) for k in range(98, 100)]
    assert took([*sound, *lost]).p50_s == pytest.approx(0.02)
    assert took([*sound, *lost]).p99_s is None
    assert took(lost).max_s is None


def test_each_case_has_the_zones_endpoints_and_processors_that_it_says() -> None:
    for one in SITUATIONS:
        read = situations.scenario(one, 0.1)
        assert len(read.services["web"].pods) == sum(one.endpoints)
        assert {zone.rate for zone in read.zones.values()} == {10_000_000}
        assert sum(one.shares.values()) == pytest.approx(1)
    # So that one testbed serves several cases.
    assert len({situations.scenario(one).model_dump_json() for one in SITUATIONS[:6]}) == 1


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"case": ("moon",)}, "--case: no case 'moon' \\(cases: in-proportion, .*promise-without-room"),
        ({"mode": ("aUto",)}, "--mode: no mode 'aUto' \\(modes: off, auto, strict, close, nearest\\)"),
    ],
)
def test_what_there_is_not_is_refused(choices: dict[str, tuple[str, ...]], words: str) -> None:
    with pytest.raises(LookupError, match=words):
        ServicesStudy().cases(asked(**choices))


def test_other_providers_are_refused() -> None:
    elsewhere = asked().model_copy(update={"provider": "ssh:inventory.yaml"})
    with pytest.raises(LookupError, match="nodes of one kernel: --provider netns"):
        ServicesStudy().cases(elsewhere)


def test_promises_are_recordings_but_not_in_a_hurry() -> None:
    study = ServicesStudy()
    cases = study.cases(asked())
    assert [case.name for case in cases] == ["promise-with-room", "promise-without-room"]
    rates = [case.scenario.zones["north"].rate for case in cases if case.scenario]
    assert rates == [600_000_000, 300_000_000]
    assert study.cases(asked(quick=("yes",))) == []
    assert list(study.probes(asked(quick=("yes",), mode=("auto",)))) == [
        name for name in NAMES if BY_NAME[name].event is None
    ]


class Made(ServicesStudy):
    """A study whose measuring leaves runs that are known."""

    def measure(self, asked: StudyRequest, directory: Path, displays: object) -> None:
        for one in SITUATIONS:
            for mode in one.modes:
                atomic.write_model(directory / "measured" / one.name / f"{mode}.json", known.run(one, mode))


def test_the_same_files_give_the_same_bytes(tmp_path: Path, found: Services) -> None:
    wanted = asked(case=(*NAMES,)).model_copy(update={"reports": str(tmp_path)})
    study = Made()
    directory = loop.run(study, wanted, partial(Display, Console(file=io.StringIO())))
    assert read(directory).results == found.results
    assert study.valid(directory)
    assert study.notes(directory) == []
    made = study.figures(directory, PAGE)
    outputs = {**figure_files(made, PAGE), **study.outputs(directory, made)}
    assert outputs == {path: (directory / path).read_bytes() for path in outputs}


@pytest.mark.parametrize("sheet", PRESETS.values(), ids=lambda one: one.name or "page")
def test_nothing_is_small_or_cut_off(sheet: Sheet, found: Services) -> None:
    with drawn(lambda: figure.draw(found, sheet), sheet) as made:
        assert looked_at.small(made, sheet) == []
        assert looked_at.outside(made) == []
        assert looked_at.covered(made) == []


def test_the_page_has_each_claim_beside_a_number(found: Services) -> None:
    text = page.page(found)
    for words in (
        "holds: 0 % of the bytes between zones without hints, 0 kB instead of 4,200 kB",
        "shorter by 2.00 round trips between zones, of the 2",
        "`auto` hints 1 / 6, and one endpoint has 140 % (140 % by the hints)",
        "`strict` hints 2 / 5, and the most is 112 % (112 % by the hints)",
        "of one zone's two endpoints one has 300 %, and 4 elsewhere have nothing",
        "the one endpoint there has 233 %",
        "of 6 endpoints it wants 4, where the one zone has 2 and needs 6",
        "2 endpoints have nothing, and the most is 150 %",
        "violated: 75 % of what is expected; nobody [shares out a trunk]",
    ):
        assert words in text
    assert text.count("\n| ") > 80


def test_no_study_that_is_kept_is_no_page(found: Services) -> None:
    assert page.render(None) is None
    assert page.render(atomic.model_bytes(found)) == page.page(found)


def test_the_page_shows_the_study_that_is_kept_in_which_hints_do_as_they_say(tmp_path: Path) -> None:
    kept = archive.unpack(ROOT / "reports" / "reference" / "services", tmp_path)
    runs = [atomic.read(file, Run) for file in sorted((kept / "measured").glob("*/*.json"))]
    shown = Services(results=results.summed_up(runs))
    assert sheets.requests(shown).markdown() in page.FILE.read_text(encoding="utf-8")
    assert not [one for one in shown.results if one.invalid or one.lost]
    assert len(shown.results) == sum(len(one.modes) for one in SITUATIONS)
    # Fifty-four runs: of one alone 0.001 would be as much.
    assert min(one.likely for one in shown.results if one.likely is not None) > 0.001 / len(runs)
    usual = shown.measured["in-proportion"]
    for mode in ("auto", "strict", "close", "nearest"):
        assert (usual[mode].of_off or 0) < 0.05
        fall = results.fall_in_round_trips(usual["off"], usual[mode])
        assert fall is not None
        assert fall > 0.9 * situations.ROUND_TRIPS
