"""Which nodes a scenario's are in clusters that exist, and what speaks against a run there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.clusters.survey import Answers, needed, survey
from testbed.scenario import Scenario
from testbed.scenario.faults import render_path
from tests.unit.testbed.clusters.builders import (
    answers,
    configured,
    enforcement,
    node,
    scenario,
)


def found(wanted: Scenario, given: dict[str, Answers]) -> list[str]:
    _, faults = survey(wanted, enforcement(wanted), given)
    return [f"{render_path(path)}: {message}" for path, message in faults]


def real(wanted: Scenario, given: dict[str, Answers]) -> dict[tuple[str, str], str]:
    ground, faults = survey(wanted, enforcement(wanted), given)
    assert faults == []
    return {key: machine.name for key, machine in ground.machines.items()}


def test_nodes_of_the_same_names_are_the_scenarios() -> None:
    given = answers(node("worker-02"), node("another"), node("worker-01"))
    assert real(scenario(), given) == {
        (cluster, name): name for cluster in ("a", "b") for name in ("worker-01", "worker-02")
    }


def test_others_are_taken_in_order_and_usable_ones_only() -> None:
    taint = {"taints": [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]}
    given = answers(node("c"), node("a", spec=taint), node("d"), node("b", ready="False"))
    assert real(scenario(), given) == {
        ("a", "worker-01"): "c", ("b", "worker-01"): "c", ("a", "worker-02"): "d", ("b", "worker-02"): "d"
    }  # fmt: skip


def test_a_stated_name_goes_before_all() -> None:
    given = answers(node("ip-10-0-0-7"), node("worker-01"), node("worker-02"))
    assert real(scenario("nodes.worker-01.name=ip-10-0-0-7"), given)["a", "worker-01"] == "ip-10-0-0-7"


def test_masters_need_not_be_known() -> None:
    assert list(needed(scenario())) == ["worker-01", "worker-02"]


@pytest.mark.parametrize(
    ("overrides", "given", "fault"),
    [
        (
            ["nodes.worker-01.name=x"],
            answers(),
            "nodes.worker-01.name: cluster 'a' has no node 'x' (nodes: worker-01, worker-02)",
        ),
        (
            ["nodes.worker-01.name=worker-02"],
            answers(),
            "nodes.worker-02.name: worker-02 is 'worker-01' already",
        ),
        (
            [],
            answers(node("one")),
            "nodes.worker-02: no node is left for it that pods can run on and that clusters a and b share "
            "(nodes: a: one; b: one)",
        ),
        (
            [],
            answers(node("worker-01", spec={"unschedulable": True}), node("worker-02")),
            "nodes.worker-01: node 'worker-01' of cluster 'a' is cordoned",
        ),
        (
            [],
            {
                "a": answers()["a"],
                "b": Answers([node("worker-01", boot_id="x"), node("worker-02")], configured()),
            },
            "nodes.worker-01: 'worker-01' is one machine in cluster 'a' and another in 'b'",
        ),
        (
            [],
            answers(enforcement="pod"),
            "enforcement: node, but ConfigMap concorde in namespace concorde of cluster 'a' says pod; "
            "run with --set enforcement=pod, or change it",
        ),
        (
            ["count=payload"],
            answers(),
            "count: payload, but ConfigMap concorde in namespace concorde of cluster 'a' says layer2; "
            "run with --set count=layer2, or change it",
        ),
        (
            [],
            {name: Answers([node("worker-01"), node("worker-02")], {}) for name in ("a", "b")},
            "enforcement: node needs the plugin on the nodes, and there is no ConfigMap concorde in "
            "namespace concorde of cluster 'a': install it (docs/howto/existing-clusters.md)",
        ),
    ],
)
def test_what_speaks_against_a_run_is_named(
    overrides: list[str], given: dict[str, Answers], fault: str
) -> None:
    assert fault in found(scenario(*overrides), given)


def test_without_guarantees_no_plugin_is_needed() -> None:
    given = {name: Answers([node("worker-01"), node("worker-02")], {}) for name in ("a", "b")}
    assert found(scenario("enforcement=none"), given) == []


def test_one_cluster_is_not_taken_for_two() -> None:
    given = {name: replace(answer, uid="6f1e") for name, answer in answers().items()}
    assert found(scenario(), given) == [
        "clusters.b: its kubeconfig leads to the same cluster as that of 'a'; name a context: "
        "--kubeconfig b=FILE@CONTEXT"
    ]
    assert found(scenario(), {**given, "b": replace(given["b"], uid="7a2f")}) == []
