"""Where everything is: addresses, subnets and names, each computed once."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from pydantic import ValidationError

from testbed.scenario import Scenario, addressing, blocks
from testbed.scenario.addressing import FIRST_PORT, Addressing, Found
from tests.unit.testbed.builders import addressed

MANY = 1000


def test_the_papers_addresses(contmec: Addressing) -> None:
    assert {name: str(address) for name, address in contmec.nodes.items()} == {
        "master-01": "192.168.56.11/24",
        "master-02": "192.168.56.12/24",
        "worker-01": "192.168.56.13/24",
        "worker-02": "192.168.56.14/24",
    }
    assert contmec.pod_subnet("a", "worker-01") == IPv4Network("172.16.1.0/24")
    assert contmec.pod_subnet("b", "worker-02") == IPv4Network("172.17.2.0/24")
    assert {contmec.uplink(name) for name in contmec.nodes} == {"eth0"}


def test_machines_keep_their_own_addresses_and_interfaces() -> None:
    own = [
        f"nodes.{name}={{address: 192.168.56.{host}, uplink: ens{host}}}"
        for host, name in enumerate(["master-01", "master-02", "worker-01", "worker-02"], start=101)
    ]
    machines = addressed("contmec", *own)
    assert str(machines.nodes["master-01"]) == "192.168.56.101/24"
    assert str(machines.address("worker-02")) == "192.168.56.104"
    assert machines.uplink("worker-02") == "ens104"


def test_addresses_start_low_in_a_small_underlay() -> None:
    assert [str(address) for address in addressed("contmec", "underlay.cidr=10.0.0.0/29").nodes.values()] == [
        "10.0.0.1/29",
        "10.0.0.2/29",
        "10.0.0.3/29",
        "10.0.0.4/29",
    ]


def test_who_is_on_a_node_and_of_which_clusters(contmec: Addressing) -> None:
    assert contmec.clusters_of("master-01") == ["a"]
    assert contmec.clusters_of("worker-02") == ["a", "b"]
    assert contmec.pods_on("worker-01") == ["A-1", "A-2", "B-1"]
    assert contmec.containers_on("worker-02") == ["container-2"]
    assert list(contmec.pods_on("master-01")) == list(contmec.containers_on("master-01")) == []


def test_every_node_numbers_its_own_containers() -> None:
    three = addressed("contmec", "containers.container-3={node: worker-01}")
    assert {name: str(three.container(name)) for name in three.scenario.containers} == {
        "container-1": "172.18.0.2/16",
        "container-2": "172.18.0.2/16",
        "container-3": "172.18.0.3/16",
    }


def test_what_clusters_have_on_a_node_is_called_after_them(contmec: Addressing) -> None:
    names = [
        (one.bridge(c), one.network_name(c), one.vtep(c), one.subnet_file(c))
        for one in [contmec]
        for c in one.scenario.clusters
    ]
    assert names == [
        ("cni-a", "cluster-a", "flannel.1", "/run/flannel/subnet-a.env"),
        ("cni-b", "cluster-b", "flannel.2", "/run/flannel/subnet-b.env"),
    ]
    assert contmec.namespace("A-1") == "/run/netns/A-1"


def test_every_transfer_has_a_receiver_of_its_own(contmec: Addressing) -> None:
    ports = [contmec.port_of(traffic) for traffic in contmec.scenario.traffic]
    assert ports == [FIRST_PORT + index for index in range(4)]


def test_requests_have_ports_after_all_traffic(contmec: Addressing) -> None:
    requests = [{"from": "A-3", "to": "A-4", "rate": 1, "name": name} for name in ("one", "two")]
    data = contmec.scenario.model_dump(by_alias=True) | {"requests": requests}
    asking = Addressing(Scenario.model_validate(data))
    for traffic in contmec.scenario.traffic:
        assert asking.port_of(traffic) == contmec.port_of(traffic)
    assert [asking.port_of(one) for one in asking.scenario.requests] == [FIRST_PORT + 4, FIRST_PORT + 5]


def many_nodes() -> Addressing:
    """Return a cluster of a master and as many workers as there may be, each with a pod and a container."""
    workers = [f"worker-{number:03}" for number in range(1, MANY)]
    return Addressing(
        Scenario.model_validate(
            {
                "name": "many",
                "nodes": {name: {} for name in ["master", *workers]},
                "underlay": {"cidr": "10.0.0.0/16"},
                "clusters": {"a": {"master": "master", "workers": workers, "pod_cidr": "172.16.0.0/12"}},
                "pods": {f"on-{worker}": {"cluster": "a", "node": worker} for worker in workers},
                "containers": {f"beside-{worker}": {"node": worker} for worker in workers},
                "flows": [{"from": "on-worker-001", "to": "on-worker-002"}],
            }
        )
    )


class Counting:
    """Counts how often something is computed."""

    def __init__(self, compute: Callable[..., Any]) -> None:
        self.times = 0
        self._compute = compute

    def __call__(self, *arguments: Any) -> Any:
        self.times += 1
        return self._compute(*arguments)


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        ("IPv4Interface", lambda of: [of.nodes[name] for name in of.scenario.nodes]),
        ("IPv4Interface", lambda of: [of.container(name) for name in of.scenario.containers]),
    ],
    ids=["nodes", "containers"],
)
def test_what_is_asked_of_every_node_is_computed_once(
    kind: str, ask: Callable[[Addressing], list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = many_nodes()
    counting = Counting(getattr(addressing, kind))
    monkeypatch.setattr(addressing, kind, counting)
    first, again = ask(many), ask(many)
    assert len(first) >= MANY - 1
    assert counting.times == len(first)
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_pod_subnets_are_given_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    many = many_nodes()
    counting = Counting(blocks.allocate)
    monkeypatch.setattr(addressing, "allocate", counting)
    first, again = ([many.pod_subnet("a", name) for name in many.scenario.nodes] for _ in range(2))
    assert len(set(first)) == MANY
    assert counting.times == 1
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_who_is_on_a_node_is_looked_up_once() -> None:
    many = many_nodes()
    for ask in (many.clusters_of, many.pods_on, many.containers_on):
        assert all(ask(node) is ask(node) for node in many.scenario.nodes)


def test_clusters_with_masters_of_their_own_have_the_usual_port(contmec: Addressing) -> None:
    assert [contmec.api_port(name) for name in contmec.scenario.clusters] == [6443, 6443]


def test_of_two_clusters_with_one_master_the_second_has_the_next_port() -> None:
    shared = addressed("contmec", "clusters.b.master=master-01")
    assert [shared.api_port(name) for name in shared.scenario.clusters] == [6443, 6444]
    assert shared.control_ports("master-01") == [22, 6443, 6444, 10250, 20250]


def test_the_second_kubelet_of_a_node_has_control_traffic_too(contmec: Addressing) -> None:
    assert contmec.control_ports("master-01") == [22, 6443, 10250]
    assert contmec.control_ports("worker-02") == [22, 6443, 10250, 20250]


WORKER = IPv4Address("192.168.56.102")


def test_nothing_was_found_of_nodes_that_a_testbed_makes(contmec: Addressing) -> None:
    assert not Found()
    assert Found().applied(contmec.scenario) == contmec.scenario


@pytest.mark.parametrize(
    "found",
    [Found(addresses={"w": WORKER}), Found(uplinks={"w": "ens5"}), Found(names={"w": "x"}), Found(mtu=1)],
)
def test_anything_found_counts(found: Found) -> None:
    assert found


def test_a_scenario_then_states_it_and_what_was_asked_for_stays(contmec: Addressing) -> None:
    asked = contmec.scenario
    before = asked.model_copy(deep=True)
    found = Found(
        addresses={"worker-01": WORKER}, uplinks={"worker-01": "ens5"}, names={"worker-02": "ip-7"}, mtu=9000
    )
    made = found.applied(asked)
    assert (made.nodes["worker-01"].address, made.nodes["worker-01"].uplink) == (WORKER, "ens5")
    assert (made.nodes["worker-02"].name, made.nodes["worker-02"].address) == ("ip-7", None)
    assert made.underlay.mtu == 9000
    assert made.pods == asked.pods
    assert asked == before


def test_what_is_found_later_goes_before_and_the_rest_stays() -> None:
    first = Found(uplinks={"a": "eth0", "b": "eth0"}, mtu=1500)
    later = first.merged(Found(uplinks={"b": "ens5"}, names={"a": "x"}))
    assert later == Found(uplinks={"a": "eth0", "b": "ens5"}, names={"a": "x"}, mtu=1500)
    assert later.merged(Found(mtu=1450)).mtu == 1450


def test_it_is_read_back_as_it_was_written() -> None:
    found = Found(addresses={"worker-01": WORKER}, uplinks={"worker-01": "ens5"}, mtu=1450)
    assert Found.model_validate_json(found.model_dump_json()) == found
    with pytest.raises(ValidationError):
        Found.model_validate_json('{"routes": {}}')
