from __future__ import annotations

import pytest

from bench.analysis.bottleneck import NOT_FOUND, Places, located, where
from bench.analysis.phases import Span
from bench.observations.causes import Cause, Kind, Lost
from bench.recording.queues import Queue, Reading
from bench.recording.records import CountedLink
from testbed.links import underlay
from testbed.scenario.addressing import Addressing
from tests.unit.bench.builders import scenario

ZONED = scenario(
    enforcement="pod",
    underlay={"rate": "1G"},
    zones={"north": {"rate": "1G"}, "south": {"rate": "500M"}},
    nodes={"master": {"zone": "north"}, "left": {"zone": "north"}, "right": {"zone": "south"}},
)
COUNTED = [
    CountedLink(owner=link.owner, trunk=link.trunk, out=link.out, place=place, device=device)
    for link, place, device in underlay.counters(Addressing(ZONED))
]
LOW = [Span(1.0, 2.0), Span(2.0, 3.0)]


def counted(
    place: str,
    device: str,
    share: float,
    rate: float = 1e9,
    drops: int = 0,
    backlog: int = 0,
    kind: str = "tbf",
) -> Places:
    """Return readings of one counter that let a share of a rate pass all the time."""

    def at(second: int) -> Reading:
        handle, parent = ("", "") if kind == "link" else ("8001:", "root")
        passed = round(second * share * rate / 8)
        one = Queue(
            device, kind, handle, parent, passed, passed // 1500, second * drops, backlog, backlog // 1500
        )
        return Reading(float(second), {one.key: one})

    return {place: [at(second) for second in range(5)]}


def found(places: Places, enforcement: str = "pod", low: list[Span] = LOW) -> str | None:
    of = ZONED.model_copy(update={"enforcement": enforcement})
    return where(of, of.flows[0], places, COUNTED, low).where


PORT = next(one.device for one in COUNTED if (one.owner, one.out) == ("right", False))
UPLINK = next(one.device for one in COUNTED if one.place == "left")
INTO = next(one.device for one in COUNTED if (one.owner, one.out) == ("south", False))


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (counted("switch", PORT, 0.98, drops=9), "receiver"),
        (counted("switch", PORT, 0.98, backlog=3000), "receiver"),
        (counted("switch", PORT, 0.98), None),  # full, but nothing waited
        (counted("switch", PORT, 0.5, drops=9), None),  # drops at a link with room: a burst
        (counted("switch", INTO, 0.98, rate=5e8, drops=9), "trunk"),
        (counted("switch", INTO, 0.4, rate=5e8, drops=9), None),
        (counted("left", UPLINK, 0.92, kind="link"), "sender"),
        (counted("left", UPLINK, 0.5, kind="link"), None),
        (counted("a", "eth0", 0.1, kind="htb", backlog=3000), "sender"),
        (counted("a", "eth0", 0.1, kind="htb"), None),
        ({}, None),
    ],
)
def test_where_it_was_lost_is_what_was_full_and_had_packets_waiting(
    places: Places, expected: str | None
) -> None:
    assert found(places) == expected


def test_of_several_full_links_it_is_the_first_but_where_promises_are_kept_on_it() -> None:
    both = {**counted("left", UPLINK, 0.97, kind="htb", drops=5), **counted("switch", PORT, 0.97, drops=5)}
    assert found(both, "pod") == "sender"
    assert found(both, "node") == "receiver"
    assert found(counted("left", UPLINK, 0.97, kind="htb", drops=5), "node") == "sender"


def test_what_happened_outside_of_the_low_samples_is_no_evidence() -> None:
    late = counted("switch", PORT, 0.98, drops=9)
    later = {"switch": [one._replace(at_s=one.at_s + 10) for one in late["switch"]]}
    assert found(later) is None
    assert found(late, low=[Span(3.5, 9.0)]) is None  # nobody read as long


@pytest.mark.parametrize(("kind", "expected"), [("machine", "processor"), ("promise", "receiver")])
def test_a_miss_that_is_the_machine_s_is_the_processor_s(kind: Kind, expected: str) -> None:
    cause = Cause(kind=kind, flow="A -> C", phase="quiet", repetition=0, text="", topics=("mean",))
    lost = located(cause, ZONED, counted("switch", PORT, 0.98, drops=9), COUNTED, LOW).lost
    assert lost is not None
    assert lost.where == expected
    assert expected in lost.text


def test_other_causes_are_left_as_they_are_and_what_is_not_found_is_said() -> None:
    over = Cause(kind="promise", flow="A -> C", text="", topics=("ceiling",))
    assert located(over, ZONED, {}, COUNTED, LOW) is over
    assert (
        where(ZONED, ZONED.flows[0], {}, COUNTED, LOW) == NOT_FOUND == Lost(where=None, text=NOT_FOUND.text)
    )
