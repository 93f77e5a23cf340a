from __future__ import annotations

import pytest
from concorde import guarantees
from concorde.cni import CniError

from tests.unit.plugin.examples import ANNOTATIONS, annotated


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
