"""Machines that are clusters already: how a scenario's pods get there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.access.place import Result
from testbed.clusters import kubeconfigs
from testbed.enforcements import registry
from testbed.orchestrators.clusters import PodsOnMachines
from testbed.scenario.addressing import Addressing
from tests.doubles import RecordingNode, said


def machines(addressing: Addressing, left: Result) -> dict[str, RecordingNode]:
    """Return machines on which every command leaves the same."""
    return {name: RecordingNode(name, lambda _: left) for name in addressing.nodes}


def pods_on(addressing: Addressing, nodes: Mapping[str, RecordingNode]) -> PodsOnMachines:
    return PodsOnMachines(addressing, registry.of(addressing), nodes)


def test_each_cluster_of_a_machine_is_entered_by_its_own_cell(contmec: Addressing) -> None:
    there = machines(contmec, said(""))
    pods = pods_on(contmec, there)
    assert set(pods.entered) == {
        ("a", "master-01"), ("b", "master-02"),
        *((cluster, worker) for cluster in "ab" for worker in ("worker-01", "worker-02")),
    }  # fmt: skip
    pods.entered["b", "worker-01"].run(["true"])
    assert there["worker-01"].commands == [["/opt/concorde-testbed/bin/in-cell", "b", "true"]]


def test_pods_are_entered_by_the_containerd_of_their_cluster(contmec: Addressing) -> None:
    """And not through an API, of which they would depend while traffic flows."""
    there = machines(contmec, said(""))
    client = kubeconfigs.Outside("b", there["master-01"], "kubectl", "b.conf")
    pod = {"status": {"containerStatuses": [{"containerID": "containerd://0123"}]}}
    origin, way = pods_on(contmec, there).way_into("B-1", client, pod)
    origin.run([*way, "true"])
    assert there["master-01"].asked == []
    (asked,) = there[contmec.scenario.pods["B-1"].node].commands
    assert asked[:2] == ["/opt/concorde-testbed/bin/in-cell", "b"]
    assert "ctr --namespace=k8s.io tasks exec" in asked[4]
    assert asked[-2:] == ["0123", "true"]


def test_machines_that_are_no_clusters_are_refused_with_what_to_do(
    contmec: Addressing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfigs, "kubectl", lambda: "kubectl")
    pods = pods_on(contmec, machines(contmec, Result(127, "", "No such file or directory")))
    with pytest.raises(
        LookupError, match=r"master-01 is not a master of cluster 'a' .* \./invokew provision"
    ):
        pods.up(lambda _: None)
    assert pods.pods == {}
    pods.down()


def test_a_kubeconfig_is_for_nobody_else_and_stays_nowhere(
    contmec: Addressing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfigs, "kubectl", lambda: "kubectl")
    pods = pods_on(contmec, machines(contmec, said("secret")))
    file = Path(pods._client("a").kubeconfig)
    assert file.read_text() == "secret"
    assert file.stat().st_mode & 0o077 == 0
    assert file.stat().st_nlink == 0
    pods.down()
    assert not file.exists()


def test_containers_are_no_matter_of_the_clusters(contmec: Addressing) -> None:
    pods = pods_on(contmec, machines(contmec, said("")))
    assert pods._scenario.containers == {}
    assert pods._scenario.pods == contmec.scenario.pods
