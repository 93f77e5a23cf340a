"""Which TCP ports Kubernetes has on a node that several clusters may share."""

from __future__ import annotations

from testbed.scenario import ports
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


def test_clusters_with_masters_of_their_own_have_the_usual_port(contmec: Addressing) -> None:
    assert [ports.api(contmec, name) for name in contmec.scenario.clusters] == [6443, 6443]


def test_of_two_clusters_with_one_master_the_second_has_the_next_port() -> None:
    shared = addressed("contmec", "clusters.b.master=master-01")
    assert [ports.api(shared, name) for name in shared.scenario.clusters] == [6443, 6444]
    assert ports.control(shared, "master-01") == [22, 6443, 6444, 10250, 20250]


def test_the_second_kubelet_of_a_node_has_control_traffic_too(contmec: Addressing) -> None:
    assert ports.control(contmec, "master-01") == [22, 6443, 10250]
    assert ports.control(contmec, "worker-02") == [22, 6443, 10250, 20250]
