"""How a cluster's components on its master are started, and where they are reached."""

from __future__ import annotations

from testbed.kubernetes.control_plane import api_server_arguments, client_arguments, endpoint
from testbed.overlays.pod_network import etcd_arguments
from testbed.scenario.addressing import Addressing
from testbed.supplies import versions
from tests.unit.testbed.builders import addressed

OLD, NEW = versions.parse("1.20.2"), versions.parse("1.30.0")


def test_clusters_with_masters_of_their_own_have_the_usual_port(contmec: Addressing) -> None:
    assert [endpoint(contmec, name)[1] for name in contmec.scenario.clusters] == [6443, 6443]
    shared = addressed("contmec", "clusters.b.master=master-01")
    assert [endpoint(shared, name) for name in shared.scenario.clusters] == [
        ("192.168.56.11", 6443),
        ("192.168.56.11", 6444),
    ]


def test_nothing_serves_that_need_not_and_no_flag_is_used_that_a_version_lacks() -> None:
    assert "--port=0" in client_arguments("kube-scheduler", OLD, "/run/kubernetes/a")
    assert "--port=0" not in client_arguments("kube-scheduler", NEW, "/run/kubernetes/a")
    manager = client_arguments("kube-controller-manager", OLD, "/run/kubernetes/a")
    assert "--allocate-node-cidrs=false" in manager
    assert "--secure-port=0" in manager


def test_api_server_and_etcd_find_each_other() -> None:
    url = "http://127.0.0.1:2379"
    assert f"--listen-client-urls={url}" in etcd_arguments("/data", url, 2380)
    arguments = api_server_arguments("/run/kubernetes/a", "192.168.56.11", 6443, 2379)
    assert "--etcd-servers=http://127.0.0.1:2379" in arguments
    assert "--authorization-mode=Node,RBAC" in arguments
