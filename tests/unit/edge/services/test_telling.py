"""What a proxy says of itself to the API."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from edge.http import Server
from edge.log import Logger
from edge.services import telling
from edge.services.hints import Event
from edge.services.telling import GATE
from tests.unit.edge.stub import StubApi, serving
from tests.waiting import until

POD = "/api/v1/namespaces/own/pods/proxy-x"
SERVED = Event("Normal", telling.SERVED, "services are served")
LEFT_ALONE = Event("Warning", telling.LEFT_ALONE, "kube-proxy serves them")
FAILED = Event("Warning", telling.FAILED, "nft: no")


def test_a_pod_is_ready_by_its_proxys_word_and_events_are_about_what_is_unusual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(telling, "AGAIN_SECONDS", 0.01)
    faults: Iterator[int | None] = iter([500, 500])
    with serving(StubApi()) as api:
        api.kinds.add("/api/v1/pods")
        api.do("POST", POD.rpartition("/")[0], {"metadata": {"name": "proxy-x"}})
        api.fault = lambda *_: next(faults, None)
        server = Server(api.url)
        tell = telling.by_all(server, "one", POD, Logger(io.StringIO()))

        def ready() -> str:
            (pod,) = api.all("/api/v1/pods").values()
            found = {one["type"]: one for one in pod.get("status", {}).get("conditions", [])}
            return str(found.get(GATE, {}).get("status"))

        for event, status in ((SERVED, "True"), (FAILED, "False"), (LEFT_ALONE, "True")):
            tell(event)
            until(lambda: ready() == status)  # noqa: B023 (it is waited for here)
        until(lambda: len(api.all("/api/v1/events")) == 2)
        about = {"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "one"}
        said = api.all("/api/v1/events").values()
        assert all(event["involvedObject"] == about for event in said)
        expected = {(one.reason, one.message) for one in (FAILED, LEFT_ALONE)}
        assert {(event["reason"], event["message"]) for event in said} == expected
        tell(SERVED)
        until(lambda: len(api.all("/api/v1/events")) == 3)
        server.close()
