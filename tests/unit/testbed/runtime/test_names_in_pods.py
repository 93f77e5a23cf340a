"""How pods of a scenario ask for names, and whom."""

from __future__ import annotations

import json
from ipaddress import IPv4Network

import pytest

from edge.services.catalogue import Catalogue, Where
from edge.services.endpoints import slice_of
from edge.services.names import line_of
from edge.services.proxy import listed
from edge.services.rules import Port, Target
from testbed.runtime import names
from testbed.runtime.services import render
from testbed.scenario import load, services
from testbed.scenario.addressing import Addressing
from tests.paths import ROOT

BOTH = Addressing(load(ROOT / "scenarios" / "examples" / "services.yaml"))


def test_each_node_answers_its_own_pods_at_a_port_of_each_cluster() -> None:
    for cluster, network, number in (("a", "10.96", 10_053), ("b", "10.97", 10_054)):
        catalogue = Catalogue(Where(IPv4Network(f"{network}.0.0/16"), "worker-02"))
        for news in listed(json.loads(render(BOTH, cluster, {}))):
            catalogue.take(news)
        found = catalogue.changes()["kube-system", "kube-dns"]
        assert found.left == ()
        own = {Target(str(BOTH.address("worker-02")), number)}
        assert {port: one.chosen for port, one in found.ports.items()} == {
            Port(f"{network}.0.10", protocol, 53): own for protocol in ("udp", "tcp")
        }
        assert names.port(BOTH, cluster) == number


def test_a_pod_looks_for_names_as_kubelet_has_it() -> None:
    assert names.resolv_conf(BOTH, "b") == (
        "search default.svc.cluster.local svc.cluster.local cluster.local\n"
        "nameserver 10.97.0.10\n"
        "options ndots:5\n"
    )
    settings = names.kubelet_settings(BOTH, "b")
    assert settings == {"clusterDNS": ["10.97.0.10"], "clusterDomain": "cluster.local"}


def test_an_api_is_told_in_its_versions_words() -> None:
    for version, group, annotated in (((1, 20), "v1beta1", True), ((1, 30), "v1", False)):
        service, endpoints = names.objects(BOTH, "b", version, str.upper)
        policy = "concorde.contmec.dev/internal-traffic-policy"
        assert (service["metadata"]["annotations"] == {policy: "Local"}) == annotated
        assert endpoints["apiVersion"] == f"discovery.k8s.io/{group}"
        nodes = [one.node for one in slice_of(endpoints).endpoints]
        assert nodes == ["WORKER-01", "WORKER-02"]


def test_clusters_without_services_have_no_names() -> None:
    scenario = BOTH.scenario
    one = {name: service for name, service in scenario.services.items() if service.cluster == "b"}
    alone = Addressing(scenario.model_copy(update={"services": one}))
    assert names.kubelet_settings(alone, "a") == {}
    written = [step.argv[-1] for step in names.preparation(alone, "worker-01") if step.argv[0] == "tee"]
    assert written == [names.resolver("b")]
    assert names.preparation(alone, "master-01") == []


def test_every_service_of_a_scenario_has_a_name() -> None:
    """What a scenario may be called, in small letters, is a part of a name."""
    found = json.loads(render(BOTH, "a", {}))["items"]
    assert [line_of(one) for one in found if one["kind"] == "Service"] == [
        "10.96.0.11 web.default.svc.cluster.local\n",
        "10.96.0.10 kube-dns.kube-system.svc.cluster.local\n",
    ]


@pytest.mark.parametrize(
    ("network", "address", "first", "last"),
    [
        ("10.96.0.0/16", "10.96.0.10", "10.96.0.11", "10.96.255.254"),
        ("10.96.0.0/27", "10.96.0.10", "10.96.0.11", "10.96.0.30"),
        ("10.96.0.0/28", "10.96.0.14", "10.96.0.2", "10.96.0.13"),
        ("10.96.0.0/29", "10.96.0.6", "10.96.0.2", "10.96.0.5"),
    ],
)
def test_no_service_gets_the_address_at_which_names_are_asked(
    network: str, address: str, first: str, last: str
) -> None:
    within = IPv4Network(network)
    assert str(services.of_names(within)) == address
    given = [str(one) for one in services.usable(within)]
    assert (given[0], given[-1]) == (first, last)
    assert address not in given
