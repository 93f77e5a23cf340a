"""What an API server is told of a device or a connection: each fault by its field, refused or warned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from edge.devices import kinds
from edge.devices.admission import Judge
from edge.devices.picture import CONNECTIONS, DEFINITIONS, DEVICES, NODES, Key
from edge.http import Json, Server
from edge.log import Logger
from edge.reviews import API, KIND
from tests.thesis import CONNECTION, DEFINITION, DEVICE, changed, components
from tests.unit.edge.devices.test_operator import EDGE, THERE, Api, Case
from tests.unit.edge.stub import serving


class Asked:
    """The thesis' objects, and who is asked about others."""

    def __init__(self, case: Case) -> None:
        self.case, self.stream = case, StringIO()

    def review(self, document: Json, strict: bool = True, operation: str = "CREATE", **more: Any) -> Json:
        resource = kinds.DEVICES if document["kind"] == kinds.DEVICE else kinds.CONNECTIONS
        request = {
            "uid": "1",
            "kind": {"group": kinds.GROUP, "version": kinds.VERSION, "kind": document["kind"]},
            "resource": {"group": kinds.GROUP, "version": kinds.VERSION, "resource": resource},
            "operation": operation,
            "namespace": "default",
            "object": document,
            **more,
        }
        judge = Judge(self.case.server, EDGE, strict, Logger(self.stream))
        response: Json = judge.answer({"apiVersion": API, "kind": KIND, "request": request})["response"]
        return response


@pytest.fixture
def asked() -> Iterator[Asked]:
    api = Api()
    with serving(api):
        case = Case(api)
        for kind, one in (*THERE.items(), *BESIDES):
            case.put(kind, one)
        yield Asked(case)
        case.server.close()


TAINT = {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}
OF_NODE = {"type": "InternalIP", "address": "172.17.16.120"}
WRONG = [
    (changed(DEVICE, ipAddress="172.17.16.121.115"), "spec.ipAddress", "must be the IPv4 address"),
    (changed(DEVICE, nodeName="kedge9"), "spec.nodeName", "there is no node kedge9"),
    (changed(CONNECTION, deviceName="camera"), "spec.deviceName", "there is no device camera"),
    (changed(CONNECTION, componentNames=["b"]), "spec.componentNames[0]", "has no component 'b'"),
    (changed(CONNECTION, networkName="lab"), "spec.networkName", "there is no NetworkAttachmentDefinition"),
    ({**CONNECTION, "metadata": {"name": "a" * 60}}, "metadata.name", "at most 59 characters"),
    ({**DEVICE, "metadata": {"name": "camera"}}, "spec.ipAddress", "by the same node has 172.17.16.120, too"),
    (changed(DEVICE, nodeNames=["kworker1"]), "spec.nodeNames[0]", "has no label edge=true"),
    (changed(DEVICE, nodeNames=["kmaster"]), "spec.nodeNames[0]", "takes no pods: it has the taint"),
    (changed(DEVICE, nodeNames=["kedge2"]), "spec.ipAddress", "172.17.16.120 is node kedge2's own"),
    (
        changed(DEVICE, components=components(("a", [("HTTP", 80)]), ("b", [("UDP", 80), ("TCP", 80)]))),
        "spec.components[1].handlers[1].port",
        "TCP port 80 is spec.components[0].handlers[0].port, too",
    ),
    (
        changed(DEVICE, components=components(("a", []), ("a", []))),
        "spec.components[1].name",
        "another component is called 'a', too",
    ),
    (changed(CONNECTION, replicas=2), "spec.replicas", "must be at most 1"),
    (changed(CONNECTION, deviceName="down"), "spec.deviceName", "device down is down"),
    (changed(CONNECTION, networkName="outside"), "spec.networkName", "is neither in 10.10.0.0/24 nor behind"),
    (changed(CONNECTION, networkName="gateway"), "spec.networkName", "172.17.16.120 is its gateway's"),
    (changed(CONNECTION, guarantee={"toDevice": "20M"}), "spec.guarantee.toDevice", "by no plugin of"),
    (changed(CONNECTION, guarantee={"toDevice": "no"}), "spec.guarantee.toDevice", "must be a rate in bits"),
]


