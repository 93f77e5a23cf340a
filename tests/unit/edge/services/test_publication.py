"""What is due for services: annotations of slices, and events, once a change."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import Any

import pytest

from edge.services.annotations import ZONE_HINTS
from edge.services.catalogue import SERVICES, SLICES
from edge.services.publication import Publication, Task
from edge.watch import Changed, Listed
from tests import hinted

NODES = "/api/v1/nodes"
WEB = ("default", "web")
ON = "Topology Aware Hints has been enabled, addressType: IPv4: "


class Cluster:
    """A publication, and the objects it is told of; what it wants written, is."""

    def __init__(self, *nodes: hinted.Document, minor: int = 20, **more: Any) -> None:
        self.log: list[str] = []
        self.publication = Publication((1, minor), log=self.log.append, **more)
        self.slices: dict[str, hinted.Document] = {}
        self._version = 0
        for kind, objects in ((SERVICES, ()), (SLICES[0], ()), (NODES, nodes)):
            self.publication.take(Listed(kind, list(objects)))

    def service(self, document: hinted.Document, gone: bool = False) -> None:
        self.publication.take(Changed(SERVICES, document, gone))

    def slice(self, document: hinted.Document, **annotations: str) -> None:
        """Let a slice be so; without annotations it keeps those that it has."""
        self._version += 1
        before = self.slices.get(document["metadata"]["name"], {"metadata": {}})["metadata"]
        kept = annotations or before.get("annotations", {})
        metadata = {**document["metadata"], "annotations": kept, "resourceVersion": str(self._version)}
        made = {**document, "metadata": metadata}
        self.slices[metadata["name"]] = made
        self.publication.take(Changed(SLICES[0], made, False))

    def node(self, document: hinted.Document, gone: bool = False) -> None:
        self.publication.take(Changed(NODES, document, gone))

    def due(self) -> list[str]:
        """Do all that is due; return what was said."""
        said: list[str] = []
        for _ in range(9):
            tasks = list(self.publication.tasks())
            if not tasks:
                return said
            for task in tasks:
                said += [f"{event.reason}: {event.message}" for event in task.events]
                self._write(task)
                self.publication.conclude(task)
        raise AssertionError("there is always something more to do")

    def _write(self, task: Task) -> None:
        for post in task.posts:
            one = self.slices[post.slice[1]]
            assert post.version == one["metadata"]["resourceVersion"]
            text = {} if post.text is None else {ZONE_HINTS: post.text}
            self.slices[post.slice[1]] = {**one, "metadata": {**one["metadata"], "annotations": {}}}
            self.slice(one | {"metadata": {**one["metadata"], "annotations": {}}}, **text)

    def hints(self) -> dict[str, str]:
        """Return what annotations say: the last part of each address, and its zones."""
        texts = [json.loads(hinted.text_of(one) or "{}") for one in self.slices.values()]
        return {
            address.rpartition(".")[2]: "".join(zones) for text in texts for address, zones in text.items()
        }


def two_zones(**more: Any) -> Cluster:
    return Cluster(hinted.node("n1", "a"), hinted.node("n2", "b"), **more)


def test_hints_come_and_go_with_the_wish_and_each_change_is_said_once() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "aabb"))
    cluster.service(hinted.service())
    assert cluster.due() == []
    cluster.service(hinted.service(auto="auto"))
    assert cluster.due() == [f"TopologyAwareHintsEnabled: {ON}2 for a, 2 for b"]
    assert cluster.hints() == {"1": "a", "2": "a", "3": "b", "4": "b"}
    cluster.slice(hinted.endpoint_slice("web-1", "aabbaabb"))
    assert cluster.due() == []
    assert len(cluster.hints()) == 8
    cluster.slice(hinted.endpoint_slice("web-1", "aab"))
    (said,) = cluster.due()
    assert said.startswith("TopologyAwareHintsDisabled: Unable to allocate minimum required endpoints")
    assert "(3 endpoints, 2 zones), addressType: IPv4: a needs 2, b needs 2: 4 in all" in said
    assert cluster.hints() == {}
    cluster.slice(hinted.endpoint_slice("web-1", "aab"))
    assert cluster.due() == []
    cluster.slice(hinted.endpoint_slice("web-1", "aabb"))
    assert cluster.due() == [f"TopologyAwareHintsEnabled: {ON}2 for a, 2 for b"]
    cluster.service(hinted.service())
    assert cluster.due() == [
        "TopologyAwareHintsDisabled: Topology Aware Hints has been disabled, addressType: IPv4"
    ]
    assert cluster.hints() == {}
    cluster.service(hinted.service(auto="auto"))
    assert len(cluster.due()) == 1


def test_a_word_that_is_none_is_off_and_said() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "aabb"))
    cluster.service(hinted.service(auto="auto"))
    cluster.due()
    cluster.service(hinted.service(auto="aUto"))
    said = cluster.due()
    assert len(said) == 2
    assert "must be auto, Auto, disabled or Disabled, not 'aUto': hints are off" in said[0]
    assert said[0].startswith("HintsIgnored: ")
    assert cluster.hints() == {}
    cluster.service(hinted.service(auto="aUto", type="ClusterIP"))
    assert cluster.due() == []


def test_local_is_a_warning_beside_the_hints() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "ab"))
    cluster.service(hinted.service(ours="close", externalTrafficPolicy="Local"))
    said = cluster.due()
    assert said[0].startswith("HintsIgnored: spec.externalTrafficPolicy: Local, so hints are ignored")
    assert cluster.hints() == {"1": "a", "2": "b"}


@pytest.mark.parametrize("minor", [20, 23, 24, 31])
def test_from_24_auto_is_the_built_in_controllers_and_the_other_modes_are_ours(minor: int) -> None:
    cluster = two_zones(minor=minor)
    cluster.slice(hinted.endpoint_slice("web-1", "aabb"), **{ZONE_HINTS: '{"10.0.0.1":["a"]}'})
    cluster.service(hinted.service(auto="auto"))
    said = cluster.due()
    assert bool(cluster.hints()) == (minor < 24)
    assert minor < 24 or not said
    for mode in ("strict", "close", "nearest"):
        cluster.service(hinted.service(ours=mode))
        cluster.due()
        assert cluster.hints() == {"1": "a", "2": "a", "3": "b", "4": "b"}


def test_slices_of_others_are_neither_counted_nor_written() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "ab"))
    cluster.slice(hinted.endpoint_slice("mine", "ab", 5, made_by="somebody"))
    cluster.service(hinted.service(ours="close"))
    cluster.due()
    assert cluster.hints() == {"1": "a", "2": "b"}


def test_what_is_not_ready_has_no_hint() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "aAbB"))
    cluster.service(hinted.service(ours="close"))
    cluster.due()
    assert cluster.hints() == {"1": "a", "3": "b"}


def test_nodes_let_only_overloaded_services_be_allocated_anew() -> None:
    cluster = two_zones()
    for name, zones, first in (("web", "aabb", 1), ("off", "a", 11), ("near", "ab", 21)):
        cluster.slice(hinted.endpoint_slice(f"{name}-1", zones, first, of=name))
        mode = {"ours": "close"} if name == "near" else {"auto": "auto"}
        cluster.service(hinted.service(name, **mode))
    cluster.due()
    cluster.node(hinted.node("n3", "a", 1))  # a little more in one zone
    assert list(cluster.publication.tasks()) == []
    cluster.node(hinted.node("n3", "a", 16))
    (task,) = cluster.publication.tasks()
    assert task.service == WEB
    cluster.publication.conclude(task)
    cluster.node(hinted.node("n2", "b"), gone=True)
    (said,) = cluster.due()  # of web: whoever has no hints waits for its endpoints, as upstream
    assert "Nodes only ready in one zone" in said


def test_nearest_is_allocated_anew_when_there_are_other_zones() -> None:
    cluster = two_zones(delays={("a", "c"): 0.001, ("b", "c"): 0.002})
    cluster.slice(hinted.endpoint_slice("web-1", "ab"))
    cluster.service(hinted.service(ours="nearest"))
    cluster.due()
    assert cluster.hints() == {"1": "a", "2": "b"}
    cluster.node(hinted.node("n3", "c"))
    assert cluster.due() == []
    assert cluster.hints() == {"1": "ac", "2": "b"}


def test_of_a_service_one_task_at_a_time_and_what_was_not_said_is_due_again() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "aabb"))
    cluster.service(hinted.service(auto="auto"))
    (first,) = cluster.publication.tasks()
    cluster.slice(hinted.endpoint_slice("web-1", "aabbab"))
    assert list(cluster.publication.tasks()) == []
    cluster.publication.conclude(first, said=False)
    assert cluster.due() == [f"TopologyAwareHintsEnabled: {ON}3 for a, 3 for b"]


def test_an_annotation_that_is_taken_away_is_written_again_and_one_that_is_none_replaced() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "ab"))
    cluster.service(hinted.service(ours="close"))
    cluster.due()
    for text in ("", "{", '{"10.0.0.1":["b"],"10.0.0.2":["a"]}'):
        cluster.slice(hinted.endpoint_slice("web-1", "ab"), **({ZONE_HINTS: text} if text else {"a": "b"}))
        cluster.due()
        assert cluster.hints() == {"1": "a", "2": "b"}


def test_a_service_that_is_gone_leaves_no_hints() -> None:
    cluster = two_zones()
    cluster.slice(hinted.endpoint_slice("web-1", "ab"))
    cluster.service(hinted.service(ours="close"))
    cluster.due()
    cluster.service(hinted.service(ours="close"), gone=True)
    assert cluster.due() == []
    assert cluster.hints() == {}


def test_what_cannot_be_read_is_left_alone_and_the_others_go_on() -> None:
    cluster = two_zones()
    cluster.service({"metadata": {"name": "bad", "annotations": 5}})
    cluster.publication.take(Changed(SLICES[0], hinted.endpoint_slice("x", "a") | {"endpoints": 5}, False))
    cluster.slice(hinted.endpoint_slice("web-1", "ab"))
    cluster.service(hinted.service(ours="close"))
    cluster.due()
    assert cluster.hints() == {"1": "a", "2": "b"}
    assert [text.split(":")[0] for text in cluster.log] == ["service default/bad", "slice default/x"]


def test_what_is_not_built_is_said_once_where_a_proxy_of_ours_serves() -> None:
    affine = hinted.service(clusterIP="10.96.0.10", sessionAffinity="ClientIP")
    silent = two_zones()
    silent.service(affine)
    assert silent.due() == []
    cluster = two_zones(services=IPv4Network("10.96.0.0/16"))
    cluster.service(affine)
    said = (
        "NotSupported: spec.sessionAffinity: ClientIP is not supported, use None: the service is left alone"
    )
    assert cluster.due() == [said]
    # Its slices and nodes change nothing about that, and hints are another event.
    cluster.slice(hinted.endpoint_slice("web-1", "aabb"))
    cluster.node(hinted.node("n2", "b", 5))
    assert cluster.due() == []
    cluster.service(hinted.service(auto="auto", clusterIP="10.96.0.10", type="NodePort"))
    assert [one.partition(":")[0] for one in cluster.due()] == ["NotSupported", "TopologyAwareHintsEnabled"]
    cluster.service(hinted.service(auto="aUto", clusterIP="10.96.0.10"))
    assert [one.partition(":")[0] for one in cluster.due()] == ["HintsIgnored", "TopologyAwareHintsDisabled"]
    assert cluster.hints() == {}
    cluster.service(affine)
    assert cluster.due() == [said]


@pytest.mark.parametrize("spec", [{"ports": [{"port": 70000}]}, {"ports": 7}, {"clusterIP": "10.97.0.9"}])
def test_a_service_that_cannot_be_is_said_and_the_others_go_on(spec: dict[str, Any]) -> None:
    cluster = two_zones(services=IPv4Network("10.96.0.0/16"))
    cluster.service(hinted.service("bad", **{"clusterIP": "10.96.0.9", **spec}))
    cluster.slice(hinted.endpoint_slice("web-1", "ab"))
    cluster.service(hinted.service(ours="close", clusterIP="10.96.0.10"))
    said = cluster.due()
    assert [one.endswith("the service is left alone") for one in said if one.startswith("NotSup")] == [True]
    assert cluster.hints() == {"1": "a", "2": "b"}
