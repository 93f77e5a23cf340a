"""What proxies are told of a scenario's services, as they themselves read it."""

from __future__ import annotations

import json
from ipaddress import IPv4Network

from edge.services.catalogue import Catalogue, Served, Where
from edge.services.proxy import listed
from edge.services.rules import Port
from testbed.runtime.services import NOTHING_TOLD, Told, render
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing

PODS = {
    name: f"172.16.1.{number}" for number, name in enumerate(("C-1", "W-1", "W-2", "W-3", "W-4"), start=2)
}


def scenario(**service: object) -> Scenario:
    """Two pods of a service in each of two zones, and one pod that asks."""
    workers = ["left-01", "right-01"]
    where = {"C-1": "left-01", "W-1": "left-01", "W-2": "left-01", "W-3": "right-01", "W-4": "right-01"}
    return Scenario.model_validate(
        {
            "name": "stations",
            "zones": {"left": {"delay": 0.001}, "right": {"delay": 0.001}},
            "nodes": {"master": {"zone": "left"}, "left-01": {"zone": "left"}, "right-01": {"zone": "right"}},
            "clusters": {"a": {"master": "master", "workers": workers, "pod_cidr": "172.16.0.0/16"}},
            "pods": {name: {"cluster": "a", "node": node} for name, node in where.items()},
            "services": {"Web": {"cluster": "a", "pods": ["W-1", "W-2", "W-3", "W-4"], **service}},
            "requests": [
                {"name": "by TCP", "from": "C-1", "to": "Web", "rate": 1},
                {"name": "by UDP", "from": "C-1", "to": "Web", "rate": 1, "protocol": "udp"},
            ],
        }
    )


def served(of: Scenario, node: str = "left-01", without: str = "", told: Told = NOTHING_TOLD) -> Served:
    """Return what the proxy of a node makes of what it is told."""
    pods = {name: address for name, address in PODS.items() if name != without}
    where = Where(IPv4Network("10.96.0.0/16"), node, of.nodes[node].zone or "")
    catalogue = Catalogue(where)
    for news in listed(json.loads(render(Addressing(of), "a", pods, told))):
        catalogue.take(news)
    found = catalogue.changes()["default", "web"]
    assert found.left == ()
    return found


def chosen(found: Served) -> set[str]:
    (every,) = {frozenset(one.address for one in backends.chosen) for backends in found.ports.values()}
    return {name for name, address in PODS.items() if address in every}


def test_each_transfer_has_a_port_that_leads_to_its_own_receivers() -> None:
    found = served(scenario(port=8080))
    ports = {port: {target.port for target in one.chosen} for port, one in found.ports.items()}
    assert ports == {Port("10.96.0.11", "tcp", 8080): {5201}, Port("10.96.0.11", "udp", 8081): {5202}}
    assert chosen(found) == {"W-1", "W-2", "W-3", "W-4"}


def test_a_service_that_nothing_is_sent_to_leads_to_the_same_port() -> None:
    quiet = scenario().model_copy(update={"requests": []})
    ports = {port: {target.port for target in one.chosen} for port, one in served(quiet).ports.items()}
    assert ports == {Port("10.96.0.11", protocol, 80): {80} for protocol in ("tcp", "udp")}


def test_hints_are_followed_by_each_zone() -> None:
    for hints in ("auto", "strict", "close", "nearest"):
        assert chosen(served(scenario(hints=hints), "left-01")) == {"W-1", "W-2"}
        assert chosen(served(scenario(hints=hints), "right-01")) == {"W-3", "W-4"}


def test_a_local_service_has_the_nodes_own_endpoints_whatever_hints_say() -> None:
    assert chosen(served(scenario(policy="Local", hints="nearest"), "right-01")) == {"W-3", "W-4"}


def test_a_pod_that_does_not_run_is_no_endpoint() -> None:
    assert chosen(served(scenario(), without="W-3")) == {"W-1", "W-2", "W-4"}
    assert len(served(scenario(), without="W-3").servers) == 6  # of each protocol one


HINTED = Told(modes={"Web": "close"})


def test_what_is_told_besides_changes_who_is_asked() -> None:
    of = scenario()
    assert chosen(served(of)) == {"W-1", "W-2", "W-3", "W-4"}
    assert chosen(served(of, told=HINTED)) == {"W-1", "W-2"}
    assert chosen(served(of, told=HINTED._replace(unready=frozenset({"W-1"})))) == {"W-2"}
    assert chosen(served(of, told=HINTED._replace(unhinted=frozenset({"W-4"})))) == {
        *("W-1", "W-2", "W-3", "W-4")
    }
    assert chosen(served(scenario(hints="auto"))) == {"W-1", "W-2"}
    assert chosen(served(scenario(hints="auto"), told=Told(modes={"Web": "off"}))) == {
        *("W-1", "W-2", "W-3", "W-4")
    }


def test_nodes_that_are_not_ready_count_for_no_zone() -> None:
    down = Told(down=frozenset({"right-01"}))
    assert chosen(served(scenario(hints="auto"), told=down)) == {"W-1", "W-2", "W-3", "W-4"}
