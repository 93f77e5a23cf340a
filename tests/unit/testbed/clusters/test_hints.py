"""Why a service has the hints that it has, as a cluster's API answers; what it is asked only reads."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from bench.presentation import hints as presentation
from edge.services.annotations import ZONE_HINTS
from edge.services.discovery import GROUP, VERSION
from testbed.clusters import hints
from testbed.clusters.hints import PENDING, ask, report
from tests import hinted
from tests.unit.testbed.clusters.api import Api, Objects

SERVICES, EVENTS = "/api/v1/services", "/api/v1/namespaces/shop/events"
WEB = "/api/v1/namespaces/shop/services/web"


def slices_at(api: str) -> str:
    return f"/apis/discovery.k8s.io/{api}/namespaces/shop/endpointslices"


def cluster(
    service: hinted.Document,
    zones: str,
    text: str = "",
    *,
    minor: str = "20",
    api: str = "v1beta1",
    changed: Objects | None = None,
) -> Api:
    """Return one with a zone of 4 processors and one of 8."""
    one = hinted.endpoint_slice("web-1", zones, v1=api == "v1")
    if text:
        one["metadata"]["annotations"] = {ZONE_HINTS: text}
    service["metadata"]["namespace"] = "shop"
    return Api(
        {
            VERSION: {"major": "1", "minor": minor},
            GROUP: {"versions": [{"groupVersion": f"discovery.k8s.io/{api}"}]},
            SERVICES: [service, {"metadata": {"name": "other", "namespace": "default"}}],
            WEB: service,
            slices_at(api): [one],
            "/api/v1/nodes": [hinted.node("n1", "a", 4), hinted.node("n2", "b", 8)],
            EVENTS: [],
            **(changed or {}),
        }
    )


def shown(of: Api) -> str:
    out = io.StringIO()
    presentation.show(Console(file=out, width=80), report(ask(of.client, "shop", "web"), {}))
    return out.getvalue()


def test_a_safeguard_is_named_with_what_would_help_and_who_should_write() -> None:
    text = shown(cluster(hinted.service(auto="auto"), "ab"))
    assert text.startswith("service shop/web: hints auto (Kubernetes 1.20)\n")
    assert "a needs 1, b needs 2: 3 in all" in text
    assert "2 of zone" not in text
    assert "1 of a, 1 of b" in text
    assert "with mode close" in text or "with more ready endpoints" in text


def test_hints_that_are_published_are_read_and_those_that_are_not_yet_are_said() -> None:
    written = '{"10.0.0.1":["a"],"10.0.0.2":["b"],"10.0.0.3":["b"]}'
    text = shown(cluster(hinted.service(auto="auto"), "abb", written))
    assert "no hints" not in text
    assert PENDING not in text
    assert "expected: busiest endpoint at 100 %, 0 % leave their zone" in text
    assert f"note: {PENDING}" in shown(cluster(hinted.service(auto="auto"), "abb"))


def test_where_kubernetes_writes_hints_its_own_are_read() -> None:
    made = cluster(hinted.service(auto="auto"), "abb", minor="27+", api="v1")
    (one,) = ask(made.client, "shop", "web").slices
    for each in one["endpoints"]:
        each["hints"] = {"forZones": [{"name": each["zone"]}]}
    made = cluster(
        hinted.service(auto="auto"), "abb", minor="27+", api="v1", changed={slices_at("v1"): [one]}
    )
    text = shown(made)
    assert "hints auto, by Kubernetes itself (Kubernetes 1.27)" in text
    assert "0 % leave their zone" in text
    assert "does `edge hints` run?" not in text


def test_what_is_not_done_is_noted_with_its_last_event() -> None:
    events = [
        {"reason": reason, "message": message, "lastTimestamp": f"2026-01-0{day}T00:00:00Z", "metadata": made}
        for reason, message, day, made in (
            ("HintsIgnored", "hints are off", 2, {"resourceVersion": "11"}),
            ("TopologyAwareHintsDisabled", "x", 2, {"resourceVersion": "9"}),
            ("NotSupported", "another", 3, {}),
            ("TopologyAwareHintsEnabled", "x", 1, {}),
        )
    ]
    mine = hinted.endpoint_slice("mine", "a", 9, made_by="me")
    affine = hinted.service(auto="aUto", clusterIP="10.96.0.10", sessionAffinity="ClientIP")
    made = cluster(affine, "ab", changed={EVENTS: events})
    said = report(ask(made.client, "shop", "web"), {})
    assert said.wish.mode == "off"
    assert said.notes[0].endswith("not 'aUto': hints are off")
    assert "sessionAffinity: ClientIP is not supported" in said.notes[-2]
    assert said.notes[-1] == "its last event: HintsIgnored: hints are off"
    made = cluster(hinted.service(ours="close"), "ab", changed={slices_at("v1beta1"): [mine]})
    notes = report(ask(made.client, "shop", "web"), {}).notes
    assert notes[0].endswith("not counted or hinted: mine")
    assert "has made no EndpointSlice" in notes[1]


def test_programs_get_all_of_it() -> None:
    found = report(ask(cluster(hinted.service(ours="strict"), "aab").client, "shop", "web"), {})
    document = json.loads(json.dumps(presentation.document(found)))
    (one,) = document["addresses"]
    assert [(row["zone"], row["milli_cpu"], row["endpoints"]) for row in one["zones"]] == [
        ("a", 4000, 2),
        ("b", 8000, 1),
    ]
    assert one["pending"]
    assert document["mode"] == "strict"
    assert document["kubernetes"] == "1.20"


def test_an_unknown_service_is_refused_with_those_that_there_are() -> None:
    api = cluster(hinted.service(), "ab")
    with pytest.raises(
        LookupError, match=r"/a.conf: no service 'wbe' in namespace 'shop' \(services: web\)$"
    ):
        ask(api.client, "shop", "wbe")
    with pytest.raises(LookupError, match=r"\(services: other\); --namespace shop has one$"):
        ask(api.client, "default", "web")
    with pytest.raises(LookupError, match=r"\(services: none\)$"):
        ask(api.client, "a/../b", "x?y")
    assert "/api/v1/namespaces/a%2F..%2Fb/services/x%3Fy?" in api.paths


def test_an_api_without_slices_says_so() -> None:
    api = cluster(hinted.service(), "ab", changed={GROUP: {"versions": []}})
    with pytest.raises(LookupError, match="neither v1 nor v1beta1"):
        hints.ask(api.client, "shop", "web")
