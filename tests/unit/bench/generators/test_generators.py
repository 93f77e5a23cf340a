"""Which generators there are, and what one that comes from outside must be able to do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import generators
from bench.console.statuses import BAD_INPUT
from bench.generators.iperf3 import Iperf3
from testbed.scenario import Scenario, ScenarioError, load, render_yaml, texts
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"


def test_a_transfer_that_names_no_generator_has_iperf3() -> None:
    scenario = load(CONTMEC)
    assert {type(generators.generator_of(scenario, traffic)) for traffic in scenario.traffic} == {Iperf3}
    assert "generator" not in render_yaml(scenario)


def test_a_generator_that_is_named_stays_named(tmp_path: Path) -> None:
    scenario = load(CONTMEC, ["flows[0].generator=iperf3"])
    assert isinstance(generators.generator_of(scenario, scenario.flows[0]), Iperf3)
    (tmp_path / "scenario.yaml").write_text(render_yaml(scenario))
    assert load(tmp_path / "scenario.yaml") == scenario


def test_a_generator_there_is_not_is_named_with_its_place() -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, ["flows[0].generator=x", "disturbances[0].generator=y"])
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{CONTMEC}: flows[0].generator: no generator 'x' (generators: iperf3")
    assert second.startswith(f"{CONTMEC}: disturbances[0].generator: no generator 'y' (generators: iperf3")


def test_the_command_line_knows_the_generators_before_it_reads_a_scenario() -> None:
    wanted = ["bench", "--set", "flows[0].generator=x", "--scenario", "contmec"]
    start = "from bench.cli import program; program.main()"
    code = f"import sys; sys.argv[1:] = {wanted}; {start}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == BAD_INPUT, done.stderr
    assert "flows[0].generator: no generator 'x' (generators: iperf3)" in done.stderr


def test_a_scenario_made_without_its_file_is_refused_too() -> None:
    scenario = load(CONTMEC)
    flow = scenario.flows[0].model_copy(update={"generator": "x"})
    with pytest.raises(LookupError, match=r"no generator 'x' \(generators: iperf3"):
        generators.guaranteed(scenario.model_copy(update={"flows": [flow]}))


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="there is a generator 'iperf3' already"):
        generators.register(Iperf3())


def test_what_is_guaranteed_has_a_promise_and_a_generator_that_uses_it(contmec: Scenario) -> None:
    assert generators.guaranteed(contmec) == contmec.flows
    free = load(CONTMEC, ["pods.A-1.guarantee=null"])
    assert generators.guaranteed(free) == free.flows[1:]


@pytest.fixture
def contmec() -> Scenario:
    return load(CONTMEC)


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (["disturbances[0].duration=3600", "disturbances[0].parallel=128"], "disturbances[0].duration"),
        (["flows[0].duration=86400"], "flows[0].duration"),
    ],
)
def test_more_output_than_is_read_is_refused_before_it_is_made(asked: list[str], where: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, asked)
    said = rf"{re.escape(where)}: its output may have \S+ bytes, and at most 268,435,456 are read"
    assert re.search(said, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("interval", [0.1, 1])
def test_hours_are_taken_and_a_day_with_longer_intervals(interval: float) -> None:
    flow = load(CONTMEC).flows[0].model_copy(update={"duration": 28_800 if interval < 1 else 86_400})
    assert Iperf3().most_bytes(flow, interval) < texts.MOST_BYTES
