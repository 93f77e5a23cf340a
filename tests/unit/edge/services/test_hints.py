"""What upstream's own tests expect, and what is published about its arithmetic, row by row."""

from __future__ import annotations

import pytest

from edge.services.endpoints import Endpoint, Node, Slice
from edge.services.hints import (
    AUTO,
    CLOSE,
    MODES,
    NEAREST,
    OFF,
    STRICT,
    Event,
    Safeguard,
    allocate,
    event,
    is_overloaded,
    moves,
)
from tests.unit.edge.services.builders import endpoints, hints, nodes, service


def counts(mode: str, cpus: list[int], ready: list[int]) -> str:
    """Return how many endpoints each zone is hinted, like 4/3/3, or the safeguard."""
    result = allocate(mode, nodes(*cpus), service(*ready))
    if result.why_not:
        return result.why_not.safeguard.name
    return "/".join(str(result.hinted[zone]) for zone, _ in zip("abc", cpus, strict=False))


@pytest.mark.parametrize(
    ("cpus", "ready", "auto", "strict"),
    [
        ([300, 400, 300], [1, 1, 0], "TOO_FEW_ENDPOINTS", ""),
        ([2, 1], [1, 1], "OVERLOAD", ""),
        ([1, 1], [2, 1], "OVERLOAD", ""),
        ([1, 1], [3, 2], "OVERLOAD", ""),
        ([1, 1], [4, 3], "4/3", ""),
        ([1, 1, 1], [2, 1, 1], "OVERLOAD", ""),
        ([1, 1, 1], [4, 1, 1], "2/2/2", ""),
        ([1, 1, 1], [4, 4, 3], "OVERLOAD", ""),
        ([350, 350, 300], [5, 2, 3], "4/3/3", ""),
        ([2, 1], [3, 3], "4/2", ""),
        ([2, 1], [0, 3], "2/1", ""),
        ([4, 4, 2], [5, 2, 3], "4/4/2", ""),
        ([8, 1], [5, 4], "8/1", ""),
        ([1, 4], [0, 7], "1/6", "2/5"),
        ([1, 8], [0, 4], "0/4", "1/3"),
        ([1, 4], [1, 5], "OVERLOAD", "1/5"),
    ],
)
def test_each_row_of_the_oracle(cpus: list[int], ready: list[int], auto: str, strict: str) -> None:
    assert (counts(AUTO, cpus, ready), counts(STRICT, cpus, ready)) == (auto, strict or auto)


def test_the_first_of_the_zone_that_gives_is_given() -> None:
    given = hints(allocate(AUTO, nodes(350, 350, 300), service(5, 2, 3)).slices)
    assert {address for address, zone in given.items() if zone != address[0]} == {"a-0"}
    assert given["a-0"] == "b"


@pytest.mark.parametrize(
    ("desired", "have", "gives", "receives"),
    [
        ([5.1, 5.1, 5.8], [16, 0, 0], {"a": 10}, {"b": 5, "c": 5}),
        ([5, 5.6, 5.4], [16, 0, 0], {"a": 11}, {"b": 6, "c": 5}),
        ([5, 5.6, 5.4], [0, 8, 8], {"b": 2, "c": 3}, {"a": 5}),
        ([1.2, 1.1, 1], [1, 1, 1], {}, {}),
        ([5, 5, 5], [-40, 20, 20], {"b": 15, "c": 15}, {"a": 30}),
    ],
)
def test_each_row_of_giving_and_receiving(
    desired: list[float], have: list[int], gives: dict[str, int], receives: dict[str, int]
) -> None:
    moved = moves(dict(zip("abc", desired, strict=True)), dict(zip("abc", have, strict=True)))
    assert moved == (gives, receives)


READY = nodes(1000, 1000)


