"""Machines that are clusters already: how a scenario's pods get there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from testbed.access.place import CommandError, Process, Result
from testbed.assembly import assemble
from testbed.clusters import kubeconfigs
from testbed.orchestrators.clusters.on_machines import MachinesTestbed, PodsOnMachines
from testbed.scenario import Scenario, load
from tests.paths import ROOT


class Machine:
    """A machine that answers every command alike, or not at all."""

    cgroup = ""

    def __init__(self, name: str, answer: str | None) -> None:
        self.name = name
        self._answer = answer
        self.asked: list[list[str]] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 60,
    ) -> Result:
        self.asked.append(list(argv))
        if self._answer is None:
            raise CommandError(self.name, argv, 127, "No such file or directory")
        return Result(0, self._answer, "")

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        raise NotImplementedError

    attach = start


@pytest.fixture
def contmec() -> Scenario:
    return load(ROOT / "scenarios" / "contmec.yaml")


def machines(scenario: Scenario, answer: str | None) -> dict[str, Machine]:
    return {name: Machine(name, answer) for name in scenario.nodes}


def test_each_cluster_of_a_machine_is_entered_by_its_own_cell(contmec: Scenario) -> None:
    there = machines(contmec, "")
    pods = PodsOnMachines(contmec, there)
    assert set(pods.entered) == {
        ("a", "master-01"), ("b", "master-02"),
        *((cluster, worker) for cluster in "ab" for worker in ("worker-01", "worker-02")),
    }  # fmt: skip
    pods.entered["b", "worker-01"].run(["true"])
    assert there["worker-01"].asked == [["/opt/concorde-testbed/bin/in-cell", "b", "true"]]


def test_pods_are_entered_by_the_containerd_of_their_cluster(contmec: Scenario) -> None:
    """And not through an API, of which they would depend while traffic flows."""
    there = machines(contmec, "")
    client = kubeconfigs.Outside("b", there["master-01"], "kubectl", "b.conf")
    pod = {"status": {"containerStatuses": [{"containerID": "containerd://0123"}]}}
    origin, way = PodsOnMachines(contmec, there).way_into("B-1", client, pod)
    origin.run([*way, "true"])
    assert there["master-01"].asked == []
    (asked,) = there[contmec.pods["B-1"].node].asked
    assert asked[:2] == ["/opt/concorde-testbed/bin/in-cell", "b"]
    assert "ctr --namespace=k8s.io tasks exec" in asked[4]
    assert asked[-2:] == ["0123", "true"]


def test_machines_that_are_no_clusters_are_refused_with_what_to_do(
    contmec: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfigs, "kubectl", lambda: "kubectl")
    pods = PodsOnMachines(contmec, machines(contmec, None))
    with pytest.raises(LookupError, match=r"master-01 is no master of cluster 'a' .* \./invokew provision"):
        pods.up(lambda _: None)
    assert pods.pods == {}
    pods.down()


def test_a_kubeconfig_is_for_nobody_else_and_stays_nowhere(
    contmec: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfigs, "kubectl", lambda: "kubectl")
    pods = PodsOnMachines(contmec, machines(contmec, "secret"))
    file = Path(pods._client("a").kubeconfig)
    assert file.read_text() == "secret"
    assert file.stat().st_mode & 0o077 == 0
    assert file.stat().st_nlink == 0
    pods.down()
    assert not file.exists()


def test_containers_are_no_matter_of_the_clusters(contmec: Scenario) -> None:
    pods = PodsOnMachines(contmec, machines(contmec, ""))
    assert pods.scenario.containers == {}
    assert pods.scenario.pods == contmec.pods


def test_kubernetes_on_machines_is_what_was_provisioned(contmec: Scenario, tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yaml"
    hosts = "".join(f"    {name}: {{ansible_host: 192.0.2.1}}\n" for name in contmec.nodes)
    inventory.write_text(f"all:\n  hosts:\n{hosts}")
    assert isinstance(assemble(contmec, f"ssh:{inventory}", "kubernetes"), MachinesTestbed)
    assert not isinstance(assemble(contmec, f"ssh:{inventory}", "cni"), MachinesTestbed)
