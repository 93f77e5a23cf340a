"""The operator beside an API in memory: what it makes, changes and leaves, whatever it hears or misses."""

from __future__ import annotations

import copy
import json
import socket
from collections.abc import Iterator
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import pytest

from edge.devices import liveness
from edge.devices.liveness import Liveness, answering
from edge.devices.operator import parse
from edge.devices.picture import (
    CHOSEN,
    CONNECTIONS,
    DEFINITIONS,
    DEPLOYMENTS,
    DEVICES,
    KINDS,
    NODES,
    PODS,
    SERVICES,
    Key,
    Picture,
)
from edge.devices.reconciling import Queue, Reconciler, covers
from edge.devices.rendering import OF_CONNECTION, SERVING, Settings
from edge.http import Json, RefusedError, Server
from edge.log import Logger
from tests.thesis import CONNECTION, DEFINITION, DEVICE, changed, components
from tests.unit.edge.stub import StubApi, merged, serving

EDGE = {"edge": "true"}
NAME = "dop-sample-connection"
KEY = Key(CONNECTIONS, "default", "sample-connection")
NODE = {"metadata": {"name": "kedge1", "labels": EDGE}}
THERE = {NODES: NODE, DEVICES: DEVICE, DEFINITIONS: DEFINITION, CONNECTIONS: CONNECTION}


class Api(StubApi):
    """An API that takes an apply as if nobody else wrote; pods are ready at once, or ``late``."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds |= {kind.path for kind in (*KINDS, *CHOSEN)}
        self.late = False

    def do(self, method: str, path: str, body: Any = None) -> tuple[int, Json]:
        if method == "PATCH" and "fieldManager" in path:
            at = urlsplit(path).path
            if "/deployments/" in at:
                ready = 0 if self.late else body["spec"]["replicas"]
                body = {**body, "status": {"readyReplicas": ready}}
            status, _ = super().do("GET", at)
            if status == 404:
                return super().do("POST", at.rpartition("/")[0], body)
            known = super().do("GET", at)[1]
            return super().do("PUT", at, merged(known, body))
        return super().do(method, path, body)


class Case:
    """An API with the thesis' objects, and who looks after them by what is listed."""

    def __init__(self, api: Api) -> None:
        self.api, self.server = api, Server(api.url, kept=1)
        self.leads = True
        self.begin()

    def begin(self) -> None:
        """Begin anew, as a process does that knows nothing."""
        self.picture = Picture(EDGE)
        settings = Settings("pause", "socat")
        self.reconciler = Reconciler(self.server, self.picture, settings, lambda: self.leads)

    def put(self, kind: str, document: Json) -> None:
        """Make an object, or change it."""
        metadata = document["metadata"]
        within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        group, _, plural = kind.rpartition("/")
        path = f"{group}{within}/{plural}"
        if self.api.do("POST", path, copy.deepcopy(document))[0] == 409:
            self.api.do("PATCH", f"{path}/{metadata['name']}", {"spec": document["spec"]})

    def delete(self, key: Key) -> None:
        assert self.api.do("DELETE", key.path)[0] == 200

    def turn(self) -> bool:
        """List all, and look after all; return whether anything is to be tried again."""
        self.picture.begin()
        due: set[Key] = set()
        for kind in (*KINDS, *CHOSEN):
            found = list(self.api.all(kind.path).values())
            due |= self.picture.replace(kind.path, found, "1000000")
        keys = [key for key in due if key.kind in (DEVICES, CONNECTIONS)]
        again = [self.reconciler.reconcile(key) for key in keys]
        return any(again)

    def one(self, kind: str, name: str = NAME) -> Any:
        return self.api.all(kind).get(name)

    def condition(self, kind: str = CONNECTIONS, name: str = "sample-connection", of: str = "Valid") -> Any:
        (found,) = [one for one in self.one(kind, name)["status"]["conditions"] if one["type"] == of]
        return found

    def events(self) -> list[str]:
        return [one["message"] for one in self.api.all("/api/v1/events").values()]


@pytest.fixture
def case() -> Iterator[Case]:
    api = Api()
    with serving(api):
        made = Case(api)
        for kind, one in THERE.items():
            made.put(kind, one)
        yield made
        made.server.close()