@pytest.mark.parametrize(
    ("there", "slices", "message"),
    [
        (
            [*READY, Node("bare", "", 0)],
            service(2, 2),
            "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, "
            "addressType: IPv4: bare has no label topology.kubernetes.io/zone, bare has no allocatable CPU",
        ),
        (
            [Node("gone", "a", 1000, ready=False)],
            service(2),
            "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes, "
            "addressType: IPv4: no node is ready",
        ),
        (
            [READY[0], READY[1]._replace(ready=False), Node("master", "c", 0, control_plane=True)],
            service(2, 2),
            "Nodes only ready in one zone, addressType: IPv4: a has all 1 ready nodes",
        ),
        (
            nodes(300, 400, 300),
            service(1, 1),
            "Insufficient number of endpoints (2 endpoints, 3 zones), addressType: IPv4: "
            "each of a, b, c needs one",
        ),
        (
            nodes(2, 1),
            service(1, 1),
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold "
            "(2 endpoints, 2 zones), addressType: IPv4: a needs 2, b needs 1: 3 in all",
        ),
        (
            READY,
            [Slice("web-1", (*endpoints("aab"), Endpoint("10.1.2.3")))],
            "One or more endpoints do not have a zone specified, addressType: IPv4: 10.1.2.3",
        ),
    ],
)
@pytest.mark.parametrize("mode", [AUTO, STRICT])
def test_each_safeguard_in_upstreams_words_with_the_numbers(
    mode: str, there: list[Node], slices: list[Slice], message: str
) -> None:
    result = allocate(mode, there, slices)
    assert event(result, before=False) == Event("Warning", "TopologyAwareHintsDisabled", message)
    assert not result.hinted


def test_that_hints_were_switched_on_or_off_is_said_once() -> None:
    on, off = allocate(AUTO, READY, service(2, 2)), allocate(OFF, READY, service(2, 2))
    said = "Topology Aware Hints has been enabled, addressType: IPv6: 2 for a, 2 for b"
    assert event(on, False, "IPv6") == Event("Normal", "TopologyAwareHintsEnabled", said)
    gone = "Topology Aware Hints has been disabled, addressType: IPv4"
    assert event(off, True) == Event("Warning", "TopologyAwareHintsDisabled", gone)
    assert event(on, True) is event(off, False) is None


def test_only_what_says_that_it_is_ready_is_counted_and_hinted() -> None:
    unready = [Endpoint("b-8", "b", ready=None), Endpoint("b-9", "b", ready=False, hints=("a",))]
    result = allocate(AUTO, READY, [Slice("web-1", (*unready, *endpoints("abba")))])
    assert hints(result.slices) == {"b-8": "", "b-9": "", "a-0": "a", "b-0": "b", "b-1": "b", "a-1": "a"}
    assert allocate(AUTO, READY, [Slice("web-1", (*unready, *endpoints("a")))]).why_not is not None


def hinted(name: str, *zones: str) -> Slice:
    """Return a slice of zone a's endpoints that are hinted already."""
    return Slice(name, tuple(Endpoint(f"{name}-{at}", "a", hints=tuple(to)) for at, to in enumerate(zones)))


def test_a_valid_slice_stays_as_it_is_and_the_others_make_up_for_it() -> None:
    kept = hinted("kept", "b", "b")
    result = allocate(AUTO, READY, [Slice("new", tuple(endpoints("ab"))), kept])
    assert result.slices[1] == kept
    assert hints(result.slices[:1]) == {"a-0": "a", "b-0": "a"}


@pytest.mark.parametrize(
    "slice_",
    [
        hinted("without a hint", "a", "a", ""),
        hinted("for a zone that is none", "a", "a", "c"),
        hinted("above the maximum", "b", "b", "b"),
        hinted("other endpoints", "a", "b", "a")._replace(changed=True),
    ],
    ids=lambda one: one.name,
)
@pytest.mark.parametrize("mode", [AUTO, STRICT])
def test_a_slice_is_hinted_anew_if_it_is_not_valid(mode: str, slice_: Slice) -> None:
    result = allocate(mode, READY, [slice_, Slice("new", tuple(endpoints("b")))])
    assert "".join(hints(result.slices[:1]).values()) == "baa"


def test_strict_keeps_no_slice_that_is_in_the_way_of_a_minimum() -> None:
    """Each zone has no more than its maximum, 4 of 10, and together they leave the third too few."""
    slices = [hinted("one", *"aaaa"), hinted("two", *"bbbb"), Slice("new", tuple(endpoints("aa")))]
    assert allocate(AUTO, nodes(2, 2, 2), slices).hinted == {"a": 4, "b": 4, "c": 2}
    assert allocate(STRICT, nodes(2, 2, 2), slices).hinted["c"] == 3


