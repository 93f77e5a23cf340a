"""How leases stand in Kubernetes' Nodes, and how they are followed."""

from __future__ import annotations

from typing import Any

import pytest

from edge.http import AwayError, Json, UnfitError
from edge.overlay.leases import Lease
from edge.overlay.node_annotations import BACKEND, DATA, Annotations, of_lease, of_node
from tests.unit.edge.overlay.kernels import OWN, lease
from tests.unit.edge.overlay.servers import Nodes


def node(name: str, one: Lease, annotated: bool = True) -> Json:
    written = of_lease(one) if annotated else {}
    return {"metadata": {"name": name, "annotations": written}, "spec": {"podCIDR": str(one.subnet)}}


@pytest.fixture
def api() -> Nodes:
    return Nodes({"one": node("one", OWN, annotated=False), "two": node("two", lease(2))})


def followed(api: Nodes) -> list[list[Lease]]:
    store = Annotations(api, OWN, "one")
    assert list(store.follow()) == []
    return [list(one) for one in store.follow()]


def test_annotations_are_flannels() -> None:
    assert of_lease(lease(2)) == {
        "flannel.alpha.coreos.com/public-ip": "192.168.122.2",
        "flannel.alpha.coreos.com/backend-type": "vxlan",
        "flannel.alpha.coreos.com/backend-data": '{"VtepMAC": "0e:00:00:00:00:02"}',
        "flannel.alpha.coreos.com/kube-subnet-manager": "true",
    }


def test_the_own_ones_are_written_by_way_of_the_nodes_status(api: Nodes) -> None:
    assert followed(api) == [[OWN, lease(2)]]
    (patch,) = api.patched
    assert (patch.method, patch.path) == ("PATCH", "/api/v1/nodes/one/status")
    assert patch.kind == "application/strategic-merge-patch+json"
    assert patch.body == {"metadata": {"annotations": of_lease(OWN)}}


def test_changes_are_followed_and_what_does_not_concern_leases_is_not_news(api: Nodes) -> None:
    back = lease(2, mac="0e:00:00:00:00:22")
    api.said = [
        {"type": "MODIFIED", "object": node("two", lease(2))},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "50"}}},
        {"type": "ADDED", "object": node("three", lease(3), annotated=False)},
        {"type": "MODIFIED", "object": node("three", lease(3))},
        {"type": "MODIFIED", "object": node("two", back)},
        {"type": "DELETED", "object": node("three", lease(3))},
    ]
    known = followed(api)
    assert known[0] == [OWN, lease(2)]
    assert [OWN, lease(2), lease(3)] in known
    assert known[-2:] == [[OWN, lease(3), back], [OWN, back]]


def test_own_ones_that_somebody_changed_are_written_again(api: Nodes) -> None:
    api.said = [
        {"type": "MODIFIED", "object": node("one", lease(1, address="192.168.122.99"))},
        {"type": "ADDED", "object": node("three", lease(3))},
    ]
    assert all(lease(3) not in known for known in followed(api))


def test_a_watch_that_is_too_old_is_asked_for_anew(api: Nodes) -> None:
    api.said = [{"type": "ERROR", "object": {"code": 410}}, {"type": "ADDED", "object": node("3", lease(3))}]
    assert followed(api) == [[OWN, lease(2)]]


@pytest.mark.parametrize(
    "changed",
    [
        {"spec": {}},
        {"spec": {"podCIDR": "10.1.2.1/24"}},
        {"spec": None},
        {"metadata": {"annotations": {BACKEND: "host-gw"}}},
        {"metadata": {"annotations": {BACKEND: "vxlan", DATA: "{"}}},
        {"metadata": {"annotations": {BACKEND: "vxlan", DATA: {"VtepMAC": 1}}}},
    ],
)
def test_a_node_that_says_it_otherwise_has_no_lease(changed: dict[str, Any]) -> None:
    with pytest.raises(UnfitError):
        of_node({**node("two", lease(2)), **changed})


@pytest.mark.parametrize("list_", [{}, {"items": 5, "metadata": {}}, {"items": [5]}, {"items": []}])
def test_a_list_that_is_none_is_a_store_that_is_away(list_: Json) -> None:
    class Other(Nodes):
        def ask(self, question: object) -> Json:
            return list_

    with pytest.raises(AwayError):
        list(Annotations(Other({}), OWN, "one").follow())