def test_the_thesis_manifests_make_a_deployment_and_a_service(case: Case) -> None:
    assert not case.turn()
    assert case.one(SERVICES)["spec"]["ports"][0]["port"] == 443
    assert case.one(DEPLOYMENTS)["spec"]["replicas"] == 1
    status = case.one(CONNECTIONS, "sample-connection")["status"]
    assert (status["address"], status["ports"], status["ready"]) == (f"{NAME}.default.svc", ["443/TCP"], 1)
    assert case.condition()["status"] == case.condition(DEVICES, "device01-01")["status"] == "True"
    assert case.condition(of="Ready")["message"] == "1 of 1 proxy pods"
    assert case.events() == []


def test_what_is_as_it_should_be_is_not_written_again(case: Case) -> None:
    case.turn()
    case.turn()
    asked = len(case.api.asked)
    case.begin()
    case.turn()
    assert case.api.asked[asked:] == []


def test_what_somebody_changes_or_removes_is_as_before_again(case: Case) -> None:
    case.turn()
    case.api.do("PATCH", f"/api/v1/namespaces/default/services/{NAME}", {"spec": {"ports": []}})
    case.delete(Key(DEPLOYMENTS, "default", NAME))
    case.turn()
    assert case.one(SERVICES)["spec"]["ports"][0]["port"] == 443
    assert case.one(DEPLOYMENTS)["spec"]["replicas"] == 1


def test_a_changed_port_changes_the_service_and_not_its_address(case: Case) -> None:
    case.turn()
    path = f"/api/v1/namespaces/default/services/{NAME}"
    case.api.do("PATCH", path, {"spec": {"clusterIP": "10.96.0.7"}})
    case.put(DEVICES, changed(DEVICE, components=components(("backend", [("TCP", 443), ("UDP", 5004)]))))
    case.turn()
    spec = case.one(SERVICES)["spec"]
    assert (spec["clusterIP"], [one["port"] for one in spec["ports"]]) == ("10.96.0.7", [443, 5004])
    assert len(json.loads(forwarded(case))) == 3  # and where a pod is asked


def forwarded(case: Case) -> str:
    return str(case.one(DEPLOYMENTS)["metadata"]["annotations"]["concorde.contmec.dev/forward"])


@pytest.mark.parametrize("away", [True, False])
def test_what_happened_while_it_was_away_is_made_up_for(case: Case, away: bool) -> None:
    case.turn()
    if away:
        case.begin()
    case.put(DEVICES, changed(DEVICE, up=False))
    case.turn()
    assert (case.one(DEPLOYMENTS)["spec"]["replicas"], bool(case.one(SERVICES))) == (0, True)
    assert case.condition()["message"] == "spec.deviceName: device device01-01 is down"
    assert case.condition(of="Ready")["reason"] == "Stopped"
    case.put(DEVICES, changed(DEVICE, up=True))
    case.turn()
    assert (case.one(DEPLOYMENTS)["spec"]["replicas"], case.condition()["status"]) == (1, "True")


def test_without_its_device_nothing_leads_there_and_the_service_refuses(case: Case) -> None:
    case.turn()
    case.delete(Key(DEVICES, "", "device01-01"))
    case.turn()
    assert (case.one(DEPLOYMENTS), bool(case.one(SERVICES))) == (None, True)
    assert "there is no device device01-01" in case.condition()["message"]
    case.put(DEVICES, DEVICE)
    case.turn()
    assert case.one(DEPLOYMENTS)["spec"]["replicas"] == 1


def test_what_a_connection_that_is_gone_has_left_goes_and_nobody_elses_does(case: Case) -> None:
    case.turn()
    theirs = {"metadata": {"name": "dop-theirs", "namespace": "default", "labels": {OF_CONNECTION: "theirs"}}}
    case.put(SERVICES, {**theirs, "spec": {}})
    case.delete(KEY)
    case.begin()
    case.turn()
    assert (case.one(DEPLOYMENTS), case.one(SERVICES)) == (None, None)
    assert case.one(SERVICES, "dop-theirs")


def test_a_definition_that_goes_and_comes_is_said_and_what_runs_goes_on(case: Case) -> None:
    case.turn()
    case.delete(Key(DEFINITIONS, "default", "bridge-conf"))
    case.turn()
    said = "spec.networkName: there is no NetworkAttachmentDefinition default/bridge-conf"
    assert (case.condition()["message"], case.events()) == (said, [said])
    assert case.one(DEPLOYMENTS)["spec"]["replicas"] == 1
    case.put(DEFINITIONS, DEFINITION)
    case.turn()
    assert case.condition()["status"] == "True"


