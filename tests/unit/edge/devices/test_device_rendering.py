"""What a Connection has made for it: names, ports and rights, the same for the same objects."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from edge.devices import rendering
from edge.devices.kinds import Handler, parse_connection, parse_device
from edge.devices.rendering import (
    FORWARD,
    FROM_DEVICE,
    NETWORKS,
    REACH,
    TO_DEVICE,
    Settings,
    container_names,
    rendered,
)
from tests.thesis import CONNECTION, DEVICE, changed, components
from tests.unit.edge.devices.test_device_kinds import DOCUMENTS

SETTINGS = Settings("pause:1", "socat:1")
TWO = components(("a", [("TCP", 8554), ("UDP", 8554)]), ("b", [("HTTP", 80)]))
UID = "u1"
MORE: list[list[tuple[str, int]]] = [[("TCP", 80)], [("HTTP", 443), ("UDP", 5004), ("TCP", 80)]]


def made(device: Any = DEVICE, **fields: Any) -> tuple[Any, Any]:
    return rendered(parse_connection(changed(CONNECTION, **fields)), parse_device(device), UID, SETTINGS)


def pod(deployment: Any) -> tuple[Any, Any]:
    template = deployment["spec"]["template"]
    return template["metadata"]["annotations"], template["spec"]


def pod_labels(deployment: Any) -> Any:
    return deployment["spec"]["template"]["metadata"]["labels"]


def test_the_thesis_connection_is_a_deployment_and_a_service_of_its_name() -> None:
    deployment, service = made()
    for one in (deployment, service):
        assert (one["metadata"]["name"], one["metadata"]["namespace"]) == ("dop-sample-connection", "default")
        (owner,) = one["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Connection", "sample-connection", UID)
    (port,) = service["spec"]["ports"]
    assert port == {"name": "tcp-443", "protocol": "TCP", "port": 443, "targetPort": 443}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    # Who gets no requests any more is the Deployment's all the same.
    matched = deployment["spec"]["selector"]["matchLabels"]
    assert {**matched, rendering.SERVING: "true"} == service["spec"]["selector"]
    assert deployment["spec"]["replicas"] == 1


def forwarded(deployment: Any) -> Any:
    return json.loads(deployment["metadata"]["annotations"][FORWARD])


def test_other_handlers_are_another_list_and_the_same_pods() -> None:
    one, other = (made(changed(DEVICE, components=components(("backend", ports))))[0] for ports in MORE)
    assert one["spec"] == other["spec"]
    assert forwarded(one) != forwarded(other)


def test_to_translate_the_plugin_is_told_and_the_container_has_no_right() -> None:
    annotations, spec = pod(made()[0])
    assert annotations[NETWORKS] == "bridge-conf"
    expected = {"protocol": "TCP", "port": 443, "address": "172.17.16.120", "targetPort": 443}
    assert annotations[FORWARD] == "@dop-sample-connection"
    assert forwarded(made()[0]) == [expected, {**expected, "port": 65535}]
    (container,) = spec["containers"]
    assert (container["image"], container["readinessProbe"]["tcpSocket"]) == ("pause:1", {"port": 65535})
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert spec["automountServiceAccountToken"] is False


def test_to_relay_each_handler_has_a_socat_on_the_side_of_the_cluster() -> None:
    deployment, service = made(changed(DEVICE, components=TWO), mode="relay", componentNames=["a", "b"])
    annotations, spec = pod(deployment)
    assert FORWARD not in annotations
    assert [(one["protocol"], one["port"], one["address"]) for one in json.loads(annotations[REACH])] == [
        ("TCP", 8554, "172.17.16.120"),
        ("UDP", 8554, "172.17.16.120"),
        ("TCP", 80, "172.17.16.120"),
    ]
    assert [one["name"] for one in spec["containers"]] == ["tcp-8554", "udp-8554", "tcp-80"]
    assert [one["args"] for one in spec["containers"]] == [
        ["TCP4-LISTEN:8000,bind=$(POD_IP),reuseaddr,fork,backlog=32", "TCP4:172.17.16.120:8554"],
        ["-T", "30", "UDP4-LISTEN:8001,bind=$(POD_IP),reuseaddr,fork", "UDP4:172.17.16.120:8554"],
        ["TCP4-LISTEN:8002,bind=$(POD_IP),reuseaddr,fork,backlog=32", "TCP4:172.17.16.120:80"],
    ]
    # Who has not heard yet that a pod is to end is still answered.
    assert {" ".join(one["lifecycle"]["preStop"]["exec"]["command"]) for one in spec["containers"]} == {
        "socat -T 1 PIPE PIPE"
    }
    assert spec["terminationGracePeriodSeconds"] > 1
    ports = [(one["name"], one["port"], one["targetPort"]) for one in service["spec"]["ports"]]
    assert ports == [("tcp-8554", 8554, 8000), ("udp-8554", 8554, 8001), ("tcp-80", 80, 8002)]


def test_a_handlers_name_becomes_a_containers() -> None:
    assert pod(made(mode="relay")[0])[1]["containers"][0]["name"] == "api-server"


def test_a_device_that_is_down_has_its_service_and_no_pods() -> None:
    (deployment, service), (_, up) = made(changed(DEVICE, up=False)), made()
    assert (deployment["spec"]["replicas"], service) == (0, up)


def test_a_component_that_is_down_refuses_and_no_pod_is_made_anew() -> None:
    asked = [{**one, "up": one["name"] == "b"} for one in TWO]
    deployment, service = made(changed(DEVICE, components=asked), componentNames=["a", "b"])
    up, _ = made(changed(DEVICE, components=TWO), componentNames=["a", "b"])
    assert [one["targetPort"] for one in service["spec"]["ports"]] == ["down", "down", 80]
    assert deployment == up


def test_promises_are_annotations_of_the_pod() -> None:
    annotations, _ = pod(made(guarantee={"toDevice": "20M", "fromDevice": "50M"})[0])
    assert (annotations[TO_DEVICE], annotations[FROM_DEVICE]) == ("20M", "50M")
    assert not {TO_DEVICE, FROM_DEVICE} & set(pod(made()[0])[0])


def test_pods_are_on_gateways_alone_spread_and_leave_a_dead_one_at_once() -> None:
    device = changed(DEVICE, nodeNames=["kedge2"])
    deployment, _ = made(device, replicas=2)
    _, spec = pod(deployment)
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    fields = [field for term in required["nodeSelectorTerms"] for field in term["matchFields"]]
    assert [field["values"] for field in fields] == [["kedge1"], ["kedge2"]]
    (spread,) = spec["topologySpreadConstraints"]
    assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "DoNotSchedule")
    # Those alone are spread that are made of the same: others may be about to go.
    others = [pod_labels(made(more, replicas=2)[0]) for more in (device, changed(device, nodeName="kedge3"))]
    counted = spread["labelSelector"]["matchLabels"].items()
    assert [counted <= labels.items() for labels in others] == [True, False]
    assert {one["tolerationSeconds"] for one in spec["tolerations"]} == {2}
    assert "topologySpreadConstraints" not in pod(made()[0])[1]


def test_without_tcp_nobody_is_asked_whether_the_device_answers() -> None:
    asked = changed(DEVICE, components=components(("backend", [("UDP", 5)])))
    assert "readinessProbe" not in pod(made(asked)[0])[1]["containers"][0]


def test_what_is_rendered_is_known_by_its_digest() -> None:
    def digests(*both: Any) -> list[str]:
        return [one["metadata"]["annotations"][rendering.RENDERED] for one in both]

    assert made() == made()
    (one, two), (other, same) = digests(*made()), digests(*made(networkName="lab/other"))
    assert (one != other, two) == (True, same)


HANDLERS = st.lists(
    st.builds(Handler, st.text(max_size=70) | st.sampled_from(["a", "A ", "a-tcp-2", "-"]),
              st.sampled_from(["TCP", "UDP", "HTTP"]), st.integers(1, 65535)),
    unique_by=lambda one: (one.transport, one.port), max_size=9,
)  # fmt: skip


@settings(max_examples=DOCUMENTS)
@given(handlers=HANDLERS)
def test_whatever_handlers_are_called_containers_have_names_of_their_own(handlers: list[Handler]) -> None:
    names = container_names(handlers)
    assert len(set(names)) == len(handlers)
    assert all(len(one) <= 63 and re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", one) for one in names)


@settings(max_examples=DOCUMENTS)
@given(handlers=HANDLERS.filter(bool), mode=st.sampled_from(["translate", "relay"]))
def test_each_handler_is_one_port_of_the_service_and_reaches_the_device(handlers: Any, mode: str) -> None:
    device = parse_device(DEVICE)
    device = device._replace(components=(device.components[0]._replace(handlers=tuple(handlers)),))
    connection = parse_connection(changed(CONNECTION, mode=mode))
    deployment, service = rendered(connection, device, UID, SETTINGS)
    ports = service["spec"]["ports"]
    assert {(one["protocol"], one["port"]) for one in ports} == {
        (one.transport, one.port) for one in handlers
    }
    assert len({one["name"] for one in ports}) == len(handlers)
    _, spec = pod(deployment)
    if mode == "relay":
        assert len(spec["containers"]) == len(handlers)
        assert len({one["targetPort"] for one in ports}) == len(handlers)
    else:
        listed = forwarded(deployment)
        assert {(one["protocol"], one["targetPort"]) for one in listed} == {
            (one.transport, one.port) for one in handlers
        }
