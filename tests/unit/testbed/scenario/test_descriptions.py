"""Networks as data: what is read of a description, and what is refused with the path to the fault."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from testbed.scenario import ScenarioError, descriptions, enforcements, load, render_yaml
from testbed.scenario.descriptions import Claim, Told
from tests.paths import ROOT

CONTMEC = re.sub("enforcement:.*", "", (ROOT / "scenarios" / "contmec.yaml").read_text(encoding="utf-8"))
CONFLIST = {
    "cniVersion": "1.0.0",
    "name": "${name}",
    "plugins": [{"type": "toy", "subnet": "${subnet}", "capabilities": {"bandwidth": True}}],
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a directory with a scenario, a description beside it, and what that names."""
    (tmp_path / "nets" / "bin").mkdir(parents=True)
    (tmp_path / "nets" / "toy.conflist").write_text(json.dumps(CONFLIST))
    (tmp_path / "nets" / "toy.yaml").write_text(
        "claims: [ceiling]\ntold: capability\nconflist: toy.conflist\nplugins: bin\n"
    )
    (tmp_path / "mine.yaml").write_text(CONTMEC + "\nnetwork: nets/toy.yaml\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "claims", "told"),
    [
        ("none", set(), "annotation"),
        ("pod", {"floor", "ceiling"}, "annotation"),
        ("node", {"floor", "ceiling"}, "annotation"),
        ("bandwidth", {"ceiling"}, "capability"),
        ("ptp-bandwidth", {"ceiling"}, "capability"),
        ("bridge-firewall-bandwidth", {"ceiling"}, "capability"),
        ("macvlan", set(), "nothing"),
        ("ptp-concorde", {"floor", "ceiling"}, "annotation"),
    ],
)
def test_every_shipped_network_says_what_it_claims(name: str, claims: set[Claim], told: Told) -> None:
    kind = enforcements.of(load(ROOT / "scenarios" / "congested.yaml", [f"network={name}"]))
    assert kind.name == name
    assert set(kind.claims) == claims
    assert kind.told == told
    assert name in descriptions.shipped()


def test_a_ceiling_is_no_promise() -> None:
    kind = enforcements.kind_of(descriptions.of_name("bandwidth"))
    assert not kind.promises


def test_a_path_is_relative_to_the_scenario_and_what_is_read_is_whole(files: Path) -> None:
    scenario = load(files / "mine.yaml")
    description = enforcements.description_of(scenario)
    assert (scenario.kept_by, description.conflist) == ("toy", CONFLIST)
    assert description.plugins == str(files / "nets" / "bin")


def test_a_recorded_scenario_needs_none_of_its_files(files: Path) -> None:
    scenario = load(files / "mine.yaml")
    elsewhere = files / "recorded.yaml"
    elsewhere.write_text(render_yaml(scenario))
    for file in (files / "nets").glob("toy.*"):
        file.unlink()
    assert load(elsewhere) == scenario


def test_a_recording_is_read_where_the_plugins_are_not(files: Path) -> None:
    scenario = load(files / "mine.yaml")
    elsewhere = files / "recorded.yaml"
    elsewhere.write_text(render_yaml(scenario))
    (files / "nets" / "bin").rmdir()
    assert load(elsewhere) == scenario


def test_a_description_may_stand_in_the_scenario_itself(files: Path) -> None:
    file = files / "inline.yaml"
    file.write_text(CONTMEC + "\nenforcement: {name: own, conflist: nets/toy.conflist, told: nothing}\n")
    assert enforcements.description_of(load(file)).conflist == CONFLIST


def test_a_path_on_the_command_line_is_seen_from_there(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files / "nets")
    assert load(ROOT / "scenarios" / "contmec.yaml", ["enforcement=./toy.yaml"]).kept_by == "toy"


def test_shipped_names_stay_names_in_what_is_recorded() -> None:
    scenario = load(ROOT / "scenarios" / "contmec.yaml", ["network=bandwidth"])
    assert "enforcement: bandwidth\n" in render_yaml(scenario)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("network: macvlna", r"mine.yaml: enforcement: input should be .* \(did you mean 'macvlan'\?\)"),
        ("network: pod\nenforcement: pod", r"mine.yaml: network and enforcement are the same setting"),
        ("network: nets/other.yaml", r"mine.yaml: enforcement: .*nets/other.yaml: No such file or directory"),
        (
            "network: {name: a, claims: [guarantee]}",
            r"enforcement.claims\[0\]: input should be 'floor', ",
        ),
        ("network: {name: a, claim: [floor]}", r"enforcement.claim: no such field"),
        ("network: {name: a, claims: [floor]}", r"enforcement.told: must be annotation or capability"),
        ("network: {name: a, conflist: mine.yaml}", r"enforcement.conflist: .*mine.yaml is not JSON: "),
        ("network: {name: a, conflist: none}", r"enforcement.conflist: .*/none: No such file"),
        ("network: {name: a, conflist: {}}", r"enforcement.conflist.plugins: expected a list of plugins"),
        (
            "network: {name: a, conflist: {plugins: [{type: x}, {type: ../x}]}}",
            r"enforcement.conflist.plugins\[1\].type: expected the name of a plugin's program",
        ),
        (
            "network: {name: a, conflist: {plugins: [{type: x, ipam: {range: '${subnets}'}}]}}",
            r"plugins\[0\].ipam.range: no placeholder \$\{subnets\} \(did you mean 'subnet'\?\)",
        ),
        (
            "network: {name: a, told: capability, conflist: {plugins: [{type: x}]}}",
            r"enforcement.told: no plugin of conflist has .capabilities",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_path(files: Path, said: str, message: str) -> None:
    (files / "mine.yaml").write_text(f"{CONTMEC}\n{said}\n")
    with pytest.raises(ScenarioError, match=message):
        load(files / "mine.yaml")


def test_a_fault_in_a_file_of_its_own_names_that_file(files: Path) -> None:
    (files / "nets" / "toy.yaml").write_text("claims: floor\n")
    with pytest.raises(ScenarioError, match=r"^\S*/nets/toy.yaml: claims: input should be a valid list"):
        load(files / "mine.yaml")
