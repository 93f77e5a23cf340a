"""Scenarios as files: read, overridden, scaled, written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from testbed.scenario import ScenarioError, load, render_schema, render_yaml
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
NETWORKS = SCENARIOS / "networks"
FILES = sorted(file for file in SCENARIOS.rglob("*.yaml") if file.parent != NETWORKS)
CONTMEC = SCENARIOS / "contmec.yaml"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_scenario_as_run_reads_back_as_the_same(file: Path, tmp_path: Path) -> None:
    scenario = load(file)
    copy = tmp_path / "as-run.yaml"
    copy.write_text(render_yaml(scenario))
    assert load(copy) == scenario


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_editors_find_the_schema_that_a_scenario_names(file: Path) -> None:
    first = file.read_text(encoding="utf-8").partition("\n")[0]
    named = first.removeprefix("# yaml-language-server: $schema=")
    assert (file.parent / named).resolve() == SCENARIOS / "scenario.schema.json"


def test_overrides_reach_lists_mappings_and_absent_fields() -> None:
    scenario = load(CONTMEC, ["flows[1].duration=5", "pods.A-3.guarantee=7M", "thresholds.mean=0.5"])
    assert scenario.flows[1].duration == 5
    assert scenario.pods["A-3"].guarantee == 7_000_000
    assert scenario.thresholds.mean == 0.5


def test_what_has_a_name_is_added_as_a_whole() -> None:
    scenario = load(CONTMEC, ["pods.new={cluster: a, node: worker-01}", "pods.new.guarantee=5M"])
    assert scenario.pods["new"].guarantee == 5_000_000


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("flows[7].to=A-1", "--set: flows[7]: there are 3 of these, counted from 0"),
        ("pods.nosuch.guarantee=1G", "--set: pods.nosuch: no pod 'nosuch' (pods: A-1, A-2, A-3, A-4, B-1, "),
        ("clusters.c.flannel.vni=3", "--set: clusters.c: no cluster 'c' (clusters: a, b)"),
        ("nodes.worker-9.rate=1G", "--set: nodes.worker-9: no node 'worker-9' (nodes: master-01, "),
        ("containers.x.node=worker-01", "--set: containers.x: no container 'x' (containers: container-1, "),
        ("zones.far.delay=1", "--set: zones.far: no zone 'far' (zones: none)"),
        ("flows[0]", "--set: 'flows[0]' is not path=value"),
        ("=3", "--set: '=3' is not path=value"),
        ("flows.to=3", "--set: flows.to: no such field"),
        ("name[0]=3", "--set: name[0]: no such field"),
        ("name=[", "--set: name: '[' is not a YAML value"),
        ("title='\x1b[31m'", "--set: title: \"'\\x1b[31m'\" is not a YAML value"),
        (f"flows[{'9' * 5000}].to=x", "--set: 'flows[9999"),
        (f"{'a.' * 50}a=x", "--set: 'a.a.a."),
    ],
)
def test_an_override_that_points_nowhere(override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [override])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("scale", [0, -1, float("nan"), 1e9])
def test_a_scale_that_is_none(scale: float) -> None:
    with pytest.raises(ScenarioError, match="--scale"):
        load(CONTMEC, scale=scale)


def test_a_file_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yaml")
    with pytest.raises(ScenarioError, match="not a regular file"):
        load(tmp_path / "fifo.yaml")
    with pytest.raises(ScenarioError, match="not a file, but a directory"):
        load(tmp_path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="No such file"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="not UTF-8"):
        load(tmp_path / "binary.yaml")


def test_the_committed_schema_is_current() -> None:
    assert (SCENARIOS / "scenario.schema.json").read_text() == render_schema()
    assert json.loads(render_schema())["additionalProperties"] is False
