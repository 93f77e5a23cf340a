"""Where a transfer's two ends run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.generators import exchanger_of, generator_of
from bench.measurement.plan import place
from testbed.testbed import Testbed
from tests.unit.bench.builders import scenario

OF = scenario(requests=[{"from": "B", "to": "C", "rate": 10}])
IN_POD, IN_NETWORK = object(), object()


def up(networks: dict[str, Any]) -> Testbed:
    return cast("Testbed", SimpleNamespace(place=lambda _name: IN_POD, networks=networks))


def test_flows_run_in_the_pods_and_requests_in_their_networks() -> None:
    testbed = up({"B": IN_NETWORK})
    assert place(testbed, "B", generator_of(OF, OF.flows[0])) is IN_POD
    assert place(testbed, "B", exchanger_of(OF, OF.requests[0])) is IN_NETWORK


def test_a_pod_whose_network_is_not_known_is_named() -> None:
    with pytest.raises(RuntimeError, match="B: generator 'requests' runs in a pod's network, and its node's"):
        place(up({}), "B", exchanger_of(OF, OF.requests[0]))
