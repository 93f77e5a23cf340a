"""What is wrong with a device and a connection beside the others: each check, by the field that it names."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.devices.checks import (
    Node,
    connection_problems,
    definition_problems,
    device_problems,
    node_of,
)
from edge.devices.kinds import parse_connection, parse_device
from tests.thesis import CONNECTION, DEFINITION, DEVICE, changed, components
from tests.unit.edge.devices.test_device_kinds import DOCUMENTS, JSON

EDGE = {"edge": "true"}
NODES = {"kedge1": Node(EDGE), "kworker1": Node(), "kmaster": Node(EDGE, ("node-role.kubernetes.io/master",))}


def of_device(others: Any = (), **fields: Any) -> list[str]:
    return [str(one) for one in device_problems(parse_device(changed(DEVICE, **fields)), NODES, EDGE, others)]


def of_connection(device: Any = DEVICE, definition: Any = DEFINITION, **fields: Any) -> list[str]:
    asked = parse_connection(changed(CONNECTION, **fields))
    found = None if device is None else parse_device(device)
    return [str(one) for one in connection_problems(asked, found, definition)]


def test_the_thesis_objects_have_no_problems() -> None:
    assert of_device() == of_connection() == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"nodeName": "kedge9"}, "spec.nodeName: there is no node kedge9"),
        ({"nodeName": "kworker1"}, "spec.nodeName: node kworker1 has no label edge=true"),
        ({"nodeNames": ["kedge1", "kedge9"]}, "spec.nodeNames[0]: there is no node kedge9"),
        (
            {"nodeNames": ["kmaster"]},
            "spec.nodeNames[0]: node kmaster takes no pods: it has the taint node-role.kubernetes.io/master",
        ),
    ],
)
def test_gateways_are_there_labelled_and_workers(fields: dict[str, Any], said: str) -> None:
    assert of_device(**fields) == [said]


def test_a_device_has_no_address_of_its_gateway() -> None:
    status = {"addresses": [{"type": "InternalIP", "address": "172.17.16.120"}]}
    nodes = {"kedge1": node_of({"metadata": {"labels": EDGE}, "status": status})}
    found = device_problems(parse_device(DEVICE), nodes, EDGE, ())
    assert list(map(str, found)) == ["spec.ipAddress: 172.17.16.120 is node kedge1's own"]


def kept(promise: str, *plugins: dict[str, Any]) -> list[str]:
    ipam = {"subnet": "172.17.16.0/24"}
    text = json.dumps({"plugins": [{"type": "bridge", "ipam": ipam}, *plugins]})
    return of_connection(definition={"spec": {"config": text}}, guarantee={"toDevice": promise})


def test_a_promise_towards_a_device_can_be_kept() -> None:
    path, name = "spec.guarantee.toDevice", "default/bridge-conf"
    keeper = {"type": "concorde", "enforcement": "node", "uplink": "eth1", "capacity": "100M"}
    assert kept("20M") == [f"{path}: 20M is promised by no plugin of {name}"]
    assert kept("20M", keeper) == kept("20M", {"type": "concorde"}) == []
    assert kept("101M", keeper) == [f"{path}: 101M is more than 100M, the capacity of the link in {name}"]
    assert of_connection(guarantee={"fromDevice": "20M"}) == []


def test_two_devices_by_one_node_have_no_address_in_common() -> None:
    other = parse_device({**DEVICE, "metadata": {"name": "camera"}})
    said = "spec.ipAddress: device camera by the same node has 172.17.16.120, too"
    assert of_device([other]) == [said]
    assert (
        of_device([other], ipAddress="172.17.16.121") == of_device([other._replace(nodes=("kedge2",))]) == []
    )
    assert of_device([parse_device(DEVICE)]) == []  # itself


DOWN = [{"name": "backend", "up": False, "handlers": [{"port": 80}]}]


@pytest.mark.parametrize(
    ("device", "fields", "said"),
    [
        (None, {}, "spec.deviceName: there is no device device01-01 that can be used"),
        (changed(DEVICE, up=False), {}, "spec.deviceName: device device01-01 is down"),
        (
            DEVICE,
            {"componentNames": ["b"]},
            "spec.componentNames[0]: device device01-01 has no component 'b'",
        ),
        (
            changed(DEVICE, components=DOWN),
            {},
            "spec.componentNames[0]: component 'backend' of device device01-01 is down",
        ),
        (
            changed(DEVICE, components=components(("backend", []))),
            {},
            "spec.componentNames[0]: component 'backend' of device device01-01 has no handlers",
        ),
        (
            changed(DEVICE, components=components(("backend", [("TCP", at) for at in range(1, 1002)]))),
            {},
            "spec.componentNames: have 1001 handlers: one connection has 999 at most",
        ),
        (
            DEVICE,
            {"replicas": 2},
            "spec.replicas: must be at most 1: so many gateways device device01-01 has",
        ),
    ],
)
def test_a_connections_device_is_there_and_up_with_its_components(
    device: Any, fields: dict[str, Any], said: str
) -> None:
    assert of_connection(device, **fields) == [said]


def test_a_connections_network_is_defined() -> None:
    said = "spec.networkName: there is no NetworkAttachmentDefinition {}"
    assert of_connection(definition=None) == [said.format("default/bridge-conf")]
    assert of_connection(definition=None, networkName="lab/a") == [said.format("lab/a")]


def defined(config: object) -> list[str]:
    text = config if isinstance(config, str) else json.dumps(config)
    return list(definition_problems({"spec": {"config": text}}, IPv4Address("172.17.16.120")))


def network(subnet: str, **more: Any) -> dict[str, Any]:
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]], **more.pop("ipam", {})}
    return {"type": "bridge", "ipam": ipam, **more}


def test_a_definition_is_a_cni_configuration() -> None:
    assert list(definition_problems({"spec": {}}, None)) == []  # a file on the node
    assert defined("{") == ["its config is not valid JSON"]
    assert defined([]) == defined({"plugins": []}) == ["its config is no CNI configuration"]
    assert defined({"name": "x"}) == defined({"plugins": [{}]}) == ["a plugin in its config has no type"]


def test_a_device_is_in_the_network_or_behind_a_route_and_no_gateway() -> None:
    outside = ["172.17.16.120 is neither in 10.10.0.0/24 nor behind a route of it"]
    assert defined(network("10.10.0.0/24")) == outside
    assert defined({"plugins": [network("10.10.0.0/24", ipam={"routes": [{"dst": "172.17.16.0/24"}]})]}) == []
    assert defined(network("172.17.16.0/24", isGateway=True)) == []
    assert defined({"type": "macvlan", "ipam": {"type": "dhcp"}}) == []
    gateway = network(
        "172.17.16.0/24", ipam={"ranges": [[{"subnet": "172.17.16.0/24", "gateway": "172.17.16.120"}]]}
    )
    assert defined(gateway) == ["172.17.16.120 is its gateway's"]
    static = {"type": "static", "addresses": [{"address": "172.17.16.5/24"}]}
    assert defined({"type": "macvlan", "ipam": static}) == []


def test_taints_that_come_and_go_are_none() -> None:
    taints = [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
        {"key": "soft", "effect": "PreferNoSchedule"},
        {"key": "mine", "effect": "NoSchedule"},
    ]
    assert node_of({"metadata": {"labels": EDGE}, "spec": {"taints": taints}}) == Node(EDGE, ("mine",))
    assert node_of({"metadata": {}}) == Node()


@settings(max_examples=DOCUMENTS)
@given(
    config=JSON
    | st.dictionaries(st.sampled_from(["type", "ipam", "plugins", "isGateway"]), JSON)
    | st.fixed_dictionaries(
        {
            "type": st.text(max_size=3),
            "ipam": st.dictionaries(
                st.sampled_from(["ranges", "routes", "subnet", "gateway", "addresses"]),
                JSON | st.lists(st.dictionaries(st.sampled_from(["subnet", "dst", "gateway"]), JSON)),
            ),
        }
    )
)
def test_whatever_a_definition_says_is_judged(config: Any) -> None:
    assert all(isinstance(one, str) for one in defined(config))
