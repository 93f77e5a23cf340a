"""Which goodput a promise must give a flow."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.scenario import enforcements
from testbed.scenario.enforcements import Kind
from testbed.scenario.goodput import expected_goodput_of
from tests.unit.bench.builders import scenario


@pytest.mark.parametrize(
    ("flow", "fields", "expected"),
    [
        ({}, {}, 1e8 * 1398 / 1464),
        ({"protocol": "udp", "rate": "1G"}, {}, 1e8 * 1422 / 1464),
        ({"rate": "50M"}, {}, 5e7),
        ({"rate": "99M"}, {}, 1e8 * 1398 / 1464),
        ({}, {"count": "payload"}, 1e8),
        ({}, {"underlay": {"mtu": 9000}}, 1e8 * 8898 / 8964),
        ({}, {"enforcement": "none"}, 1e8 * 1398 / 1464),
        ({"from": "C", "to": "A"}, {}, None),
    ],
)
def test_expected_goodput_of_a_flow(
    flow: dict[str, str], fields: dict[str, Any], expected: float | None
) -> None:
    experiment = scenario(flows=[{"from": "A", "to": "C", **flow}], disturbances=[], **fields)
    got = expected_goodput_of(experiment, experiment.flows[0])
    assert got == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("fields", "takes", "of"),
    [
        ({}, 512 + 42, 1464),
        ({"enforcement": "node"}, 512 + 92, 1514),
        ({"enforcement": "node", "count": "payload"}, 512 + 92, 1514 * 1464 / 1398),
        ({"enforcement": "node", "underlay": {"rate": "1G", "frame_overhead": 24}}, 512 + 116, 1538),
    ],
)
def test_small_datagrams_get_as_much_of_where_the_promise_is_kept(
    fields: dict[str, Any], takes: int, of: float
) -> None:
    sent = [{"from": "A", "to": "C", "protocol": "udp", "size": 512, "rate": "1G"}]
    experiment = scenario(flows=sent, disturbances=[], **{"underlay": {"rate": "1G"}, **fields})
    got = expected_goodput_of(experiment, experiment.flows[0])
    assert got == pytest.approx(1e8 * of / 1464 * 512 / takes)


@pytest.mark.usefixtures("own_parts")
def test_an_enforcement_on_the_link_may_count_the_overlays_headers() -> None:
    enforcements.register(Kind("weave", counts="underlay"))
    experiment = scenario(enforcement="weave")
    assert expected_goodput_of(experiment, experiment.flows[0]) == pytest.approx(1e8 * 1398 / 1514)
