"""What plugins are told of a pod's rates: in annotations, and by what runtimes make of them."""

from __future__ import annotations

import pytest

from testbed.enforcements.enforcement import by_annotations, by_capabilities
from testbed.scenario import Pod
from testbed.scenario.descriptions import Annotations, Description

POD = Pod(cluster="a", node="n", guarantee=2 * 10**6, ceiling=5 * 10**6)


def test_who_is_not_told_hears_nothing() -> None:
    deaf = Description(name="deaf", told="nothing")
    assert by_annotations(deaf, POD) == {}
    assert list(by_capabilities(deaf, POD).values()) == [{}]


@pytest.mark.parametrize(
    ("pod", "limit"),
    [
        (POD, "2M"),  # what is promised, not what may be had besides
        (POD.model_copy(update={"guarantee": None}), "5M"),
        (POD.model_copy(update={"ceiling": None}), "2M"),
    ],
)
def test_what_knows_only_limits_is_told_a_promise_as_one(pod: Pod, limit: str) -> None:
    limiting = Description(name="limiting", told="annotation")
    assert by_annotations(limiting, pod) == {"kubernetes.io/egress-bandwidth": limit}


def test_what_knows_guarantees_is_told_both() -> None:
    keys = Annotations(guarantee="example.org/floor")
    both = Description(name="both", told="annotation", annotations=keys)
    expected = {"example.org/floor": "2M", "kubernetes.io/egress-bandwidth": "5M"}
    assert by_annotations(both, POD) == expected
    answering = POD.model_copy(update={"answers": 700_000})
    assert by_annotations(both, answering) == expected
    keys = Annotations(guarantee="example.org/floor", answers="example.org/answers")
    all_three = Description(name="all", told="annotation", annotations=keys)
    assert by_annotations(all_three, answering) == {**expected, "example.org/answers": "700k"}
    receiving = POD.model_copy(update={"ingress": 900_000})
    assert by_annotations(all_three, receiving) == expected
    keys = Annotations(guarantee="example.org/floor", receives="example.org/in")
    two_ways = Description(name="two", told="annotation", annotations=keys)
    assert by_annotations(two_ways, receiving) == {**expected, "example.org/in": "900k"}


def test_a_limit_is_told_for_the_directions_it_is_for() -> None:
    inward = Description(name="in", told="capability", direction=["ingress"], burst=10**6)
    assert by_annotations(inward, POD) == {"kubernetes.io/ingress-bandwidth": "2M"}
    assert by_capabilities(inward, POD)["bandwidth"] == {
        "IngressRate": 2 * 10**6,
        "IngressBurst": 10**6,
        "EgressRate": 0,
        "EgressBurst": 0,
    }
    both = Description(name="both", told="capability", direction=["egress", "ingress"])
    told = by_capabilities(both, POD)["bandwidth"]
    assert told["IngressRate"] == told["EgressRate"] == 2 * 10**6
    assert told["EgressBurst"] == 168_000  # the paper's 84 ms
