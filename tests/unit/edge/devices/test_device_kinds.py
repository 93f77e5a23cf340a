"""Device and Connection: the thesis' own are taken, and each fault is said with its field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.devices import kinds
from edge.devices.kinds import BadObjectError, parse_connection, parse_device
from tests import cases
from tests.thesis import CONNECTION, DEVICE, GONE, changed, components

DOCUMENTS = cases.count("CONCORDE_DEVICES", 15, 5_000)
HANDLER = "spec.components[0].handlers[0]"


def test_the_thesis_objects_are_read() -> None:
    device = parse_device(DEVICE)
    assert (device.nodes, device.up, str(device.address)) == (("kedge1",), True, "172.17.16.120")
    ((name, up, handlers),) = device.components
    assert (name, up, handlers[0].transport, handlers[0].port) == ("backend", True, "TCP", 443)
    connection = parse_connection(CONNECTION)
    assert (connection.proxy, connection.definition) == ("dop-sample-connection", ("default", "bridge-conf"))
    assert (connection.mode, connection.replicas, connection.guarantee) == ("translate", 1, ("", ""))


def test_what_is_left_out_has_the_thesis_defaults() -> None:
    device = parse_device(changed(DEVICE, up=GONE, components=[{"name": "a", "handlers": [{"port": 80}]}]))
    (component,) = device.components
    assert (device.up, component.up, component.handlers) == (True, True, (kinds.Handler("", "TCP", 80),))


def test_gateways_are_the_first_node_and_the_others_once() -> None:
    assert parse_device(changed(DEVICE, nodeNames=["kedge2", "kedge1"])).nodes == ("kedge1", "kedge2")


def handler(**fields: Any) -> dict[str, Any]:
    asked = {"port": 80, **fields}
    return {"components": [{"name": "a", "handlers": [{k: v for k, v in asked.items() if v is not GONE}]}]}


BAD_DEVICES: list[tuple[str, dict[str, Any]]] = [
    *(("spec.ipAddress", {"ipAddress": bad}) for bad in ("172.17.16.121.115", "fd00::1", "300.1.1.1", 7)),
    *(("spec.ipAddress", {"ipAddress": bad}) for bad in ("224.0.0.1", "127.0.0.1", "0.0.0.0", "", GONE)),
    *(("spec.nodeName", {"nodeName": bad}) for bad in ("", "K", "a/b", 5, None, "a" * 254)),
    ("spec.nodeNames[1]", {"nodeNames": ["kedge2", "-"]}),
    ("spec.nodeNames", {"nodeNames": "kedge2"}),
    ("spec.up", {"up": "yes"}),
    ("spec.components", {"components": None}),
    ("spec.components[0].name", {"components": [{"handlers": []}]}),
    ("spec.components[1].name", {"components": components(("a", []), ("a", []))}),
    ("spec.components[0].up", {"components": [{"name": "a", "up": 1}]}),
    ("spec.components[0].handlers", {"components": [{"name": "a", "handlers": {}}]}),
    (f"{HANDLER}.protocol", handler(protocol="SCTP")),
    *((f"{HANDLER}.port", handler(port=bad)) for bad in (0, 65536, "80", True, 1.5, GONE)),
    (f"{HANDLER}.name", handler(name=5)),
    (f"{HANDLER}.endPoints[0]", handler(endPoints=[5])),
    (
        "spec.components[1].handlers[0].port",
        {"components": components(("a", [("TCP", 80)]), ("b", [("HTTP", 80)]))},
    ),
    ("spec.components[0].handlers[1].port", {"components": components(("a", [("UDP", 5), ("UDP", 5)]))}),
]  # fmt: skip
BAD_CONNECTIONS: list[tuple[str, dict[str, Any]]] = [
    *(("spec.deviceName", {"deviceName": bad}) for bad in ("", "A", 5, GONE)),
    *(("spec.networkName", {"networkName": bad}) for bad in ("", "a/b/c", "/b", "A", 5, GONE)),
    ("spec.componentNames", {"componentNames": []}),
    ("spec.componentNames", {"componentNames": "backend"}),
    ("spec.componentNames[1]", {"componentNames": ["a", 5]}),
    ("spec.componentNames[1]", {"componentNames": ["a", "a"]}),
    ("spec.mode", {"mode": "bridge"}),
    *(("spec.replicas", {"replicas": bad}) for bad in (0, 17, "2", True)),
    ("spec.guarantee", {"guarantee": "20M"}),
    *(("spec.guarantee.toDevice", {"guarantee": {"toDevice": bad}}) for bad in ("20", "2T", 20, "-1M")),
    ("spec.guarantee.fromDevice", {"guarantee": {"fromDevice": "fast"}}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "fields"), BAD_DEVICES)
def test_a_device_that_is_wrong_is_refused_with_the_field(path: str, fields: dict[str, Any]) -> None:
    with pytest.raises(BadObjectError) as refused:
        parse_device(changed(DEVICE, **fields))
    assert [one.path for one in refused.value.problems] == [path]


@pytest.mark.parametrize(("path", "fields"), BAD_CONNECTIONS)
def test_a_connection_that_is_wrong_is_refused_with_the_field(path: str, fields: dict[str, Any]) -> None:
    with pytest.raises(BadObjectError) as refused:
        parse_connection(changed(CONNECTION, **fields))
    assert [one.path for one in refused.value.problems] == [path]


@pytest.mark.parametrize("name", ["a" * 60, "a.b", "A", ""])
def test_a_name_of_which_no_service_can_be_called_is_refused(name: str) -> None:
    with pytest.raises(BadObjectError, match="must be a DNS label of at most 59 characters"):
        parse_connection({**CONNECTION, "metadata": {"name": name}})
    parse_connection({**CONNECTION, "metadata": {"name": "a" * 59}})


def test_one_port_by_tcp_and_by_udp_is_two() -> None:
    asked = components(("a", [("TCP", 80), ("UDP", 80)]))
    (component,) = parse_device(changed(DEVICE, components=asked)).components
    assert [one.transport for one in component.handlers] == ["TCP", "UDP"]


@pytest.mark.parametrize(
    ("text", "bits"), [("20M", 20_000_000), ("1Ki", 1024), ("1.5k", 1500), ("1T", 10**12)]
)
def test_rates_are_as_kubernetes_writes_them(text: str, bits: int) -> None:
    assert kinds.bits_per_second(text) == bits


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "up", "handlers", "port", "protocol", "endPoints", "toDevice"]), inner
        )
    ),
    max_leaves=9,
)
FIELDS = st.sampled_from(
    ["nodeName", "nodeNames", "up", "ipAddress", "components", "deviceName", "networkName", "componentNames",
     "mode", "replicas", "guarantee"]
)  # fmt: skip


@settings(max_examples=DOCUMENTS)
@given(spec=st.dictionaries(FIELDS, JSON) | JSON, kept=st.booleans())
def test_whatever_is_written_is_taken_or_refused_with_paths(spec: Any, kept: bool) -> None:
    for document, parse in ((DEVICE, parse_device), (CONNECTION, parse_connection)):
        asked = {**document["spec"], **spec} if kept and isinstance(spec, dict) else spec
        paths = []
        try:
            parse({**document, "spec": asked})
        except BadObjectError as error:
            paths = [one.path for one in error.problems]
        assert all(one.startswith("spec") for one in paths)
