"""The whole program that publishes hints, against an API in memory that fails in all ways that it can."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edge.http import Json
from edge.log import Logger
from edge.services import publisher
from edge.services.annotations import OURS
from edge.services.endpoints import ZONE_LABEL
from edge.services.publisher import NODES, parse
from tests import hinted
from tests.unit.edge.stub import LOST, KubernetesStub, Running, serving
from tests.waiting import until

EVENTS = "/api/v1/events"


class Case(Running):
    """An API, and a publisher that runs in a thread."""

    def __init__(self, api: KubernetesStub) -> None:
        super().__init__(api.url)
        self.api = api
        self.group = f"/apis/discovery.k8s.io/{api.slices}"

    def run(self, arguments: list[str], stop: threading.Event) -> None:
        options = parse(arguments)
        server = options.server()
        publisher.lead(options, server, stop, Logger(self.stream))
        server.close()

    def make(self, kind: str, document: Json) -> None:
        status, answer = self.api.do("POST", self._path(kind), document)
        assert status == 201, answer

    def change(self, kind: str, name: str, body: Json) -> None:
        status, answer = self.api.do("PATCH", f"{self._path(kind)}/{name}", body)
        assert status == 200, answer

    def _path(self, kind: str) -> str:
        if kind == "nodes":
            return NODES
        group = self.group if kind == "endpointslices" else "/api/v1"
        return f"{group}/namespaces/default/{kind}"

    def until(self, what: Callable[[], object]) -> None:
        until(what, hint=lambda: f"{self.texts()}\n{self.stream.getvalue()}")

    def texts(self) -> dict[str, str | None]:
        slices = self.api.all(f"{self.group}/endpointslices")
        return {name: hinted.text_of(one) for name, one in slices.items()}

    def until_hints(self, **zones: str) -> None:
        """Wait until slices are hinted, each for these zones, one an endpoint in their order."""

        def there() -> bool:
            found = {name.replace("-", "_"): json.loads(text or "{}") for name, text in self.texts().items()}
            return {name: "".join(zone for (zone,) in text.values()) for name, text in found.items()} == zones

        self.until(there)

    def reasons(self) -> list[str]:
        return sorted(one["reason"] for one in self.api.all(EVENTS).values())


@contextmanager
def case(minor: str = "20", slices: str = "v1beta1") -> Iterator[Case]:
    with serving(KubernetesStub(minor, slices)) as api:
        assert isinstance(api, KubernetesStub)
        made = Case(api)
        for name, zone in (("n1", "a"), ("n2", "b")):
            made.make("nodes", hinted.node(name, zone))
        made.make("services", hinted.service(auto="auto"))
        made.make("endpointslices", hinted.endpoint_slice("web-1", "aabb", v1=slices == "v1"))
        try:
            yield made
        finally:
            made.end()


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    monkeypatch.setattr(publisher, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(publisher, "FIRST_RETRY", 0.005)
    with case() as made:
        yield made


def test_hints_follow_slices_services_and_nodes_and_events_say_so(one: Case) -> None:
    one.start()
    one.until_hints(web_1="aabb")
    one.until(lambda: one.reasons() == ["TopologyAwareHintsEnabled"])
    (event,) = one.api.all(EVENTS).values()
    assert event["involvedObject"]["name"] == "web"
    assert event["source"]["component"] == publisher.COMPONENT
    assert event["type"] == "Normal"
    one.make("endpointslices", hinted.endpoint_slice("web-2", "ba", 11))
    one.until_hints(web_1="aabb", web_2="ba")
    one.change("endpointslices", "web-1", {"endpoints": hinted.endpoints("ab")})
    one.until_hints(web_1="ab", web_2="ba")
    one.change("nodes", "n2", {"metadata": {"labels": {ZONE_LABEL: None}}})
    one.until(lambda: set(one.texts().values()) == {None})
    one.until(lambda: "TopologyAwareHintsDisabled" in one.reasons())
    one.change("services", "web", {"metadata": {"annotations": {OURS: "close"}}})
    one.until_hints(web_1="ab", web_2="ba")
    one.change("services", "web", {"metadata": {"annotations": None}})
    one.until(lambda: set(one.texts().values()) == {None})


def test_nothing_else_is_written_to_others_objects(one: Case) -> None:
    before = one.api.all(f"{one.group}/endpointslices")["web-1"]
    one.start()
    one.until_hints(web_1="aabb")
    after = one.api.all(f"{one.group}/endpointslices")["web-1"]
    assert after["metadata"].pop("annotations")
    for document in (before, after):
        document["metadata"].pop("resourceVersion")
    assert after == before
    written = {path.partition("?")[0] for method, path in one.api.asked if method != "GET"}
    assert all("/endpointslices/" in path or "/events" in path or "/leases" in path for path in written)


def test_newer_kubernetes_keeps_auto_and_leaves_ours_to_us() -> None:
    with case("27", "v1") as one:
        one.make("services", hinted.service("ours", ours="strict"))
        one.make("endpointslices", hinted.endpoint_slice("ours-1", "ab", 11, of="ours", v1=True))
        one.start()
        one.until_hints(web_1="", ours_1="ab")


def test_answers_that_are_lost_and_refusals_are_tried_again(one: Case) -> None:
    faults: Iterator[object] = iter([LOST, 500, 409, LOST, 503])
    one.api.fault = lambda method, path: (
        next(faults, None) if method != "GET" and "/leases" not in path else None
    )
    one.start()
    one.until_hints(web_1="aabb")
    one.until(lambda: one.reasons() == ["TopologyAwareHintsEnabled"])


def test_events_that_one_may_not_write_are_done_without(one: Case) -> None:
    one.api.fault = lambda _, path: 403 if "/events" in path else None
    one.start()
    one.until_hints(web_1="aabb")
    assert "an event cannot be written" in one.stream.getvalue()


def test_watches_that_end_and_are_too_old_are_gone_on_with(one: Case) -> None:
    one.start()
    one.until_hints(web_1="aabb")
    for forget in (False, True):
        one.api.end_watches(half=True, forget=forget)
        one.change("endpointslices", "web-1", {"endpoints": hinted.endpoints("abab" if forget else "ab")})
        one.until_hints(web_1="abab" if forget else "ab")


def test_who_comes_after_makes_of_what_is_there_what_it_justifies(one: Case) -> None:
    one.start()
    one.until_hints(web_1="aabb")
    one.end()
    one.change("services", "web", {"metadata": {"annotations": None}})
    one.change("endpointslices", "web-1", {"endpoints": hinted.endpoints("ab")})
    one.make("services", hinted.service("other", ours="close"))
    one.make("endpointslices", hinted.endpoint_slice("other-1", "b", of="other"))
    one.start()
    one.until_hints(web_1="", other_1="b")


def test_another_version_begins_a_new_term(one: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "VERSION_SECONDS", 0.01)
    one.start()
    one.until_hints(web_1="aabb")
    one.api.minor = "24"
    one.until_hints(web_1="")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--api or --in-cluster"),
        (["--api=http://127.0.0.1:1", "--delays=a-b=1"], "is not like north:south=0.005"),
        (["--api=http://127.0.0.1:1", "--delays=a:b=-1"], "is not like north:south=0.005"),
        (["--api=http://127.0.0.1:1", "--delays=nowhere"], "No such file"),
        (["--api=http://127.0.0.1:1", "--lease=one"], "is not like kube-system/"),
    ],
)
def test_options_that_cannot_be_end_it(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_delays_are_an_option_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "delays"
    file.write_text("north:south=0.005\nnorth:far-west=1e-2\n")
    for text in (str(file), "north:south=0.005,north:far-west=1e-2"):
        told = parse(["--api=http://127.0.0.1:1", f"--delays={text}"])
        assert told.delays == {("north", "south"): 0.005, ("north", "far-west"): 0.01}
