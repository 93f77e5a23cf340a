from __future__ import annotations

from typing import Any

import pytest
from concorde import guarantees
from concorde.cni import INVALID_CONFIGURATION, CniError
from concorde.configuration import Configuration
from concorde.leases import Terms

from tests.unit.plugin.examples import ANNOTATIONS, annotated

GIGA = 10**9


def test_the_annotation_goes_before_the_capability_and_that_before_the_default() -> None:
    runtime = {ANNOTATIONS: {guarantees.GUARANTEE: "1G"}, "bandwidth": {"EgressRate": 2_000_000}}
    assert guarantees.promise({"runtimeConfig": runtime, "defaultGuarantee": "3M"}).guarantee == 10**9
    del runtime[ANNOTATIONS]
    assert guarantees.promise({"runtimeConfig": runtime, "defaultGuarantee": "3M"}).guarantee == 2_000_000
    assert guarantees.promise({"defaultGuarantee": "3M"}).guarantee == 3_000_000


def test_a_ceiling_alone_is_the_limit_and_no_guarantee() -> None:
    promise = guarantees.promise(annotated(ceiling="2G"))
    assert (promise.guarantee, promise.ceiling, promise.limit) == (None, 2 * 10**9, 2 * 10**9)


def test_no_promise_is_no_limit() -> None:
    assert guarantees.promise({}).limit is None


def test_a_guarantee_above_the_ceiling_is_an_error_naming_both() -> None:
    with pytest.raises(CniError) as caught:
        guarantees.promise(annotated(guarantee="2G", ceiling="1G"))
    assert guarantees.GUARANTEE in caught.value.msg
    assert guarantees.CEILING in caught.value.msg


def test_answers_have_a_guarantee_of_their_own_and_count_towards_the_ceiling() -> None:
    promise = guarantees.promise(annotated(answers="700k"))
    assert (promise.guarantee, promise.answers, promise.limit) == (None, 700_000, None)
    promise = guarantees.promise(annotated(guarantee="20M", answers="1M", ceiling="21M"))
    assert (promise.guarantee, promise.answers, promise.ceiling) == (20_000_000, 1_000_000, 21_000_000)
    for given in ({"guarantee": "20M", "answers": "1001k"}, {"answers": "21001k"}):
        with pytest.raises(CniError) as caught:
            guarantees.promise(annotated(**given, ceiling="21M"))
        assert guarantees.ANSWERS in caught.value.msg
        assert guarantees.CEILING in caught.value.msg


def test_with_enforcement_node_the_capability_is_a_ceiling() -> None:
    runtime: dict[str, Any] = {"bandwidth": {"EgressRate": 2 * GIGA}}
    keys = {"name": "a", "enforcement": "node", "runtimeConfig": runtime}
    found = guarantees.terms(Configuration(keys), 1450, reserves=True, receives=False)
    assert (found.guarantee, found.ceiling, found.rate) == (None, 2 * GIGA, 2 * GIGA)
    runtime["io.kubernetes.cri.pod-annotations"] = {guarantees.GUARANTEE: "1G"}
    found = guarantees.terms(Configuration(keys), 1450, reserves=True, receives=False)
    assert (found.guarantee, found.ceiling, found.rate) == (GIGA, 2 * GIGA, 2 * GIGA)


def test_answers_are_terms_and_not_of_the_class_within_the_pod() -> None:
    annotations = {guarantees.ANSWERS: "700k", guarantees.CEILING: "2G"}
    runtime = {"io.kubernetes.cri.pod-annotations": annotations}
    found = guarantees.terms(
        Configuration({"name": "a", "runtimeConfig": runtime}), 1450, reserves=True, receives=False
    )
    assert (found.guarantee, found.answers, found.rate) == (None, 700_000, 2 * GIGA)
    del annotations[guarantees.CEILING]
    found = guarantees.terms(
        Configuration({"name": "a", "runtimeConfig": runtime}), 1450, reserves=True, receives=False
    )
    assert (found.answers, found.rate) == (700_000, None)


def test_answers_to_what_is_received_are_a_twentieth_unless_it_is_said_and_as_the_ceiling_allows() -> None:
    for given, answers in (
        ({}, 25_000_000),
        ({"answers": "10M"}, 10_000_000),
        ({"ceiling": "20M"}, 20_000_000),
        ({"guarantee": "20M", "ceiling": "20M"}, None),
    ):
        promise = guarantees.promise(annotated(ingress="500M", **given))
        assert (promise.ingress, promise.answers) == (500_000_000, answers)


def test_what_was_changed_counts_while_the_configuration_says_what_it_said_then() -> None:
    keys = {"name": "a", "enforcement": "fabric", **annotated(guarantee="20M", ingress="500M", ceiling="60M")}
    own = Configuration(keys), 1450, True, True
    told = guarantees.terms(*own)
    assert (told.guarantee, told.answers, told.ingress) == (20_000_000, 25_000_000, 500_000_000)

    def by_now(said: dict[str, int | None], **wanted: str) -> tuple[int | None, ...]:
        now = Terms("fabric", 50_000_000, 60_000_000, None, None, 10_000_000, 900_000_000)
        found = guarantees.terms_by_now(*own, now, said, wanted)
        return found.guarantee, found.answers, found.ingress

    assert by_now({}) == (20_000_000, 25_000_000, 500_000_000)
    assert by_now({"egress": 20_000_000}) == (50_000_000, 10_000_000, 500_000_000)  # as the ceiling allows
    assert by_now({"ingress": 500_000_000}) == (20_000_000, 40_000_000, 900_000_000)
    assert by_now({"egress": None, "ingress": 1}) == (20_000_000, 25_000_000, 500_000_000)
    assert by_now({"egress": 20_000_000}, ingress="100M") == (50_000_000, 5_000_000, 100_000_000)
    with pytest.raises(CniError, match="guarantee of 61000000 bit/s is above the 60000000 of ") as caught:
        by_now({"egress": 20_000_000}, egress="61M")
    assert caught.value.code == INVALID_CONFIGURATION


def test_what_is_received_is_promised_by_an_enforcement_that_does() -> None:
    keys = {"name": "a", "enforcement": "node", **annotated(ingress="500M")}
    with pytest.raises(CniError, match="enforcement node promises nothing of what a pod receives") as caught:
        guarantees.terms(Configuration(keys), 1450, reserves=True, receives=False)
    assert caught.value.code == INVALID_CONFIGURATION
    found = guarantees.terms(
        Configuration({**keys, "enforcement": "fabric"}), 1450, reserves=True, receives=True
    )
    assert (found.ingress, found.answers, found.guarantee) == (500_000_000, 25_000_000, None)