def test_nodes_are_watched_for_what_makes_them_gateways(case: Case) -> None:
    case.delete(Key(NODES, "", "kedge1"))
    case.turn()
    assert case.condition(DEVICES, "device01-01")["message"] == "spec.nodeName: there is no node kedge1"
    case.put(NODES, {**NODE, "metadata": {"name": "kedge1"}})
    case.turn()
    assert "has no label edge=true" in case.condition(DEVICES, "device01-01")["message"]


def test_somebody_elses_service_of_that_name_is_left_alone(case: Case) -> None:
    theirs = {"metadata": {"name": NAME, "namespace": "default"}, "spec": {"ports": []}}
    case.put(SERVICES, theirs)
    assert case.turn() is True
    assert case.one(SERVICES)["spec"] == {"ports": []}
    assert case.one(DEPLOYMENTS) is None
    assert case.condition(of="Ready")["message"].startswith(f"Service default/{NAME} is there, and not this")


POD: Json = {
    "metadata": {
        "name": f"{NAME}-x",
        "namespace": "default",
        "labels": {OF_CONNECTION: KEY.name, SERVING: "true"},
    },
    "spec": {"nodeName": "kedge1"},
    "status": {},
}
SANDBOX = (
    'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "1": '
    'plugin type="concorde" failed (add): eth1: 80 Mbit/s asked, 19 are free; dop-cam has 60'
)
SILENT = "Readiness probe failed: dial tcp 10.244.2.3:65535: connect: connection refused"


@pytest.mark.parametrize(
    ("reason", "message", "said", "words"),
    [
        ("FailedCreatePodSandBox", SANDBOX, "Refused", SANDBOX.rpartition("(add): ")[2]),
        ("FailedScheduling", "0/2 nodes are available", "FailedScheduling", "0/2 nodes are available"),
        ("Unhealthy", SILENT, "Unhealthy", SILENT),
    ],
)
def test_why_a_pod_is_not_ready_is_said_until_it_is(
    case: Case, reason: str, message: str, said: str, words: str
) -> None:
    case.api.late = True
    case.api.do("POST", "/api/v1/namespaces/default/pods", POD)
    uid = case.api.all("/api/v1/pods")[POD["metadata"]["name"]]["metadata"]["uid"]
    about = {"uid": uid, "name": POD["metadata"]["name"]}
    event = {"metadata": {"name": "e", "namespace": "default"}, "reason": reason, "message": message}
    case.api.do("POST", "/api/v1/namespaces/default/events", {**event, "involvedObject": about})
    case.turn()
    ready = case.condition(of="Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "False",
        said,
        f"0 of 1 proxy pods: {words}",
    )
    assert case.events() == [message, *([ready["message"]] if said == "Refused" else [])]
    case.turn()
    silent = case.condition(DEVICES, "device01-01", "Reachable")
    assert silent["status"] == ("False" if said == "Unhealthy" else "Unknown")
    case.api.late = False
    case.delete(Key(DEPLOYMENTS, "default", NAME))
    case.turn()
    case.turn()
    assert case.condition(of="Ready")["status"] == "True"
    assert case.condition(DEVICES, "device01-01", "Reachable")["status"] == "True"


ENDED: Json = {"state": {"terminated": {}}}
RUNNING: Json = {"state": {"running": {}}}
# As a kubelet of 1.20 says it of a container that it has removed by the time it looks.
NOT_FOUND: Json = {"state": {"waiting": {}}, "lastState": {"terminated": {}}}