def test_strict_uses_endpoints_in_zones_without_nodes() -> None:
    """``auto`` hints them for their own zones, where nobody asks: the others carry half as much again."""
    assert allocate(AUTO, READY, service(2, 2, 2)).hinted == {"a": 2, "b": 2, "c": 2}
    assert allocate(STRICT, READY, service(2, 2, 2)).hinted == {"a": 3, "b": 3}


def test_strict_keeps_no_endpoint_that_two_zones_share() -> None:
    slices = [hinted("shared", "ab", "ab"), Slice("new", tuple(endpoints("bb")))]
    assert allocate(AUTO, READY, slices).slices[0] == slices[0]
    assert all(len(zone) == 1 for zone in hints(allocate(STRICT, READY, slices).slices).values())


def test_close_hints_each_endpoint_for_its_own_zone_whatever_the_processors() -> None:
    result = allocate(CLOSE, nodes(1, 0, 100), service(4, 4, 3))
    assert result.hinted == {"a": 4, "b": 4, "c": 3}


def test_nearest_hints_endpoints_also_for_zones_that_have_none() -> None:
    delays = {("a", "c"): 0.005, ("c", "b"): 0.002, ("a", "b"): 0.004}
    assert hints(allocate(NEAREST, nodes(1, 1, 1), service(1, 1), delays).slices) == {"a-0": "a", "b-0": "bc"}
    equal = {("c", "a"): 0.002, ("b", "c"): 0.002}
    assert hints(allocate(NEAREST, nodes(1, 1, 1), service(1, 1), equal).slices) == {"a-0": "ac", "b-0": "bc"}
    assert hints(allocate(NEAREST, nodes(1, 1, 1), service(1, 1)).slices) == {"a-0": "ac", "b-0": "bc"}


@pytest.mark.parametrize("mode", [CLOSE, NEAREST])
@pytest.mark.parametrize(
    ("there", "safeguard", "numbers"),
    [
        ([Endpoint("a-0", "a", ready=False)], Safeguard.NO_ENDPOINTS, "no endpoint is ready"),
        ([*endpoints("ab"), Endpoint("nowhere")], Safeguard.NO_ZONE, "nowhere"),
    ],
)
def test_close_and_nearest_need_ready_endpoints_with_zones(
    mode: str, there: list[Endpoint], safeguard: Safeguard, numbers: str
) -> None:
    why_not = allocate(mode, READY, [Slice("web-1", tuple(there))]).why_not
    assert why_not is not None
    assert (why_not.safeguard, why_not.detail) == (safeguard, numbers)


@pytest.mark.parametrize(
    ("hinted", "cpus", "overloaded"),
    [
        ({}, [1, 1], False),
        ({"a": 2, "b": 2}, [1, 1], False),
        ({"a": 2, "b": 2}, [1, 1, 1], True),  # a zone is missing
        ({"a": 2, "b": 2}, [1], True),  # of nodes in one zone there are no shares
        ({"a": 2, "b": 2}, [2, 1], True),  # ceil(4 x 2/3 / 1.2) is 3
        ({"a": 3, "b": 1}, [2, 1], True),  # and ceil(4 x 1/3 / 1.2) is 2
        ({"a": 4, "b": 2}, [2, 1], False),
    ],
)
def test_services_are_synced_again_if_their_hints_are_overloaded(
    hinted: dict[str, int], cpus: list[int], overloaded: bool
) -> None:
    assert is_overloaded(hinted, nodes(*cpus)) is is_overloaded(hinted, nodes(*cpus), True) is overloaded


def test_strict_knows_what_is_exactly_enough() -> None:
    """In float64 1.2 x 5/6 is above 1."""
    assert is_overloaded({"a": 1, "b": 5}, nodes(1, 4))
    assert not is_overloaded({"a": 1, "b": 5}, nodes(1, 4), exact=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_service_without_slices_has_no_hints(mode: str) -> None:
    assert not allocate(mode, READY, []).hinted
