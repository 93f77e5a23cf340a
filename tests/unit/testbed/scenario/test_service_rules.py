"""What a scenario says of services: what is refused, what is warned of, and where services are."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import generators  # noqa: F401 - they have a say in what a scenario may ask for
from testbed import assembly
from testbed.scenario import Scenario, ScenarioError, load, render_yaml, service_rules, services
from testbed.scenario.addressing import Addressing
from tests import effort
from tests.paths import ROOT

SERVICES = ROOT / "scenarios" / "examples" / "services.yaml"
CONTMEC = ROOT / "scenarios" / "contmec.yaml"
ONE = "services.web={cluster: a, pods: [A-4]}"

WEB = "services.web"
FAULTS = {
    f"{WEB}={{cluster: a, pods: [A-2, A-3, A-9]}}": f"{WEB}.pods[2]: no pod 'A-9' (pods: A-1, A-2, A-3, A-4)",
    f"{WEB}={{cluster: a, pods: [A-2, A-3, B-1]}}": f"{WEB}.pods[2]: 'B-1' is in cluster 'b', not in 'a' "
    "(pods: A-1, A-2, A-3, A-4)",
    f"{WEB}={{cluster: a, pods: [A-2, A-3, A-2]}}": f"{WEB}.pods[2]: 'A-2' is named twice in this service",
    f"{WEB}={{cluster: a, pods: []}}": f"{WEB}.pods: list should have at least 1 item",
    f"{WEB}.cluster=c": f"{WEB}.cluster: no cluster 'c' (clusters: a, b)",
    f"{WEB}.port=0": f"{WEB}.port: input should be greater than or equal to 1",
    f"{WEB}.port=65536": f"{WEB}.port: input should be less than or equal to 65535",
    f"{WEB}.hints=aUto": f"{WEB}.hints: input should be 'off', 'auto', 'strict', 'close' or 'nearest'",
    f"{WEB}.address=10.97.0.20": f"{WEB}.address: 10.97.0.20 is not in 10.96.0.0/16, where cluster 'a' has "
    "its services; set its service_cidr, or another address",
    f"{WEB}.address=10.96.0.0": f"{WEB}.address: 10.96.0.0 is the first address of 10.96.0.0/16",
    f"{WEB}.address=10.96.255.255": f"{WEB}.address: 10.96.255.255 is the last address of",
    f"{WEB}.address=10.96.0.1": f"{WEB}.address: 10.96.0.1 is the address of the cluster's API; take one "
    "from 10.96.0.2 on",
    f"{WEB}.address=10.96.0.10": f"{WEB}.address: 10.96.0.10 is where the cluster's pods ask for names of "
    "services; take another, or none: 10.96.0.11 is the first",
    "services.1st={cluster: a, pods: [A-2]}": "services.1st: a service's name must begin with a letter",
    "services.Kubernetes={cluster: a, pods: [A-2]}": "services.Kubernetes: so the service of a cluster's API "
    "is called: take another name",
    "services.a-1={cluster: a, pods: [A-2]}": "services.a-1: the name is taken by pods.A-1",
    "services.WEB={cluster: a, pods: [A-2]}": "services.WEB: the name is taken by services.web",
    "requests[0].from=B-1": "requests[0].to: 'web' is in cluster 'a', 'B-1' in 'b'",
    "requests[0].from=data": "requests[0].from: no pod 'data'",
    "requests[0].to=wep": "requests[0].to: no pod or service 'wep' (pods or services: A-1, A-2, A-3, A-4,",
    "flows=[{from: A-2, to: web}]": "flows[0].to: service 'web' has 3 pods, and a flow's connections may get "
    "different ones: send it to a pod, or to a service of one; or make requests",
    "enforcement=macvlan": "services: network macvlan gives pods addresses of the underlay",
}
CLUSTERS = {
    "clusters.a.service_cidr=10.96.0.0/29": "services: 10.96.0.0/29 has no address left for service 's3': "
    "set a larger service_cidr, or addresses",
    "clusters.a.pod_cidr=10.0.0.0/8": "clusters.a.service_cidr: no /16 from 10.96.0.0/16 on is free for its "
    "services: set a range",
}


def refused(*overrides: str, file: Path = SERVICES) -> str:
    with pytest.raises(ScenarioError) as caught:
        load(file, list(overrides))
    return str(caught.value)


@pytest.mark.parametrize("override", FAULTS)
def test_each_fault_is_named_with_its_place_and_what_would_be_right(override: str) -> None:
    (line,) = refused(override).splitlines()
    assert line.startswith(f"{SERVICES}: {FAULTS[override]}")


@pytest.mark.parametrize("override", CLUSTERS)
def test_a_range_has_room_and_is_nobody_elses(override: str) -> None:
    more = [f"services.s{number}={{cluster: a, pods: [A-2]}}" for number in range(5)]
    assert CLUSTERS[override] in refused(override, *more)


def test_ports_end() -> None:
    more = "requests[1]={name: two, from: A-1, to: web, rate: 1}"
    assert (
        "services.web.port: 2 transfers need ports from 65535 on, and 65535 is the last; at most 65534"
        in (refused("services.web.port=65535", more))
    )


def test_a_container_asks_no_service() -> None:
    noise = "disturbances[0].to=web"
    said = refused(ONE, noise, "disturbances[0].from=container-1", file=CONTMEC)
    assert "disturbances[0].to: a container does not reach service 'web', which is for pods" in said


def test_who_has_no_address_has_the_next_that_is_free() -> None:
    fixed = "services.fixed={cluster: a, pods: [A-2], address: 10.96.0.11}"
    one = load(SERVICES, ["services.web.address=null", fixed, "services.last={cluster: a, pods: [A-2]}"])
    found = {name: str(Addressing(one).service(name)) for name in one.services}
    assert found == {"web": "10.96.0.12", "data": "10.97.0.11", "fixed": "10.96.0.11", "last": "10.96.0.13"}


def test_what_is_sent_to_a_service_has_one_port_after_the_other() -> None:
    more = "requests[1]={name: two, from: A-1, to: web, rate: 1}"
    one = load(SERVICES, [more, "services.web.port=8080", "flows=[{from: A-1, to: A-2, rate: 1M}]"])
    addressing = Addressing(one)
    assert services.ports(one) == {"web": 8080, "two": 8081}
    assert [addressing.port_for(transfer) for transfer in one.transfers] == [5201, 8080, 8081]
    assert [addressing.port_of(transfer) for transfer in one.transfers] == [5201, 5202, 5203]
    assert one.receivers_of(one.requests[0]) == ("A-2", "A-3", "A-4")
    assert one.paths_of(one.requests[0]) == (
        ("worker-01", "worker-01"),
        ("worker-01", "worker-02"),
        ("worker-01", "worker-02"),
    )


def test_a_flow_may_go_to_a_service_of_one_pod() -> None:
    one = load(CONTMEC, [ONE, "flows[0].to=web"])
    assert one.nodes_of(one.flows[0]) == ("worker-01", "worker-02")


def test_services_may_share_an_address() -> None:
    fixed = "services.web.address=10.96.0.20"
    same = "services.more={cluster: a, pods: [A-2], address: 10.96.0.20, port: 8%d}"
    assert "services.more.port: services.web has port 80 of 10.96.0.20 already; take another" in (
        refused(fixed, same % 0)
    )
    one = load(SERVICES, [fixed, same % 1])
    assert {str(Addressing(one).service(name)) for name in ("web", "more")} == {"10.96.0.20"}


def test_a_scenario_without_services_is_written_as_ever() -> None:
    assert "services" not in render_yaml(load(CONTMEC, ()))
    assert "services:\n  web:\n" in render_yaml(load(SERVICES, ()))


def stations(*overrides: str, hints: str = "auto") -> Scenario:
    """Return two clusters on workers of two zones."""
    zones = [
        "zones={left: {delay: 0.001}, right: {delay: 0.001}}",
        *(f"nodes.{name}={{zone: left}}" for name in ("master-01", "master-02", "worker-01")),
        "nodes.worker-02={zone: right}",
    ]
    return load(SERVICES, [*zones, f"services.data.hints={hints}", *overrides])


WARNINGS = {
    (
        "nodes.worker-02={zone: left}",
        "zones={left: {}}",
    ): "Nodes only ready in one zone: left has all 2 ready nodes; use workers of two zones, or hints: off",
    ("nodes.worker-01={zone: left, cpus: 4}",): "Insufficient Node information: allocatable CPU or zone not "
    "specified on one or more nodes: worker-02 has no allocatable CPU; set zone of every worker, and cpus of "
    "every one or of none",
    ("services.data.pods=[B-1]",): "Insufficient number of endpoints (1 endpoints, 2 zones): each of left, "
    "right needs one; there would be some with",
}


@pytest.mark.parametrize("overrides", WARNINGS)
def test_a_safeguard_is_named(overrides: tuple[str, ...]) -> None:
    (said,) = service_rules.warned(stations(*overrides))
    assert said.startswith(f"services.data.hints: all nodes use all endpoints: {WARNINGS[overrides]}")


def test_hints_of_a_local_service_are_ignored_and_that_is_said() -> None:
    (said,) = service_rules.warned(stations("services.data.policy=Local"))
    assert said == "services.data.hints: ignored, because policy is Local: use policy: Cluster, or hints: off"


def test_who_asks_a_local_service_from_elsewhere_asks_in_vain() -> None:
    local = "services.web={cluster: a, pods: [A-3, A-4], policy: Local}"
    assert service_rules.warned(load(SERVICES, [local])) == [
        "requests[0].to: 'web' is Local and has no pod on worker-01, where 'A-1' is: all is refused; "
        "use policy: Cluster, or a pod there"
    ]
    assert service_rules.warned(load(SERVICES, ["services.web.policy=Local"])) == []


def test_what_is_followed_is_not_warned_of() -> None:
    more = "pods.B-4={cluster: b, node: worker-01}"
    assert service_rules.warned(stations(more, "services.data.pods=[B-1, B-2, B-3, B-4]")) == []
    assert service_rules.warned(stations(hints="close")) == []
    assert service_rules.warned(load(CONTMEC, ())) == []


def test_many_services_do_not_take_long() -> None:
    def services_of(count: int) -> None:
        more = ", ".join(f"s{number}: {{cluster: a, pods: [A-2, A-9]}}" for number in range(count))
        with pytest.raises(ScenarioError):
            load(SERVICES, [f"services={{{more}}}"])

    effort.assert_in_proportion(services_of, 100)


@pytest.mark.parametrize("provider", ["netns", "ssh", "existing"])
def test_an_api_gives_an_address_to_one_service(provider: str) -> None:
    same = [
        "services.web.address=10.96.0.20",
        "services.more={cluster: a, pods: [A-2], address: 10.96.0.20, port: 81}",
    ]
    words = "services.more.address: services.web has 10.96.0.20 already, and an API gives it to one alone"
    with pytest.raises(ScenarioError, match=words):
        assembly.accept(Addressing(load(SERVICES, same)), assembly.orchestrator_kind(provider, "kubernetes"))
    assembly.accept(Addressing(load(SERVICES, ())), assembly.orchestrator_kind(provider, "kubernetes"))