@pytest.mark.parametrize("deleted", [True, False])
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    ("states", "over"),
    [
        ([ENDED, ENDED], True),
        ([ENDED, NOT_FOUND], True),
        ([ENDED, RUNNING], False),
        ([ENDED, {**RUNNING, "lastState": {"terminated": {}}}], False),
        ([ENDED, {"state": {"waiting": {}}}], False),
        ([ENDED], False),
        ([], False),
    ],
)
def test_who_was_deleted_and_has_ended_is_forgotten_and_nobody_else(
    case: Case, deleted: bool, there: bool, states: list[Json], over: bool
) -> None:
    pod = copy.deepcopy(POD)
    pod["metadata"].update({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    pod["spec"]["containers"] = [{"name": "tcp"}, {"name": "udp"}]
    pod["status"]["containerStatuses"] = states
    case.put(PODS, pod)
    if not there:
        case.delete(KEY)
    case.leads = False
    case.turn()
    assert case.one(PODS, f"{NAME}-x")
    case.leads = True
    case.begin()
    case.turn()
    assert bool(case.one(PODS, f"{NAME}-x")) == (not (deleted and over))


def two_pods(case: Case) -> list[Json]:
    """Let the connection have two pods, both ready; return them."""
    case.put(DEVICES, changed(DEVICE, nodeNames=["kedge2"]))
    case.put(CONNECTIONS, changed(CONNECTION, replicas=2))
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    for number in (1, 2):
        pod = copy.deepcopy(POD)
        pod["metadata"]["name"] = f"{NAME}-{number}"
        case.put(PODS, {**pod, "status": {**status, "podIP": f"10.244.{number}.2"}})
    case.turn()
    return [case.one(PODS, f"{NAME}-{number}") for number in (1, 2)]


def test_who_does_not_answer_while_another_does_gets_no_requests(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ((pod["status"]["podIP"], 65535) for pod in two_pods(case))
    watching = Liveness(case.server, case.picture, lambda: case.leads, Logger(StringIO()))

    def serving_after(*answers: set[tuple[str, int]]) -> list[str]:
        for answered in answers:
            found = dict.fromkeys(answered, True)
            monkeypatch.setattr(liveness, "answering", lambda *_, found=found: found)
            watching.turn()
        return [case.one(PODS, f"{NAME}-{number}")["metadata"]["labels"][SERVING] for number in (1, 2)]

    assert serving_after({first, second}, {first}) == ["true", "true"]  # it may have been a packet
    assert serving_after({first}) == ["true", "false"]
    case.turn()
    assert case.condition(of="Ready")["message"] == f"1 of 2 proxy pods: {NAME}-2 on kedge1 does not answer"
    assert serving_after(set(), set(), set()) == ["true", "false"]  # is it the device, or we?
    assert serving_after({second}) == ["false", "true"]
    case.leads = False
    assert serving_after({first}, {first}, {first}) == ["false", "true"]


@pytest.mark.parametrize("first", [443, 8554])  # the kubelet asks the first
def test_a_handler_that_does_not_accept_is_said_of_its_device_while_another_does(
    case: Case, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    handlers = [("HTTP", 443), ("TCP", 8554), ("UDP", 5004)]
    case.put(DEVICES, changed(DEVICE, components=components(("backend", handlers))))
    case.put(PODS, {**POD, "status": {"podIP": "10.244.1.2"}})
    case.turn()
    concerned: list[Key] = []
    watching = Liveness(case.server, case.picture, lambda: True, Logger(StringIO()), concerned.append)
    ports = {("10.244.1.2", 443): 443, ("10.244.1.2", 8554): 8554}

    def said(accepted: int, refused: int) -> tuple[str, str]:
        answers = {end: port == accepted for end, port in ports.items() if port in (accepted, refused)}
        asked: list[list[tuple[str, int]]] = []

        def answering(ends: list[tuple[str, int]], _: float) -> dict[tuple[str, int], bool]:
            asked.append(ends)
            return answers

        monkeypatch.setattr(liveness, "answering", answering)
        monkeypatch.setattr(liveness, "HANDLERS_SECONDS", 0.0)
        watching.turn()
        assert [sorted(ends) for ends in asked] == [sorted(ports)]
        for key in concerned:
            case.reconciler.reconcile(key)
        found = case.condition(DEVICES, "device01-01", "Reachable")
        return found["status"], found["message"]

    other = next(port for port in ports.values() if port != first)
    closed = ("False", f"it does not accept TCP at {first}, and does elsewhere")
    assert said(other, first) == said(other, 0) == closed
    assert concerned == [Key(DEVICES, "", "device01-01")]
    assert said(0, first)[0] == "Unknown"  # of one that accepts nothing kubelets say as much
    assert len(concerned) == 2


def test_who_accepts_or_refuses_answers_and_who_drops_does_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there, socket.socket() as full, socket.socket() as none:
        none.bind(("127.0.0.1", 0))
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        ends = [one.getsockname() for one in (there, none, full)]
        nowhere = ("255.255.255.255", 1)  # of which the kernel says at once that there is no way
        with socket.create_connection(ends[2]):  # there is room for no other
            assert answering([*ends, nowhere], 0.2) == {ends[0]: True, ends[1]: False}


def test_what_is_refused_is_said_and_tried_again(case: Case) -> None:
    case.api.fault = lambda method, path: 403 if method == "PATCH" and "deployments" in path else None
    assert case.turn() is True
    assert case.condition(of="Ready")["reason"] == "Failed"
    assert any("status 403" in one for one in case.events())
    case.api.fault = lambda *_: None
    assert case.turn() is False
    assert case.one(DEPLOYMENTS)["spec"]["replicas"] == 1


def test_a_fault_of_the_servers_is_nobodys_but_its_own(case: Case) -> None:
    case.api.fault = lambda method, path: 503 if method == "PATCH" else None
    with pytest.raises(RefusedError, match="status 503"):
        case.turn()


def test_who_does_not_lead_and_who_is_being_deleted_is_left_alone(case: Case) -> None:
    case.leads = False
    case.turn()
    assert case.one(SERVICES) is None
    case.begin()
    case.leads = True
    gone = copy.deepcopy(case.one(CONNECTIONS, KEY.name))
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    case.picture.put(CONNECTIONS, gone, False)
    assert not case.reconciler.reconcile(KEY)
    assert case.one(SERVICES) is None


def test_an_object_that_nobody_can_read_is_said(case: Case) -> None:
    case.put(CONNECTIONS, changed(CONNECTION, replicas=0))
    case.turn()
    assert case.condition()["message"] == "spec.replicas: must be an integer from 1 to 16"
    assert case.one(DEPLOYMENTS) is None


def document(name: str, version: int, uid: str = "u") -> Json:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}, "spec": {}}


def test_a_list_that_is_older_than_what_was_heard_changes_nothing() -> None:
    picture = Picture(EDGE)
    at = Key(DEVICES, "", "a")
    picture.put(DEVICES, document("a", 7), False)
    picture.put(DEVICES, document("b", 8, "v"), True)
    assert picture.replace(DEVICES, [document("b", 3, "v")], "5") == set()  # a is newer, b is gone
    assert picture.object(at) == document("a", 7)
    assert picture.replace(DEVICES, [document("a", 6)], "9") == set()
    assert picture.replace(DEVICES, [], "9") == {at}
    assert picture.object(at) is None


def test_an_answer_that_is_older_than_what_was_heard_changes_nothing() -> None:
    picture = Picture(EDGE)
    picture.put(DEVICES, document("a", 7), False)
    assert picture.put(DEVICES, document("a", 6), False) == set()
    assert picture.object(Key(DEVICES, "", "a")) == document("a", 7)
    assert picture.put(DEVICES, document("a", 1, "another"), False) == {Key(DEVICES, "", "a")}


def test_a_kubelet_that_says_that_it_is_well_concerns_nobody() -> None:
    picture = Picture(EDGE)
    picture.put(DEVICES, DEVICE, False)
    assert len(picture.put(NODES, NODE, False)) == 1
    assert picture.put(NODES, {**NODE, "status": {"conditions": []}}, False) == set()


def test_nobody_is_looked_after_twice_at_once_and_each_in_time() -> None:
    queue, other = Queue(), Key(DEVICES, "", "a")
    queue.put(KEY, 60)
    queue.put(KEY)
    queue.put(KEY)
    queue.put(other, 0.01)
    assert queue.take() == KEY
    queue.put(KEY)
    assert queue.take() == other  # KEY is being looked after
    queue.done(KEY, False)
    assert queue.take() == KEY
    queue.close()
    assert queue.take() is None


@pytest.mark.parametrize(
    ("known", "wanted", "yes"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": None}, {"a": {}}, False),
    ],
)
def test_what_is_wanted_is_there(known: Any, wanted: Any, yes: bool) -> None:
    assert covers(known, wanted) is yes


IMAGES = ("--pause-image=p", "--relay-image=s")


def test_options_have_the_thesis_defaults() -> None:
    told = parse(["--api=http://x:1", *IMAGES])
    assert (told.labels, told.strict, told.settings) == (EDGE, True, Settings("p", "s"))
    told = parse(["--api=http://x:1", *IMAGES, "--checks=warnings", "--node-label=a=b", "--probe-seconds=0"])
    assert (told.labels, told.strict, told.settings.probe_seconds) == ({"a": "b"}, False, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--api=http://x:1"], "--pause-image"),
        (IMAGES, "--api or --in-cluster must be given"),
        (["--api=http://x:1", *IMAGES, "--node-label=edge"], "'edge' is not like edge=true"),
        (["--api=http://x:1", *IMAGES, "--checks=none"], "--checks"),
    ],
)
def test_options_that_cannot_be_are_said(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)
