"""A worker's bandwidth as a resource that schedulers know."""

from __future__ import annotations

from testbed.enforcements import registry
from testbed.enforcements.enforcement import INGRESS_RESOURCE, RESOURCE, offer, request
from testbed.scenario import Pod
from testbed.scenario.addressing import Addressing

POD = Pod(cluster="a", node="worker-01")


def test_a_worker_offers_what_it_can_promise(congested: Addressing) -> None:
    enforcement = registry.of(congested)
    assert offer(enforcement, "a", "worker-01") == {RESOURCE: str(enforcement.capacity("a", "worker-01"))}


def test_a_pod_asks_for_exactly_its_guarantee(congested: Addressing) -> None:
    enforcement = registry.of(congested)
    pods = congested.scenario.pods
    assert request(enforcement, pods["A-2"]) == {RESOURCE: "3000000000"}
    assert request(enforcement, pods["A-3"]) == {}
    answering = pods["A-2"].model_copy(update={"answers": 5_000})
    assert request(enforcement, answering) == {RESOURCE: "3000005000"}


def test_what_is_received_is_another_resource_where_it_can_be_promised(congested: Addressing) -> None:
    woven = Addressing(congested.scenario.model_copy(update={"enforcement": "fabric"}))
    enforcement = registry.of(woven)
    rate = str(enforcement.capacity("a", "worker-01"))
    assert offer(enforcement, "a", "worker-01") == {RESOURCE: rate, INGRESS_RESOURCE: rate}
    receiving = POD.model_copy(update={"ingress": 100_000})
    assert request(enforcement, receiving) == {RESOURCE: "5000", INGRESS_RESOURCE: "100000"}


def test_where_nobody_knows_the_links_rate_nothing_is_offered_or_asked_for(contmec: Addressing) -> None:
    enforcement = registry.of(contmec)
    assert offer(enforcement, "a", "worker-01") == request(enforcement, contmec.scenario.pods["A-1"]) == {}


def test_of_another_network_nobody_asks_the_scheduler_for_room(congested: Addressing) -> None:
    other = Addressing(congested.scenario.model_copy(update={"enforcement": "bandwidth"}))
    enforcement = registry.of(other)
    assert offer(enforcement, "a", "worker-01") == request(enforcement, congested.scenario.pods["A-2"]) == {}
