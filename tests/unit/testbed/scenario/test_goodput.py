"""Which goodput a promise must give a flow."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.scenario import enforcements
from testbed.scenario.enforcements import Kind
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.units import parse_rate
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


def received(ingress: str, **fields: Any) -> list[int | None]:
    """What each transfer is promised, of A's 100M and B's 200M, where C is to receive that."""
    made = scenario(enforcement="fabric", underlay={"rate": "1G"}, **fields)
    pods = made.pods | {"C": made.pods["C"].model_copy(update={"ingress": parse_rate(ingress)})}
    made = made.model_copy(update={"pods": pods})
    return [made.guarantee_of(one) for one in made.transfers]


A, B, C = ({"from": one, "to": "C"} for one in "ABD")


@pytest.mark.parametrize(
    ("ingress", "flows", "promised"),
    [
        ("1G", [A], [100]),
        ("80M", [A], [80]),
        ("80M", [{"from": "A", "to": "D"}], [100]),  # to whom nothing is promised
        ("80M", [C], [None]),  # of whom nothing is promised
        ("80M", [A, C], [80, None]),  # who has no part in it
        ("300M", [A, B], [100, 200]),
        ("250M", [A, B], [100, 150]),
        ("150M", [A, B], [75, 75]),
        ("150M", [A, {**B, "start": 4, "duration": 4}], [75, 75]),
        ("150M", [{**A, "duration": 4}, {**B, "start": 4, "duration": 4}], [100, 150]),  # one after the other
        ("150M", [{**A, "duration": 4}, {**A, "name": "again", "start": 4}], [100, 100]),  # one sender
    ],
)
def test_a_flow_is_promised_the_lesser_of_its_senders_promise_and_its_share_of_the_receivers(
    ingress: str, flows: list[dict[str, Any]], promised: list[int | None]
) -> None:
    expected = [None if one is None else one * 10**6 for one in promised]
    assert received(ingress, flows=flows, disturbances=[]) == expected


def test_a_disturbance_of_a_promised_pod_has_its_share_of_what_is_received() -> None:
    disturbing = [{"name": "noise", **B, "start": 2, "duration": 1}]
    assert received("150M", flows=[A], disturbances=disturbing)[0] == 75 * 10**6


def test_goodput_follows_the_lesser_promise() -> None:
    made = scenario(enforcement="fabric", underlay={"rate": "1G"}, flows=[A], disturbances=[])
    pods = made.pods | {"C": made.pods["C"].model_copy(update={"ingress": 50_000_000})}
    got = expected_goodput_of(made.model_copy(update={"pods": pods}), made.flows[0])
    assert got == pytest.approx(5e7 * 1398 / 1464)


@pytest.mark.usefixtures("own_parts")
def test_an_enforcement_on_the_link_may_count_the_overlays_headers() -> None:
    enforcements.register(Kind("weave", counts="underlay"))
    experiment = scenario(enforcement="weave")
    assert expected_goodput_of(experiment, experiment.flows[0]) == pytest.approx(1e8 * 1398 / 1514)
