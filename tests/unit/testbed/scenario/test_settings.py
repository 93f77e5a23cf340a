"""What a scenario sets of parts that bring settings of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.enforcements import registry
from testbed.enforcements.enforcement import Enforcement
from testbed.scenario import Scenario, ScenarioError, load, parse, render_schema, render_yaml
from testbed.scenario.enforcements import KINDS, Kind
from testbed.scenario.words import Part
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"
HERE = "settings.enforcement.weave"


class Fabric(Part):
    """Settings of an enforcement."""

    burst: int = 7
    weight: float | None = None


@pytest.fixture(autouse=True)
def _weave(own_parts: None) -> None:
    registry.register(Kind("weave", settings=Fabric()), Enforcement)


def given(scenario: Scenario) -> tuple[Fabric, ...]:
    return KINDS.handed("weave", scenario.settings)


def test_a_part_gets_what_is_said_with_the_rest_as_its_model_has_it() -> None:
    assert given(load(CONTMEC)) == (Fabric(),)
    assert given(load(CONTMEC, [f"{HERE}.burst=32"])) == (Fabric(burst=32),)
    assert given(load(CONTMEC, [f"{HERE}={{weight: 2}}"])) == (Fabric(weight=2.0),)


def test_a_file_says_the_same_and_a_recording_keeps_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(CONTMEC.read_text() + "settings: {enforcement: {weave: {burst: 32}}}\n")
    scenario = load(file)
    assert scenario == load(CONTMEC, [f"{HERE}.burst=32"])
    assert "  enforcement:\n    weave:\n      burst: 32\n" in render_yaml(scenario)
    assert parse(render_yaml(scenario)) == scenario
    file.write_text(render_yaml(scenario))
    assert load(file) == scenario


def test_nothing_is_said_of_settings_where_none_are_given() -> None:
    assert "settings" not in render_yaml(load(CONTMEC))


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("settings.enforcment.weave.burst=1", "settings.enforcment: no kind 'enforcment' (kinds: "),
        ("settings.enforcment.weave.burst=1", " (did you mean 'enforcement'?)"),
        (
            "settings.enforcement.waeve.burst=1",
            "settings.enforcement.waeve: no enforcement 'waeve' that has settings (there are: weave) "
            "(did you mean 'weave'?)",
        ),
        (
            "settings.enforcement.pod.burst=1",
            "settings.enforcement.pod: no enforcement 'pod' that has settings",
        ),
        (f"{HERE}.bursts=1", f"{HERE}.bursts: no such field (did you mean 'burst'?)"),
        (f"{HERE}.burst=many", f"{HERE}.burst: input should be a valid integer"),
        (f"{HERE}=5", f"{HERE}: input should be a mapping, as in {{name: value}}"),
        ("settings.enforcement=5", "settings.enforcement: input should be a mapping, as in {name: value}"),
        ("settings=5", "settings: input should be a mapping, as in {name: value}"),
    ],
)
def test_what_is_not_there_is_refused_with_its_place(override: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [override])
    assert str(caught.value).startswith(f"{CONTMEC}: settings")
    assert words in str(caught.value)


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [f"{HERE}.burst=x", f"{HERE}.weight=y", "settings.bird={}"])
    places = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert places == [f"{HERE}.burst", f"{HERE}.weight", "settings.bird"]


def test_what_a_recording_sets_of_a_part_that_is_not_there_is_said() -> None:
    text = render_yaml(load(CONTMEC, [f"{HERE}.burst=32"]))
    del KINDS["weave"]
    with pytest.raises(ValueError, match="no enforcement 'weave' that has settings"):
        parse(text)


def test_editors_let_every_part_s_settings_be() -> None:
    said = json.loads(render_schema())["properties"]["settings"]["anyOf"][0]
    assert said["additionalProperties"]["additionalProperties"] == {"type": "object"}