def network(name: str, subnet: str, gateway: str) -> Json:
    """A definition of a bridge with addresses of its own."""
    ipam = {"type": "host-local", "ranges": [[{"subnet": subnet, "gateway": gateway}]]}
    config = json.dumps({"type": "bridge", "ipam": ipam})
    return {**DEFINITION, "metadata": {"name": name, "namespace": "default"}, "spec": {"config": config}}


BESIDES: list[tuple[str, Json]] = [
    (NODES, {"metadata": {"name": "kworker1"}}),
    (NODES, {"metadata": {"name": "kmaster", "labels": EDGE}, "spec": {"taints": [TAINT]}}),
    (NODES, {"metadata": {"name": "kedge2", "labels": EDGE}, "status": {"addresses": [OF_NODE]}}),
    (DEVICES, {**changed(DEVICE, up=False, ipAddress="172.17.16.9"), "metadata": {"name": "down"}}),
    (DEFINITIONS, network("outside", "10.10.0.0/24", "10.10.0.1")),
    (DEFINITIONS, network("gateway", "172.17.16.0/24", "172.17.16.120")),
]


@pytest.mark.parametrize(("document", "path", "said"), WRONG)
def test_what_is_wrong_is_refused_with_the_field_or_a_warning(
    asked: Asked, document: Json, path: str, said: str
) -> None:
    refused = asked.review(document)
    (cause,) = refused["status"]["details"]["causes"]
    assert (refused["allowed"], cause["field"], said in cause["message"]) == (False, path, True)
    warned = asked.review(document, strict=False)
    assert (warned["allowed"], len(warned["warnings"])) == (True, 1)
    assert warned["warnings"][0].startswith(path)


@pytest.mark.parametrize(("document", "path", "said"), WRONG)
def test_without_a_webhook_a_status_says_the_same(asked: Asked, document: Json, path: str, said: str) -> None:
    kind = DEVICES if document["kind"] == kinds.DEVICE else CONNECTIONS
    asked.case.put(kind, document)
    asked.case.turn()
    found = asked.case.condition(kind, document["metadata"]["name"])
    assert (found["status"], found["reason"]) == ("False", "Invalid")
    assert found["message"].startswith(f"{path}: ")
    assert said in found["message"]
    assert found["message"] in asked.case.events()


@pytest.mark.parametrize("document", [DEVICE, CONNECTION])
def test_the_thesis_objects_are_taken(asked: Asked, document: Json) -> None:
    assert asked.review(document) == {"uid": "1", "allowed": True}


def test_what_leaves_the_spec_or_is_being_deleted_is_never_refused(asked: Asked) -> None:
    asked.case.delete(Key(DEVICES, "", "device01-01"))
    asked.case.delete(Key(DEFINITIONS, "default", "bridge-conf"))
    assert not asked.review(CONNECTION)["allowed"]
    assert asked.review(CONNECTION, operation="UPDATE", oldObject=CONNECTION)["allowed"]
    gone = {**CONNECTION, "metadata": {**CONNECTION["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert asked.review(gone, operation="UPDATE", oldObject=None)["allowed"]
    assert asked.review(CONNECTION, subResource="status")["allowed"]
    assert asked.review(CONNECTION, operation="DELETE")["allowed"]


def test_a_device_beside_itself_is_no_second_one(asked: Asked) -> None:
    assert asked.review(changed(DEVICE, up=False), operation="UPDATE", oldObject=DEVICE)["allowed"]
    other = {**DEVICE, "metadata": {"name": "camera"}}
    assert "device device01-01 by the same node has" in asked.review(other)["status"]["message"]


def test_without_the_api_an_object_is_judged_by_itself(asked: Asked) -> None:
    asked.case.api.fault = lambda *_: 503
    assert asked.review(changed(CONNECTION, deviceName="camera"))["allowed"]
    assert not asked.review(changed(CONNECTION, mode="x"))["allowed"]
    assert "judged by itself alone" in asked.stream.getvalue()


def test_other_kinds_are_nobodys_business_here(asked: Asked) -> None:
    server = Server(asked.case.api.url)
    request = {"uid": "1", "resource": {"group": "apps", "resource": "deployments"}, "operation": "CREATE"}
    judge = Judge(server, EDGE, True, Logger(StringIO()))
    answer = judge.answer({"apiVersion": API, "kind": KIND, "request": request})
    assert answer["response"] == {"uid": "1", "allowed": True}
