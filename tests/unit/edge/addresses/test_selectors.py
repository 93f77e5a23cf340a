"""What is asked of labels, as Kubernetes reads it (its selectors' tests, and strconv.ParseInt's bounds)."""

from __future__ import annotations

import pytest

from edge.addresses.selectors import Requirement, Selector

OF_NODE = {"size": "small", "rack": "7", "odd": "1_0", "none": "", "large": str(2**63), "under": "-3"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "met"),
    [
        ("size", "In", ("large", "small"), True),
        ("size", "In", ("large",), False),
        ("absent", "In", ("small",), False),
        ("none", "In", ("",), True),
        ("absent", "In", ("",), False),
        ("size", "NotIn", ("large",), True),
        ("size", "NotIn", ("small",), False),
        ("absent", "NotIn", ("small",), True),
        ("none", "Exists", (), True),
        ("absent", "Exists", (), False),
        ("none", "DoesNotExist", (), False),
        ("absent", "DoesNotExist", (), True),
        ("rack", "Gt", ("6",), True),
        ("rack", "Gt", ("7",), False),
        ("rack", "Lt", ("8",), True),
        ("rack", "Lt", ("7",), False),
        ("rack", "Gt", ("-9",), True),
        ("under", "Lt", ("0",), True),
        ("size", "Gt", ("0",), False),
        ("absent", "Gt", ("0",), False),
        ("absent", "Lt", ("0",), False),
        ("none", "Lt", ("1",), False),
        ("odd", "Gt", ("1",), False),  # ten to Python, and no number to Go
        ("large", "Gt", ("1",), False),  # more than 64 bits
    ],
)
def test_a_requirement_is_met_as_in_kubernetes(
    key: str, operator: str, values: tuple[str, ...], met: bool
) -> None:
    asked = Requirement(key, operator, values)
    assert asked.is_met(OF_NODE) is met
    assert Selector((), ((asked,),)).matched(OF_NODE) == (1 if met else None)
    example = Selector((asked,)).example()
    assert example is not None
    assert asked.is_met(example)


SIZE, RACK = Requirement("size", "In", ("small",)), Requirement("rack", "Gt", ("3",))
GPU = Requirement("gpu", "Exists")


def test_terms_are_alternatives_and_the_best_of_them_counts() -> None:
    both = Selector((), ((GPU,), (SIZE, RACK)))
    assert both.matched({"size": "small", "rack": "4"}) == 2
    assert both.matched({"gpu": ""}) == 1
    assert both.matched({"gpu": "", "size": "small", "rack": "4"}) == 2
    assert both.matched({"size": "small"}) is None
    assert both.missing({"size": "small"}) == [GPU]
    assert both.missing({"size": "small", "rack": "2"}) == [GPU]
    with_labels = Selector((SIZE,), ((GPU,), (RACK,)))
    assert with_labels.matched({"size": "small", "gpu": ""}) == 2
    assert with_labels.matched({"gpu": ""}) is None
    assert with_labels.missing({"gpu": ""}) == [SIZE]


def test_a_term_that_asks_for_nothing_is_met_by_nobody() -> None:
    assert Selector((), ((),)).matched({}) is None
    assert Selector((), ((), (GPU,))).matched({"gpu": ""}) == 1
    assert Selector().matched({}) == 0


def test_no_example_is_made_up_where_there_is_no_such_node() -> None:
    assert Selector((SIZE, Requirement("size", "DoesNotExist"))).example() is None
    assert Selector((RACK, Requirement("rack", "Lt", ("4",)))).example() is None
    assert Selector((SIZE,), ((Requirement("size", "DoesNotExist"),), (RACK,))).example() == {
        "size": "small",
        "rack": "4",
    }


def test_the_text_is_as_kubectl_takes_it_in_an_order_of_its_own() -> None:
    assert str(Selector((SIZE, RACK), ((GPU, Requirement("a", "NotIn", ("y", "x"))), (GPU,)))) == (
        "rack>3,size=small or a notin (x,y),gpu or gpu"
    )
    assert str(Selector((Requirement("a", "DoesNotExist"), Requirement("b", "In", ("2", "1"))))) == (
        "!a,b in (1,2)"
    )
    assert str(Selector()) == ""
