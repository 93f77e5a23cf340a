"""YAML as scenarios use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.scenario import ScenarioError, load
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nname: b\n", "line 2, column 1: found duplicate key"),
        ("pods:\n  A: {}\n  A: {}\n", "found duplicate key"),
        ("name: [\n", "not YAML"),
        ("- a list\n", "not a scenario"),
        ("", "not a scenario"),
        ("name: a\n---\nname: b\n", "line 2, column 1: expected a single document"),
        ("1: x\n", "line 1, column 1: the key '1' must be a string; write it in quotes"),
        ("? [a]\n: x\n", "line 1, column 3: a key must be a string"),
        ("name: *a\n", "line 1, column 7: undefined alias *a"),
        ("<<: 1\n", "line 1, column 5: << must be a mapping"),
        ('"a\\nb\\e": x\n', "['a\\nb\\x1b']: no such field"),
        ("name: !!python/object:os.system x\n", "python/object:os.system' is not supported"),
        ("name: x\n", "nodes: this field is required"),
    ],
)
def test_a_file_that_is_no_scenario(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("title", ["2022-02-30", "2022-02-03", "12:30:45", "yes", "0b12", "1_000", "9" * 50])
def test_what_other_yaml_takes_for_dates_and_numbers_is_text(title: str) -> None:
    assert load(CONTMEC, [f"title={title}"]).title == title


def test_what_is_used_twice_is_changed_once(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    text = (
        CONTMEC.read_text().replace("  A-3: {", "  A-3: &here {").replace("  A-4: {", "  A-4: {<<: *here, ")
    )
    file.write_text(text.replace("{<<: *here, cluster: a, node: worker-02}", "*here"))
    scenario = load(file, ["pods.A-4.guarantee=1G"])
    assert (scenario.pods["A-3"].guarantee, scenario.pods["A-4"].guarantee) == (None, 10**9)


def test_merged_mappings_give_way_to_what_is_stated_and_to_those_before(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    merged = "  A-4: {<<: [{node: worker-02}, {node: worker-01, cluster: b}], cluster: a}\n"
    lines = CONTMEC.read_text().splitlines(keepends=True)
    file.write_text("".join(merged if line.startswith("  A-4:") else line for line in lines))
    assert load(file) == load(CONTMEC)
