from __future__ import annotations

from typing import Any

from concorde import guarantees
from concorde.configuration import Configuration
from concorde.lease_terms import terms

GIGA = 10**9


def test_with_enforcement_node_the_capability_is_a_ceiling() -> None:
    runtime: dict[str, Any] = {"bandwidth": {"EgressRate": 2 * GIGA}}
    keys = {"name": "a", "enforcement": "node", "runtimeConfig": runtime}
    found = terms(Configuration(keys), 1450)
    assert (found.guarantee, found.ceiling, found.rate) == (None, 2 * GIGA, 2 * GIGA)
    runtime["io.kubernetes.cri.pod-annotations"] = {guarantees.GUARANTEE: "1G"}
    found = terms(Configuration(keys), 1450)
    assert (found.guarantee, found.ceiling, found.rate) == (GIGA, 2 * GIGA, 2 * GIGA)


def test_answers_are_terms_and_not_of_the_class_within_the_pod() -> None:
    annotations = {guarantees.ANSWERS: "700k", guarantees.CEILING: "2G"}
    runtime = {"io.kubernetes.cri.pod-annotations": annotations}
    found = terms(Configuration({"name": "a", "enforcement": "node", "runtimeConfig": runtime}), 1450)
    assert (found.guarantee, found.answers, found.rate) == (None, 700_000, 2 * GIGA)
    del annotations[guarantees.CEILING]
    found = terms(Configuration({"name": "a", "enforcement": "node", "runtimeConfig": runtime}), 1450)
    assert (found.answers, found.rate) == (700_000, None)
