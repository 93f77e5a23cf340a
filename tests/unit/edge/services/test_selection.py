"""What kube-proxy's own tests expect of hints, and what it does without ready endpoints and under Local."""

from __future__ import annotations

import pytest

from edge.services.endpoints import Endpoint, Slice
from edge.services.selection import Choice, Policies, Why, choose, distinct


def known(*told: str) -> list[Endpoint]:
    """Return endpoints told like ``ab!``: hinted for zones a and b, and not ready."""
    return [
        Endpoint(
            str(at), ready="!" not in one, serving=False if "!" in one else None, hints=tuple(one.strip("!"))
        )
        for at, one in enumerate(told)
    ]


def used(choice: Choice) -> str:
    return " ".join(one.address for one in choice.endpoints)


@pytest.mark.parametrize(
    ("told", "zone", "addresses", "why"),
    [
        ("a b c a", "a", "0 3", Why.HINTED),
        ("a b  a", "a", "0 1 2 3", Why.MISSING_HINT),
        ("a b c! a", "a", "0 3", Why.HINTED),
        ("a b ! a", "a", "0 3", Why.HINTED),  # what is not ready needs no hint
        ("a! b c", "a", "1 2", Why.NOT_FOR_ZONE),
        ("abc bc bd c", "c", "0 1 3", Why.HINTED),
        ("a a", "b", "0 1", Why.NOT_FOR_ZONE),
        ("a b c a", "", "0 1 2 3", Why.NO_LABEL),
        ("a! b!", "a", "", Why.NONE),
    ],
)
def test_each_row_of_the_proxys_choice(told: str, zone: str, addresses: str, why: Why) -> None:
    choice = choose(known(*told.split(" ")), zone, hinted=True)
    assert (used(choice), choice.why) == (addresses, why)


def test_a_service_that_asks_for_no_hints_uses_all_ready_ones() -> None:
    assert choose(known("a", "b", "a!"), "a", hinted=False) == Choice(tuple(known("a", "b")), Why.OFF)


def test_an_endpoint_in_two_slices_counts_once() -> None:
    first, second = known("a", "b"), [Endpoint("1", hints=("a",)), Endpoint("2", hints=("c",))]
    both = distinct([Slice("one", tuple(first)), Slice("two", tuple(second))])
    assert [(one.address, one.hints) for one in both] == [("0", ("a",)), ("1", ("b",)), ("2", ("c",))]


STATES = [
    Endpoint("ready", node="here", hints=("a",)),
    Endpoint("unsaid", node="there", ready=None, hints=("b",)),
    Endpoint("ending", node="there", ready=False, serving=True, terminating=True, hints=("b",)),
    Endpoint("ended", node="here", ready=False, serving=False, terminating=True, hints=("a",)),
    Endpoint("unsaid-ending", node="here", ready=False, terminating=True),
    Endpoint("starting", node="here", ready=False, serving=False),
]
INTERNAL, EXTERNAL = Policies(internal="Local"), Policies(external="Local")


@pytest.mark.parametrize(
    ("without", "policies", "node", "from_outside", "addresses", "why"),
    [
        (0, Policies(), "here", False, "ready", Why.HINTED),
        (1, Policies(), "here", False, "unsaid", Why.NOT_FOR_ZONE),
        (2, Policies(), "here", False, "ending unsaid-ending", Why.TERMINATING),
        (5, Policies(), "here", False, "", Why.NONE),
        (0, INTERNAL, "here", False, "ready", Why.ON_NODE),
        (1, INTERNAL, "here", False, "unsaid-ending", Why.TERMINATING),
        (0, INTERNAL, "there", False, "unsaid", Why.ON_NODE),
        (2, INTERNAL, "there", False, "ending", Why.TERMINATING),
        (0, INTERNAL, "elsewhere", False, "", Why.NONE),
        (0, INTERNAL, "", False, "", Why.NONE),
        (0, INTERNAL, "here", True, "ready unsaid", Why.POLICY),
        (0, EXTERNAL, "here", True, "ready", Why.ON_NODE),
        (0, EXTERNAL, "here", False, "ready unsaid", Why.POLICY),
    ],
)
def test_what_ends_is_used_only_if_nothing_is_ready_and_local_is_local(
    without: int, policies: Policies, node: str, from_outside: bool, addresses: str, why: Why
) -> None:
    choice = choose(STATES[without:], "a", True, node, policies, from_outside)
    assert (used(choice), choice.why) == (addresses, why)
