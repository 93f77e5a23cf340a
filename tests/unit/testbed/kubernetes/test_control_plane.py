"""How a cluster's components on its master are started, and where they are reached."""

from __future__ import annotations

import base64
import json
from ipaddress import IPv4Network

from testbed.kubernetes.control_plane import (
    Subject,
    api_server_arguments,
    at_server,
    client_arguments,
    endpoint,
    render_kubeconfig,
    render_request,
)
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
    gate = "--feature-gates=LocalStorageCapacityIsolation=false"
    assert gate in client_arguments("kube-scheduler", OLD, "/run/kubernetes/a")
    assert gate not in client_arguments("kube-scheduler", NEW, "/run/kubernetes/a")
    manager = client_arguments("kube-controller-manager", OLD, "/run/kubernetes/a")
    assert "--allocate-node-cidrs=false" in manager
    assert "--secure-port=0" in manager


def test_api_server_and_etcd_find_each_other() -> None:
    url = "http://127.0.0.1:2379"
    assert f"--listen-client-urls={url}" in etcd_arguments("/data", url, 2380)
    arguments = api_server_arguments(
        "/run/kubernetes/a", "192.168.56.11", 6443, 2379, IPv4Network("10.97.0.0/16")
    )
    assert "--etcd-servers=http://127.0.0.1:2379" in arguments
    assert "--authorization-mode=Node,RBAC" in arguments
    assert "--service-cluster-ip-range=10.97.0.0/16" in arguments


def test_a_request_names_user_groups_and_addresses() -> None:
    text = render_request(Subject("system:node:w", ["system:nodes"], ["192.168.56.13", "w"]))
    assert "0.O = system:nodes\nCN = system:node:w\n" in text
    assert "subjectAltName = IP:192.168.56.13, DNS:w\n" in text
    assert "CA:FALSE" in text
    assert "CA:TRUE" in render_request(Subject("authority", authority=True))


def test_a_kubeconfig_has_all_it_needs_and_can_be_pointed_elsewhere() -> None:
    config = json.loads(render_kubeconfig("a", "https://192.168.56.11:6443", "AUTHORITY", "IDENTITY"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"AUTHORITY"
    assert base64.b64decode(user["client-key-data"]) == b"IDENTITY"
    moved = json.loads(at_server(json.dumps(config), "https://127.0.0.1:40000"))
    assert moved["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:40000"
    assert moved["users"] == config["users"]
