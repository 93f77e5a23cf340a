"""What the proxy is told: its options, and services in a file."""

from __future__ import annotations

import io
import json
import queue
import signal
import threading
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from edge.log import Logger
from edge.services import others, proxy
from edge.services.catalogue import SERVICES, SLICES
from edge.services.endpoints import ZONE_LABEL
from edge.services.hints import Event
from edge.services.node import RulesError
from edge.services.proxy import NODES, File, Proxy, listen, parse
from edge.services.rules import Frame
from edge.watch import Listed
from tests.unit.edge.stub import KubernetesStub, serving
from tests.waiting import PATIENCE, until

NEEDED = ["--cluster", "a", "--services", "10.96.0.0/16"]


def test_options_are_read() -> None:
    told = parse(
        [*NEEDED, "--pods", "10.61.0.0/24", "--pods", "10.62.0.0/24", "--file", "x", "--zone", "north"]
    )
    assert told.pods == (IPv4Network("10.61.0.0/24"), IPv4Network("10.62.0.0/24"))
    assert (told.cluster, told.services, told.zone) == ("a", IPv4Network("10.96.0.0/16"), "north")
    assert parse([*NEEDED, "--leave"]).leave
    both = parse(["--cluster", "a", "--services", "fd96::/112,10.96.0.0/16", "--leave"])
    assert both.services == IPv4Network("10.96.0.0/16")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (NEEDED, "--api, --in-cluster or --file"),
        ([*NEEDED, "--file", "x", "--api", "http://127.0.0.1:1"], "--api, --in-cluster or --file"),
        (["--cluster", "a b", "--services", "10.96.0.0/16", "--leave"], "no name of letters"),
        (["--cluster", "a", "--services", "10.96.0.1/16", "--leave"], "has host bits set"),
        (["--cluster", "a", "--services", "fd96::/112", "--leave"], "is no range of IPv4"),
    ],
)
def test_options_that_cannot_be_end_it(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_file_is_read_when_it_is_another(tmp_path: Path) -> None:
    path, log = tmp_path / "services.json", io.StringIO()
    file = File(path, Logger(log))
    assert file.look() == []

    def write(document: Any) -> None:
        path.with_suffix(".new").write_text(json.dumps(document))
        path.with_suffix(".new").rename(path)

    items = [{"kind": kind, "metadata": {"name": "web"}} for kind in ("Service", "EndpointSlice")]
    write({"items": items})
    services, slices = file.look()
    assert isinstance(services, Listed)
    assert isinstance(slices, Listed)
    assert services.objects == items[:1]
    assert slices.objects == items[1:]
    assert file.look() == []
    for bad, said in [
        ({}, "'items'"),
        ({"items": [{"kind": "Pod"}]}, "items[0].kind: must be Service or EndpointSlice"),
        ({"items": [{"kind": "Service"}]}, "items[0].metadata.name: required"),
        ([], "not a JSON object"),
    ]:
        write(bad)
        assert file.look() == []
        assert said in log.getvalue()
    write({"items": []})
    assert [news.objects for news in file.look() if isinstance(news, Listed)] == [[], []]


def test_who_waits_for_a_file_is_told_when_it_is_put_in_place(tmp_path: Path) -> None:
    path, told = tmp_path / "services.json", threading.Event()
    before = signal.signal(signal.SIGIO, lambda *_: told.set())
    try:
        File(path, Logger(io.StringIO())).be_told()
        for _ in range(2):
            path.with_suffix(".new").write_text("{}")
            until(told.is_set)
            told.clear()
            path.with_suffix(".new").rename(path)
            until(told.is_set)
        log = io.StringIO()
        File(tmp_path / "none" / "services.json", Logger(log)).be_told()
        assert "looked at every 0.5 s" in log.getvalue()
    finally:
        signal.signal(signal.SIGIO, before)


@pytest.mark.parametrize(("minor", "slices"), [("20", "v1beta1"), ("24+", "v1")])
def test_an_api_is_followed_as_its_version_has_slices(minor: str, slices: str) -> None:
    path = f"/apis/discovery.k8s.io/{slices}"
    with serving(KubernetesStub(minor, slices)) as api:
        api.do("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "web"}})
        api.do("POST", f"{path}/namespaces/default/endpointslices", {"metadata": {"name": "web-1"}})
        spec = {"podCIDRs": ["fd00::/64", "10.61.0.0/24"]}
        api.do("POST", NODES, {"metadata": {"name": "one", "labels": {ZONE_LABEL: "north"}}, "spec": spec})
        inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        told = parse([*NEEDED, "--node", "one", f"--api={api.url}"])
        server = told.access.server(4)
        listen(server, told, inbox.put, Logger(io.StringIO()))
        found = [inbox.get(timeout=PATIENCE) for _ in range(4)]
        assert found[0].version == (1, int(minor[:2]))
        assert {news.kind: [one["metadata"]["name"] for one in news.objects] for news in found[1:]} == {
            SERVICES: ["web"],
            f"{path}/endpointslices": ["web-1"],
            NODES: ["one"],
        }
        assert any("fieldSelector=metadata.name%3Done" in asked for _, asked in api.asked)
        api.do("DELETE", f"{path}/namespaces/default/endpointslices/web-1")
        assert inbox.get(timeout=PATIENCE).gone
        server.close()


class FakeNode:
    """A node's rules that are only counted."""

    def __init__(self, frame: Frame, log: object) -> None:
        self.frame, self.again = frame, 0.0
        self.did: list[str] = []

    def look(self) -> bool:
        return True

    def apply(self, ports: object, servers: object, touched: object) -> bool:
        self.did.append("write")
        return True

    def remove(self) -> None:
        self.did.append("remove")


@pytest.mark.parametrize("error", [RulesError("nft: no"), KeyError("nft: no")])
@pytest.mark.long(one_in=2)
def test_services_are_left_to_whoever_serves_them_and_only_as_long(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    found: list[str] = ["kube-proxy, mode iptables"]

    def serving(*_: object) -> str:
        if not found:
            raise error
        return found[0]

    monkeypatch.setattr(proxy, "Node", FakeNode)
    monkeypatch.setattr(proxy, "OTHERS_SECONDS", 0.0)
    monkeypatch.setattr(others, "serving", serving)
    said: list[Event] = []
    made = Proxy(parse([*NEEDED, "--file=x"]), Logger(io.StringIO()), said.append)
    made.take(Listed(SERVICES, []))
    made.take(Listed(SLICES[0], []))
    did = made._node.did  # type: ignore[attr-defined]
    stop = threading.Event()
    thread = threading.Thread(target=made.run, args=(stop, queue.SimpleQueue()))
    thread.start()
    try:
        until(lambda: said)
        assert did == ["remove"]
        found[:] = [""]
        until(lambda: len(said) == 2)
        found.clear()
        until(lambda: len(said) == 3)
        found[:] = [""]
        until(lambda: len(said) == 4)
    finally:
        stop.set()
        thread.join()
    assert [(one.type, one.reason) for one in said] == [
        ("Warning", "ServicesLeftAlone"),
        ("Normal", "ServicesServed"),
        ("Warning", "ServicesNotServed"),
        ("Normal", "ServicesServed"),
    ]
    assert "kube-proxy, mode iptables serves 10.96.0.0/16 on this node" in said[0].message
    assert "nft: no" in said[2].message
    assert set(did[1:]) == {"write"}


def test_zone_and_pods_are_the_nodes_to_say_unless_they_are_given() -> None:
    document = {
        "metadata": {"name": "one", "labels": {ZONE_LABEL: "north"}},
        "spec": {"podCIDRs": ["10.61.0.0/24", "fd00::/64"]},
    }
    given = ["--zone=south", "--pods=10.62.0.0/24"]
    for more, expected in (([], ("north", "10.61.0.0/24")), (given, ("south", "10.62.0.0/24"))):
        told = parse([*NEEDED, "--node=one", "--api=http://127.0.0.1:1", *more])
        proxy = Proxy(told, Logger(io.StringIO()))
        proxy.take(Listed(NODES, [document]))
        assert (proxy.where.zone, str(proxy.frame.pods[0]), len(proxy.frame.pods)) == (*expected, 1)
