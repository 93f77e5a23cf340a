"""What a node is to do for services, by what an API says of them."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.services.catalogue import (
    SERVICES,
    SLICES,
    Backends,
    Catalogue,
    Name,
    Served,
    Together,
    Where,
    needed,
)
from edge.services.rules import Port, Target
from edge.services.selection import INTERNAL_POLICY
from edge.watch import Changed, Listed

WHERE = Where(IPv4Network("10.96.0.0/16"), "one", "a")
NAME = ("default", "web")
WEB = Port("10.96.0.10", "tcp", 80)
ONE, TWO = Target("10.61.0.2", 8080), Target("10.62.0.2", 8080)


some_ports = st.builds(Port, st.sampled_from(["10.96.0.1", "10.96.0.2"]), st.just("tcp"), st.integers(1, 2))
backends = st.frozensets(st.sampled_from([ONE, TWO])).map(lambda some: Backends(some, some))
served_by = st.builds(Served, st.dictionaries(some_ports, backends), st.frozensets(some_ports))
names = st.tuples(st.just("default"), st.sampled_from("abc"))


def service(annotations: Any = None, labels: Any = None, **spec: Any) -> dict[str, Any]:
    ports = [{"name": "web", "protocol": "TCP", "port": 80, "targetPort": "http"}]
    return {
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations, "labels": labels},
        "spec": {"clusterIP": "10.96.0.10", "ports": ports, **spec},
    }


def endpoint(target: Target, node: str = "one", zone: str = "a", **conditions: bool) -> dict[str, Any]:
    topology = {"kubernetes.io/hostname": node, "topology.kubernetes.io/zone": zone}
    return {"addresses": [target.address], "conditions": {"ready": True, **conditions}, "topology": topology}


def sliced(*endpoints: dict[str, Any], name: str = "web-1", port: Any = 8080, **more: Any) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "web"}
    metadata = {"name": name, "namespace": "default", "labels": labels, **more.pop("metadata", {})}
    ports = [{"name": "web", "protocol": "TCP", "port": port}]
    return {"metadata": metadata, "addressType": "IPv4", "ports": ports, "endpoints": [*endpoints], **more}


def served(document: dict[str, Any], *slices: dict[str, Any], where: Where = WHERE) -> Served:
    catalogue = Catalogue(where)
    catalogue.take(Listed(SERVICES, [document]))
    assert not catalogue.complete
    catalogue.take(Listed(SLICES[0], list(slices)))
    assert catalogue.complete
    return catalogue.changes()[NAME]


def chosen(*arguments: Any, where: Where = WHERE) -> set[Target]:
    return set(served(*arguments, where=where).ports[WEB].chosen)


def test_ports_go_to_ready_endpoints_by_the_numbers_of_their_slices() -> None:
    found = served(service(), sliced(endpoint(ONE)), sliced(endpoint(TWO), name="web-2", port=9090))
    other = Target(TWO.address, 9090)
    assert found.ports[WEB].chosen == {ONE, other}
    assert found.servers == {Port(ONE.address, "tcp", 8080), Port(other.address, "tcp", 9090)}
    assert found.left == ()


def test_one_that_ends_keeps_its_server_and_gets_nothing_new_unless_there_is_no_other() -> None:
    ending = endpoint(TWO, ready=False, serving=True, terminating=True)
    found = served(service(), sliced(endpoint(ONE), ending))
    assert found.ports[WEB].chosen == found.ports[WEB].alive == {ONE}
    assert Port(TWO.address, "tcp", 8080) in found.servers
    assert chosen(service(), sliced(ending)) == {TWO}
    assert chosen(service(), sliced(endpoint(ONE, ready=False))) == set()


def test_a_service_without_slices_has_no_endpoints() -> None:
    assert served(service()).ports[WEB].alive == set()
    assert chosen(service()) == set()


def test_local_is_this_node_and_hints_are_of_its_zone() -> None:
    both = sliced(endpoint(ONE), endpoint(TWO, "two", "b"))
    assert chosen(service(), both) == {ONE, TWO}
    assert chosen(service(internalTrafficPolicy="Local"), both) == {ONE}
    assert chosen(service({INTERNAL_POLICY: "Local"}), both) == {ONE}
    assert chosen(service({INTERNAL_POLICY: "Local"}, internalTrafficPolicy="Cluster"), both) == {ONE, TWO}
    hinted = {**both, "metadata": {**both["metadata"], "annotations": {
        "concorde.contmec.dev/zone-hints": '{"10.61.0.2": ["a"], "10.62.0.2": ["b"]}'
    }}}  # fmt: skip
    wished = service({"service.kubernetes.io/topology-aware-hints": "auto"})
    assert chosen(wished, hinted) == {ONE}
    assert chosen(wished, hinted, where=WHERE._replace(zone="b")) == {TWO}
    assert chosen(wished, both) == {ONE, TWO}
    assert chosen(service(), hinted) == {ONE, TWO}
    # Flows to the others go on.
    assert served(wished, hinted).ports[WEB].alive == {ONE, TWO}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"type": "ExternalName"}, "spec.type: ExternalName is not supported: the service is left alone"),
        ({"clusterIP": "None"}, "spec.clusterIP: None (headless) is not supported"),
        ({"sessionAffinity": "ClientIP"}, "spec.sessionAffinity: ClientIP is not supported, use None"),
        ({"clusterIP": "fd00::1"}, "IPv6 is not supported"),
        ({"clusterIP": "10.97.0.1"}, "10.97.0.1 is not in 10.96.0.0/16"),
        ({"ports": [{"port": 65536}]}, "port 65536 is not from 1 to 65535"),
        ({"ports": 7}, "cannot be read"),
        ({"clusterIP": "ten"}, "cannot be read"),
    ],
)
def test_what_is_not_built_is_left_alone_and_said(spec: dict[str, Any], said: str) -> None:
    found = served(service(**spec), sliced(endpoint(ONE)))
    assert found.ports == {}
    (left,) = found.left
    assert said in left


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "NodePort"},
        {"type": "LoadBalancer"},
        {"externalIPs": ["192.0.2.7"]},
        {"clusterIPs": ["10.96.0.10", "fd00::1"]},
    ],
)
def test_beside_what_is_not_built_the_cluster_address_is_served(spec: dict[str, Any]) -> None:
    found = served(service(**spec), sliced(endpoint(ONE)))
    assert found.ports[WEB].chosen == {ONE}
    assert "is served" in found.left[0]


def test_a_policy_that_is_none_is_cluster_and_that_is_said() -> None:
    found = served(service({INTERNAL_POLICY: "local"}), sliced(endpoint(TWO, "two", "b")))
    assert found.ports[WEB].chosen == {TWO}
    assert found.left == (f"{INTERNAL_POLICY}: must be Cluster or Local, not 'local': read as Cluster",)


def test_of_several_ports_those_of_another_protocol_are_left_alone() -> None:
    ports = [{"name": "web", "port": 80}, {"name": "names", "protocol": "UDP", "port": 53},
             {"name": "calls", "protocol": "SCTP", "port": 5060}]  # fmt: skip
    found = served(service(ports=ports), sliced(endpoint(ONE)))
    assert found.ports[WEB].chosen == {ONE}
    assert found.ports[Port("10.96.0.10", "udp", 53)].chosen == set()
    assert found.left == ("spec.ports: SCTP is not supported: port 5060 is left alone",)


def test_services_of_another_proxy_are_not_spoken_of() -> None:
    assert served(service(labels={"service.kubernetes.io/service-proxy-name": "x"})) == ({}, frozenset(), ())


def test_changes_are_followed_and_a_list_is_all_there_is() -> None:
    catalogue = Catalogue(WHERE)
    catalogue.take(Listed(SERVICES, [service()]))
    catalogue.take(Listed(SLICES[1], [sliced(endpoint(ONE))]))
    before = catalogue.changes()[NAME]
    catalogue.take(Changed(SLICES[1], sliced(endpoint(TWO), name="web-2"), False))
    assert catalogue.changes()[NAME].ports[WEB].chosen == {ONE, TWO}
    catalogue.take(Changed(SLICES[1], sliced(name="web-2"), True))
    assert catalogue.changes()[NAME] == before
    catalogue.take(Listed(SLICES[1], []))
    assert catalogue.changes()[NAME].ports[WEB].chosen == set()
    catalogue.take(Changed(SERVICES, service(), True))
    assert catalogue.changes() == {NAME: ({}, frozenset(), ())}


@pytest.mark.parametrize(
    "bad",
    [
        sliced({"addresses": []}),
        sliced({"addresses": ["fd00::1"]}),
        sliced(endpoint(ONE), port=70000),
        sliced(endpoint(ONE), port="web"),
    ],
)
def test_a_slice_that_cannot_be_read_is_said_and_the_others_go_on(bad: dict[str, Any]) -> None:
    said: list[str] = []
    catalogue = Catalogue(WHERE, said.append)
    catalogue.take(Listed(SERVICES, [service()]))
    catalogue.take(Listed(SLICES[0], [bad, sliced(endpoint(TWO), name="web-2")]))
    assert catalogue.changes()[NAME].ports[WEB].chosen == {TWO}
    assert said[0].startswith("slice default/web-1: cannot be read, and is left alone")


def test_ipv6_slices_and_those_of_no_service_are_not_looked_at() -> None:
    ipv6 = sliced({"addresses": ["fd00::1"]}, addressType="IPv6")
    nobodys = sliced(endpoint(ONE), metadata={"labels": {}})
    assert chosen(service(), ipv6, {**nobodys, "metadata": {**nobodys["metadata"], "name": "x"}}) == set()


@given(st.lists(st.dictionaries(names, served_by, max_size=4), max_size=6))
def test_together_they_are_what_each_is_however_they_came(steps: list[dict[Name, Served]]) -> None:
    together, now = Together(), dict[Name, Served]()
    for changes in steps:
        before = dict(together.ports), set(together.servers)
        together.take(changes)
        now = {name: one for name, one in {**now, **changes}.items() if one.ports or one.servers}
        ports = {port: backends for _, one in sorted(now.items()) for port, backends in one.ports.items()}
        assert together.ports == ports
        servers = {server for one in now.values() for server in one.servers}
        assert set(together.servers) == servers
        assert {port for port in before[0].keys() | ports if before[0].get(port) != ports.get(port)} <= (
            together.touched.ports
        )
        assert before[1] ^ servers <= together.touched.servers
        together.settled()


def test_a_port_of_two_services_is_one_of_theirs_and_said() -> None:
    said: list[str] = []
    together = Together(said.append)
    one, two = (Backends(frozenset({target}), frozenset({target})) for target in (ONE, TWO))
    together.take({("a", "x"): Served({WEB: one}, frozenset()), ("a", "y"): Served({WEB: two}, frozenset())})
    assert together.ports == {WEB: two}
    assert said == ["service a/y: 10.96.0.10 . tcp . 80 is another service's, too"]
    together.take({("a", "y"): Served({}, frozenset())})
    assert together.ports == {WEB: one}


def test_who_wrote_which_field_is_not_kept() -> None:
    document = service()
    document["metadata"]["managedFields"] = [{}]
    assert "managedFields" not in needed(document)["metadata"]
    assert needed(service()) == service()
