"""The pod's own eth0 keeps the promise."""

from __future__ import annotations

from testbed.enforcements import registry
from testbed.enforcements.enforcement import Guarded
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed
from tests.unit.testbed.enforcements.doubles import standing


def test_the_interfaces_of_promised_pods_are_guarded_and_no_others(contmec: Addressing) -> None:
    up = standing(contmec)
    guarded = registry.of(contmec).guarded(up)
    assert guarded == {
        "pod A-1": Guarded(up.pods["A-1"], "eth0"),
        "pod A-2": Guarded(up.pods["A-2"], "eth0"),
        "pod B-1": Guarded(up.pods["B-1"], "eth0"),
    }


def test_nodes_that_exist_must_have_the_plugin(contmec: Addressing) -> None:
    assert registry.of(contmec).installed


def test_all_of_a_links_rate_can_be_promised() -> None:
    limited = registry.of(addressed("contmec", "underlay.rate=9G"))
    assert limited.capacity("a", "worker-01") == 9 * 10**9
    assert registry.of(addressed("contmec")).capacity("a", "worker-01") is None
