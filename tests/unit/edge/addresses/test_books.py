"""What a controller makes of objects that are not as they should be: nobody loses a block, and it goes on."""

from __future__ import annotations

from typing import Any

from edge.addresses.allocation import Allocator
from edge.addresses.arrivals import Arrivals
from edge.addresses.books import FINALIZER, FIRST_SPEC, Books, Outcome, judged, spec_text
from edge.addresses.cluster import NODES
from edge.addresses.kinds import OURS, PLURAL
from edge.watch import Changed, Listed

KIND = f"/apis/{OURS}/{PLURAL}"


def node(name: str, block: str = "", uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or name}, "spec": {"podCIDR": block} if block else {}}


def config(**annotations: str) -> dict[str, Any]:
    spec = {"ipv4": {"cidr": "10.0.0.0/28", "perNodeMaskSize": 30}}
    return {"metadata": {"name": "all", "uid": "all", "annotations": annotations}, "spec": spec}


def books(*nodes: dict[str, Any]) -> Books:
    made = Books(Arrivals(Allocator()), NODES, [KIND])
    made.take(Listed(KIND, [config()]))
    made.take(Listed(NODES, list(nodes)))
    return made


def given(one: Books) -> dict[str, str]:
    return {name: str(given.blocks[0]) for name, given in one.allocator.given.items()}


def test_an_annotation_that_is_nested_deeply_is_a_bad_config_and_no_end() -> None:
    held = judged(KIND, config(**{FIRST_SPEC: 100_000 * "["}))
    assert (held.reason, held.config) == ("BadSpec", None)
    assert held.message.startswith(f"metadata.annotations: {FIRST_SPEC} is nested")


def test_of_a_node_whose_block_cannot_be_read_it_is_not_given_away() -> None:
    one = books(node("a", "10.0.0.0/30"))
    for said in (Changed(NODES, node("a", "nonsense"), False), Listed(NODES, [node("a", "nonsense")])):
        one.take(said)
        assert given(one) == {"a": "10.0.0.0/30"}
    deleting = node("a")
    deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    one.take(Changed(NODES, deleting, False))  # from before it had its block
    assert given(one) == {"a": "10.0.0.0/30"}
    one.take(Changed(NODES, node("a", "nonsense"), True))
    assert given(one) == {}


def test_what_was_promised_and_another_has_meanwhile_is_not_written_again() -> None:
    one = books(node("a"))
    (gift,) = one.gifts()
    again = one.conclude(Outcome(gift, False))
    assert again == gift._replace(again=True)
    one.take(Listed(NODES, [node("a"), node("z", "10.0.0.0/30")]))
    assert given(one) == {"z": "10.0.0.0/30", "a": "10.0.0.4/30"}
    assert one.gifts() == []  # the former is to be tried again
    assert one.anew(again) == again._replace(blocks=one.allocator.given["a"].blocks)
    one.take(Listed(NODES, [node("z", "10.0.0.0/30")]))
    assert one.anew(again) is None


def test_a_config_that_was_replaced_without_its_marks_is_known_by_its_first_spec() -> None:
    one, first = books(node("a")), spec_text(config()["spec"])
    ((_, marks),) = one.marks()
    assert marks == {"finalizers": [FINALIZER], "annotations": {FIRST_SPEC: first}}
    other = config()
    other["spec"]["ipv4"]["cidr"] = "10.9.0.0/28"
    for written in ({}, {FIRST_SPEC: spec_text(other["spec"])}):
        other["metadata"]["annotations"] = written
        one.take(Changed(KIND, other, False))
        one.gifts()
        assert one.configs["all"].reason == "SpecChanged"
        assert [changes for _, changes in one.marks()] == [marks]
    one.take(Changed(KIND, {**other, "metadata": {**other["metadata"], "uid": "another"}}, False))
    one.gifts()
    assert one.configs["all"].reason == ""
