"""What is read of nodes and slices, as Kubernetes 1.20 and newer ones write them."""

from __future__ import annotations

from typing import Any

import pytest

from edge.services.endpoints import Endpoint, Node, Slice, milli_cpu, node_of, slice_of

ZONE = "topology.kubernetes.io/zone"


def node(labels: dict[str, str], ready: str = "True") -> dict[str, Any]:
    conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": "worker-01", "labels": labels},
        "status": {"allocatable": {"cpu": "3920m"}, "conditions": conditions},
    }


def test_a_node_says_its_zone_and_processors_and_whether_it_counts() -> None:
    assert node_of(node({ZONE: "north"})) == Node("worker-01", "north", 3920)
    for other in (node({}, "Unknown"), node({"node-role.kubernetes.io/master": ""})):
        assert not node_of(other).counts
    assert node_of({"metadata": {"name": "new"}}) == Node("new", ready=False)


@pytest.mark.parametrize(
    ("quantity", "thousandths"),
    [
        ("4", 4000),
        ("0.5", 500),
        (".5", 500),
        ("1500m", 1500),
        ("100u", 1),
        ("2e3", 2_000_000),
        ("1E", 10**21),
        ("1k", 1_000_000),
        ("1Ki", 1_024_000),
        ("", 0),
        ("four", 0),
        ("-1", 0),
    ],
)
def test_quantities_are_kubernetes(quantity: str, thousandths: int) -> None:
    assert milli_cpu(quantity) == thousandths


def test_slices_of_both_versions_are_read() -> None:
    old = {
        "metadata": {"name": "web-1"},
        "endpoints": [
            {
                "addresses": ["10.1.2.3"],
                "conditions": {"ready": True},
                "topology": {ZONE: "north", "kubernetes.io/hostname": "worker-01"},
            },
            {"addresses": ["10.1.2.4"]},
        ],
    }
    new = {
        "metadata": {"name": "web-1"},
        "endpoints": [
            {
                "addresses": ["10.1.2.3"],
                "conditions": {"ready": False, "serving": True, "terminating": True},
                "zone": "north",
                "nodeName": "worker-01",
                "hints": {"forZones": [{"name": "north"}, {"name": "south"}]},
            }
        ],
    }
    first, unsaid = Endpoint("10.1.2.3", "north", "worker-01"), Endpoint("10.1.2.4", ready=None)
    assert slice_of(old) == Slice("web-1", (first, unsaid))
    ending = first._replace(ready=False, serving=True, terminating=True, hints=("north", "south"))
    assert slice_of(new) == Slice("web-1", (ending,))
    assert slice_of({"metadata": {"name": "empty"}, "endpoints": None}) == Slice("empty", ())
