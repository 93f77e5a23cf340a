"""A second network of ours in a pod: its default route stays where it is, unless somebody asks for another.

aws/amazon-vpc-cni-k8s#1649, #203; multus-cni#241
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.system.plugin.conftest import Document, Node, network

POD = "A-1"
FIRST, SECOND = network(), network("cluster-b", 17)
GATEWAY, OTHER = "172.16.1.1", "172.17.1.1"
HERE, THERE = ("eth0", GATEWAY), ("net1", OTHER)


@pytest.fixture
def node(node: Node) -> Node:
    node.add_pod_namespace(POD)
    return node


def attach(node: Node, interface: str, document: Document) -> tuple[Document, list[Any]]:
    """What CHECK is given later, and the routes that the result tells of."""
    result = node.call("ADD", POD, document, interface=interface)
    assert "code" not in result, result
    return {**document, "prevResult": result}, result["routes"]


def defaults(node: Node) -> list[tuple[str, str]]:
    shown = node.show("ip", "-j", "route", "show", "default", pod=POD)
    return [(route["dev"], route["gateway"]) for route in shown]


def told(gateway: str) -> list[Document]:
    return [{"dst": "0.0.0.0/0", "gw": gateway}]


def require_whole(node: Node, **attached: Document) -> None:
    for interface, document in attached.items():
        assert node.call("CHECK", POD, document, interface=interface) == {}


@pytest.mark.parametrize("keys", [{}, {"isDefaultGateway": False}, {"isDefaultGateway": None}], ids=str)
@pytest.mark.long(one_in=3)
def test_a_second_interface_gets_no_default_route(node: Node, keys: Document) -> None:
    eth0, first = attach(node, "eth0", FIRST)
    net1, second = attach(node, "net1", {**SECOND, **keys})
    assert (first, second, defaults(node)) == (told(GATEWAY), [], [HERE])
    require_whole(node, eth0=eth0, net1=net1)
    for gateway in (GATEWAY, OTHER):  # both are its neighbours
        assert " 0% packet loss" in node.in_pod(POD, *f"ping -c 1 -W 5 {gateway}".split())
    assert node.call("DEL", POD, net1, interface="net1") == {}
    require_whole(node, eth0=eth0)


def test_a_second_interface_gets_the_default_route_that_a_key_asks_for(node: Node) -> None:
    """It comes first, and the other is there when it ends."""
    eth0, _ = attach(node, "eth0", FIRST)
    net1, second = attach(node, "net1", {**SECOND, "isDefaultGateway": True})
    assert (second, defaults(node)) == (told(OTHER), [THERE, HERE])
    assert "dev net1" in node.in_pod(POD, "ip", "route", "get", "192.0.2.1")
    require_whole(node, eth0=eth0, net1=net1)
    assert node.call("DEL", POD, net1, interface="net1") == {}
    assert defaults(node) == [HERE]
    require_whole(node, eth0=eth0)


@pytest.mark.parametrize("metric", ["", "metric 100"])
def test_it_is_the_pod_that_tells_which_is_second(node: Node, metric: str) -> None:
    """Another plugin's interface came first, whatever its name and its route's metric."""
    for command in (
        "link add mine type veth peer name others",
        "link set mine up",
        f"route add default dev mine {metric}",
    ):
        node.in_pod(POD, "ip", *command.split())
    eth0, first = attach(node, "eth0", FIRST)
    assert first == []
    shown = node.show("ip", "-j", "route", "show", "default", pod=POD)
    assert [route["dev"] for route in shown] == ["mine"]
    require_whole(node, eth0=eth0)


def test_a_first_interface_goes_without_a_default_route_where_a_key_says_so(node: Node) -> None:
    eth0, first = attach(node, "eth0", {**FIRST, "isDefaultGateway": False})
    assert (first, defaults(node)) == ([], [])
    net1, second = attach(node, "net1", SECOND)
    assert (second, defaults(node)) == (told(OTHER), [THERE])
    require_whole(node, eth0=eth0, net1=net1)


def test_what_is_neither_true_nor_false_is_refused(node: Node) -> None:
    answer = node.call("ADD", POD, {**FIRST, "isDefaultGateway": "yes"})
    assert (answer["code"], answer["msg"]) == (7, "isDefaultGateway: 'yes' is neither true nor false")
