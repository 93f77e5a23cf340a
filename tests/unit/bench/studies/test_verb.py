from __future__ import annotations

import math

import pytest

from bench.cli.verbs import experiments
from bench.console.asked import Options
from bench.studies import verb

NOTHING: Options = {
    "set_": [],
    "scale": 1.0,
    "provider": "netns",
    "orchestrator": "cni",
    "reports": "reports",
}


def test_a_study_asked_for_wrongly_is_bad_input() -> None:
    with pytest.raises(LookupError, match=r"no study 'moon' \(studies: matrix, places, backends, "):
        verb.run("moon", {}, "", document={}, **NOTHING)
    with pytest.raises(LookupError, match=r"--choose: matrix has no 'place' \(scenario, enforcement, rep"):
        verb.run("matrix", {"place": ["bridge"]}, "", document={}, **NOTHING)
    with pytest.raises(LookupError, match="--choose: 'pod' is not KEY=VALUE"):
        verb.chosen({}, ["a=b=c", "pod"])
    assert verb.chosen({}, ["a=b=c", "a=", "d=e"]) == {"a": ["b=c", ""], "d": ["e"]}
    own: verb.Choices = {"profile": ["floor"], "attack_own_pods": True, "repetitions": 3, "link": "1G"}
    asked_for = {"profile": ["floor"], "attack-own-pods": ["yes"], "repetitions": ["3"], "link": ["1G"]}
    assert verb.chosen(own, []) == asked_for


def test_a_plan_says_how_long_what_is_no_recording_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert verb.run("promise", {"profile": ["robust"]}, "", document={}, dry=True, **NOTHING) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "some-attacks: about 40 s"
    assert lines[-1] == "beside recordings about 1 min, where testbeds are namespaces"


@pytest.mark.parametrize("other", [{"scale": 0.1}, {"set_": ["name=x"]}, {"provider": "ssh:x"}])
def test_what_goes_on_goes_on_as_it_was_begun(other: Options) -> None:
    options: Options = {**NOTHING, **other}
    with pytest.raises(LookupError, match="leave out all but --reports"):
        verb.run("places", {}, "somewhere", document={}, **options)
    with pytest.raises(LookupError, match="leave out all but --reports"):
        experiments.bench([], [], "somewhere", {}, **options)
    with pytest.raises(LookupError, match="leave out all but --reports"):
        experiments.bench([], ["a=config"], "somewhere", {}, **NOTHING)


@pytest.mark.parametrize(
    ("scenario", "options", "words"),
    [
        ("kubernetes", {**NOTHING, "scale": math.nan}, "--scale: input should be a finite number"),
        ("kubernetes", {**NOTHING, "reports": "\udcff"}, "--reports: not UTF-8 text"),
        ("\udcff", NOTHING, "--scenario: not UTF-8 text"),
        ("kubernetes", {**NOTHING, "set_": ["title=\udcff"]}, "--set: not UTF-8 text"),
    ],
)
def test_what_is_no_text_or_no_number_is_bad_input(scenario: str, options: Options, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        experiments.bench([scenario], [], "", {}, **options)
