"""What nodes turned out to have, and the scenario that states it."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from pydantic import ValidationError

from testbed.scenario.addressing import Addressing
from testbed.scenario.found import Found

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
