"""A worker's bandwidth as a resource that schedulers know."""

from __future__ import annotations

from testbed.enforcements import registry
from testbed.enforcements.resource import RESOURCE, offer, request
from testbed.scenario.addressing import Addressing


def test_a_worker_offers_what_it_can_promise(congested: Addressing) -> None:
    enforcement = registry.of(congested)
    assert offer(enforcement, "a") == {RESOURCE: str(enforcement.capacity("a"))}


def test_a_pod_asks_for_exactly_its_guarantee(congested: Addressing) -> None:
    enforcement = registry.of(congested)
    assert request(enforcement, "a", 3_000_000_000) == {RESOURCE: "3000000000"}
    assert request(enforcement, "a", None) == {}


def test_where_nobody_knows_the_links_rate_nothing_is_offered_or_asked_for(contmec: Addressing) -> None:
    enforcement = registry.of(contmec)
    assert offer(enforcement, "a") == request(enforcement, "a", 10**9) == {}
