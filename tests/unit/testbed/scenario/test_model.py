"""The fields of a scenario, and what follows from them."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest
from pydantic import ValidationError

from testbed.scenario import Scenario, load
from testbed.scenario.addressing import Addressing
from testbed.scenario.model import MOST_TITLE
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"


def test_the_papers_numbers() -> None:
    scenario = load(CONTMEC)
    assert [scenario.guarantee_of(flow) for flow in scenario.flows] == [10**9, 3 * 10**9, 4 * 10**9]
    assert all(scenario.node_of(f.source) != scenario.node_of(f.destination) for f in scenario.traffic)
    assert [(d.start, d.end) for d in scenario.disturbances] == [(2.5, 7.5)]
    assert scenario.measurement.interval == 0.1
    addressing = Addressing(scenario)
    assert addressing.pod_subnet("a", "worker-01") == IPv4Network("172.16.1.0/24")
    assert addressing.pod_subnet("b", "worker-02") == IPv4Network("172.17.2.0/24")
    assert scenario.clusters["a"].workers == scenario.clusters["b"].workers


def test_scale_multiplies_every_rate_and_nothing_else() -> None:
    overrides = ["underlay.rate=10G", "pods.A-1.ceiling=2G", "disturbances[0].rate=5G", "enforcement=fabric"]
    overrides.append("pods.A-4.ingress=2G")
    whole, tenth = load(CONTMEC, overrides), load(CONTMEC, overrides, scale=0.1)
    assert tenth.underlay.rate == 10**9
    assert (tenth.pods["A-1"].guarantee, tenth.pods["A-1"].ceiling) == (10**8, 2 * 10**8)
    assert (tenth.pods["A-4"].ingress, tenth.pods["A-4"].promised) == (2 * 10**8, 10**7)
    assert tenth.disturbances[0].rate == 5 * 10**8
    assert tenth.scaled(10).model_copy(update={"title": whole.title}) == whole


@pytest.mark.parametrize(
    ("factor", "at"),
    [(0.5, ", at half of every rate"), (0.1, ", at a tenth of every rate"), (3.0, ", at 3 times every rate")],
)
def test_the_title_of_a_scaled_scenario_says_so(factor: float, at: str) -> None:
    for title in ("", "small", "x" * MOST_TITLE):
        whole = load(CONTMEC, [f"title='{title}'"])
        found = whole.scaled(factor).title
        assert found.startswith((title or "contmec")[: MOST_TITLE - len(at)])
        assert found.endswith(at)
        assert len(found) <= MOST_TITLE
        assert whole.scaled(1.0) == whole


def test_scale_leaves_requests_as_they_are() -> None:
    ask = "requests=[{from: A-3, to: A-4, rate: 12.5, duration: 2, latency: 0.01}]"
    whole, tenth = load(CONTMEC, [ask]), load(CONTMEC, [ask], scale=0.1)
    assert tenth.requests == whole.requests
    assert (tenth.requests[0].count, tenth.requests[0].judged) == (25, True)


def test_a_scenario_may_have_requests_alone() -> None:
    ask = "requests=[{from: A-3, to: A-4, rate: 1, start: 1, duration: 20}]"
    alone = load(CONTMEC, [ask, "flows=[]", "disturbances=[]"])
    assert (alone.traffic, alone.transfers, alone.duration) == ((), tuple(alone.requests), 21)


@pytest.mark.parametrize(("count", "fits"), [(1000, True), (1001, False)])
def test_a_scenario_has_a_thousand_nodes_at_most(count: int, fits: bool) -> None:
    data = load(CONTMEC).model_dump(mode="json", by_alias=True)
    data["nodes"] |= {f"more-{number}": {} for number in range(count - len(data["nodes"]))}
    data["underlay"]["cidr"] = "10.0.0.0/16"
    if fits:
        assert len(Scenario.model_validate(data).nodes) == count
    else:
        with pytest.raises(ValidationError, match=r"nodes\n.*at most 1000 items"):
            Scenario.model_validate(data)
