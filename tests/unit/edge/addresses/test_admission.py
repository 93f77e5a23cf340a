"""What an API server is told of a config: each fault by its field, and yes to what leaves its spec alone."""

from __future__ import annotations

import copy
import json
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.addresses import kinds
from edge.addresses.admission import Surroundings, review
from edge.addresses.books import FINALIZER, FIRST_SPEC, Held, Rules, judged, spec_text
from edge.addresses.cluster import CONFIGS
from edge.http import Json, UnfitError
from edge.reviews import API, KIND, MOST_SAID
from tests import cases
from tests.apis import config

OURS, VENDORS = CONFIGS
GOOD = config("kiosks", "10.61.4.0/25:28", size="small")
ALONE = Surroundings([])


def asked(operation: str, document: Any, old: Any = None, kind: str = kinds.OURS, **more: Any) -> Json:
    """What a server asks; shortened to what it always has."""
    group, _, version = kind.partition("/")
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": group, "version": version, "kind": kinds.KIND},
        "resource": {"group": group, "version": version, "resource": kinds.PLURAL},
        "name": "kiosks",
        "operation": operation,
        "object": document,
        "oldObject": old,
        **more,
    }
    return {"apiVersion": API, "kind": KIND, "request": request}


def answer(request: Json, around: Surroundings = ALONE) -> Json:
    """What is answered; it is what a server takes."""
    document = json.loads(json.dumps(review(request, lambda: around)))
    assert (document["apiVersion"], document["kind"]) == (API, KIND)
    response: Json = document["response"]
    assert response["uid"] == request["request"]["uid"]
    if not response["allowed"]:
        status = response["status"]
        assert (status["code"], status["reason"], status["status"]) == (422, "Invalid", "Failure")
        assert {one["reason"] for one in status["details"]["causes"]} <= {
            "FieldValueInvalid",
            "FieldValueRequired",
        }
    return response


def faults(response: Json) -> dict[str, str]:
    """What a refusal says, by field; nothing if it is none."""
    causes = response["status"]["details"]["causes"] if "status" in response else []
    return {one["field"]: one["message"] for one in causes}


def spec(**fields: Any) -> Json:
    return {**GOOD, "spec": fields}


def v4(cidr: Any = "10.61.4.0/25", mask: Any = 28) -> Json:
    return {"cidr": cidr, "perNodeMaskSize": mask}


def v6(cidr: Any = "fd62::/112", mask: Any = 124) -> Json:
    return {"cidr": cidr, "perNodeMaskSize": mask}


def operator(**requirement: Any) -> Json:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}, requirement]}]
    return spec(ipv4=v4(), nodeSelector={"nodeSelectorTerms": terms})


OF_TERM = "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[1]"
MASK, CIDR = "spec.ipv4.perNodeMaskSize", "spec.ipv4.cidr"
MASK6, CIDR6 = "spec.ipv6.perNodeMaskSize", "spec.ipv6.cidr"
NEAR = operator(key="a", operator="Near")
NONE = operator(key="a", operator="In")
LABELS = spec(ipv4=v4(), nodeSelector={"matchLabels": []})
# By what is wrong: the config, the field, and how its fault begins.
REFUSED = {
    "mask shorter": (spec(ipv4=v4("10.60.0.0/20", 12)), MASK, "Invalid value: 12: must be an integer from"),
    "mask too long": (spec(ipv4=v4(mask=31)), MASK, "Invalid value: 31: must be an integer from 25"),
    "mask of no number": (spec(ipv4=v4(mask="28")), MASK, 'Invalid value: "28": must be an integer'),
    "mask true": (spec(ipv4=v4(mask=True)), MASK, "Invalid value: true: must be an integer"),
    "no mask": (spec(ipv4={"cidr": "10.0.0.0/8"}), MASK, "Required value: must be an integer"),
    "IPv6 too long": (spec(ipv6=v6("fd62::/126", 127)), MASK6, "Invalid value: 127: must be an integer"),
    "IPv6 too far": (spec(ipv6=v6("fd62::/96", 113)), MASK6, "Invalid value: 113: must be at most 112"),
    "unequal": (spec(ipv4=v4(), ipv6=v6(mask=120)), MASK6, "Invalid value: 120: must be 124: both families"),
    "host bits": (spec(ipv4=v4("10.61.4.1/25")), CIDR, 'Invalid value: "10.61.4.1/25": has host bits set'),
    "host bits of IPv6": (spec(ipv6=v6("fd62::1/112")), CIDR6, 'Invalid value: "fd62::1/112": has host bits'),
    "the other family": (spec(ipv4=v4("fd62::/112")), CIDR, 'Invalid value: "fd62::/112": must be an IPv4'),
    "no family": (spec(), "spec", "Invalid value: {}: must have ipv4, ipv6 or both"),
    "no spec": ({"metadata": {"name": "x"}}, "spec", "Required value: must be an object"),
    "operator": (NEAR, f"{OF_TERM}.operator", 'Invalid value: "Near": must be one of In, NotIn'),
    "no values": (NONE, f"{OF_TERM}.values", "Required value: must have values for In"),
    "labels": (LABELS, "spec.nodeSelector.matchLabels", "Invalid value: []: must be an object"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_config_that_cannot_be_used_is_refused_with_the_field(name: str) -> None:
    document, field, words = REFUSED[name]
    response = answer(asked("CREATE", document))
    assert faults(response)[field].startswith(words)
    assert 'ClusterCIDRConfig.addresses.contmec.dev "kiosks" is invalid: ' in response["status"]["message"]
    assert f"{field}: {words}" in response["status"]["message"]


def test_all_that_is_wrong_is_said_at_once() -> None:
    document = spec(ipv4=v4("10.60.0.1/20", 12), ipv6=v6("fd62::/96", 113))
    response = answer(asked("CREATE", document))
    assert set(faults(response)) == {"spec.ipv4.cidr", "spec.ipv6.perNodeMaskSize"}
    assert "is invalid: [spec.ipv4.cidr: Invalid value" in response["status"]["message"]


def test_a_thousand_faults_are_few_words() -> None:
    terms = [{"matchExpressions": [{"key": "a", "operator": "x" * 1000}]}] * 1000
    status = answer(asked("CREATE", spec(ipv4=v4(), nodeSelector={"nodeSelectorTerms": terms})))["status"]
    assert len(status["details"]["causes"]) == MOST_SAID
    assert status["message"].endswith(", and 980 more]")
    assert len(json.dumps(status)) < 20_000


@pytest.mark.parametrize("kind", [kinds.OURS, kinds.VENDOR])
def test_a_sound_config_may_be_made(kind: str) -> None:
    assert answer(asked("CREATE", GOOD, kind=kind)) == {
        "uid": asked("", {})["request"]["uid"],
        "allowed": True,
    }


def held(name: str, *ranges: str, created: str = "2026-01-01T00:00:00Z") -> Held:
    document = config(name, *ranges)
    document["metadata"].update(creationTimestamp=created, uid=name)
    return judged(OURS, document)


BOTH, SINGLE = ("10.62.0.0/16:24", "fd62::/112:120"), ("10.61.4.0/25:28",)


def test_of_one_cluster_all_configs_have_two_families_or_none_has() -> None:
    around = Surroundings([held("first", *BOTH)], both=True)
    assert "first" in faults(answer(asked("CREATE", GOOD), around))["spec"]
    around = Surroundings([held("first", *SINGLE)], both=True)
    assert "first" in faults(answer(asked("CREATE", config("both", *BOTH)), around))["spec"]
    # The one that is not there yet comes last, whatever it is called.
    assert faults(answer(asked("CREATE", config("a", *BOTH)), around))


@pytest.mark.parametrize("first", [BOTH, SINGLE])
def test_where_a_server_may_keep_one_family_status_alone_says_who_gives_nothing(
    first: tuple[str, ...],
) -> None:
    around = Surroundings([held("first", *first)])
    for ranges in (BOTH, SINGLE):
        assert answer(asked("CREATE", config("another", *ranges)), around)["allowed"]


def test_a_config_that_is_being_deleted_or_bad_is_in_nobodys_way() -> None:
    deleting, bad = held("old", *BOTH), held("bad", *BOTH)
    deleting.document["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    bad.document["spec"]["ipv4"]["cidr"] = "x"
    others = [judged(OURS, one.document) for one in (deleting, bad)]
    assert answer(asked("CREATE", GOOD), Surroundings(others, both=True))["allowed"]


def test_a_range_that_is_reserved_is_refused_and_a_part_of_one_is_a_warning() -> None:
    around = Surroundings([], Rules((ip_network("10.61.4.0/24"),)))
    assert "10.61.4.0/24" in faults(answer(asked("CREATE", GOOD), around))["spec"]
    response = answer(asked("CREATE", config("large", "10.61.0.0/16:24")), around)
    assert response["allowed"]
    assert response["warnings"] == ["spec: nothing of 10.61.4.0/24 is given, which is reserved"]


def changed(document: Json, **fields: Any) -> Json:
    return {**document, "spec": {**document["spec"], **fields}}


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"ipv4": v4("10.61.5.0/25")}, "spec.ipv4.cidr", 'Invalid value: "10.61.5.0/25": field is immutable'),
        ({"ipv4": v4(mask=27)}, "spec.ipv4.perNodeMaskSize", "Invalid value: 27: field is immutable"),
        (
            {"ipv6": v6()},
            "spec.ipv6",
            'Invalid value: {"cidr": "fd62::/112", "perNodeMaskSize": 124}: field is',
        ),
        ({"nodeSelector": {}}, "spec.nodeSelector.matchLabels", "Invalid value: null: field is immutable"),
        ({"ipv4": None}, "spec.ipv4", "Invalid value: null: field is immutable"),
    ],
)
def test_a_changed_spec_is_refused_with_the_field(fields: Json, field: str, words: str) -> None:
    response = answer(asked("UPDATE", changed(GOOD, **fields), GOOD))
    (said,) = faults(response).items()
    assert said[0] == field
    assert said[1].startswith(words)


def test_a_bad_spec_stays_too_and_another_is_made_in_its_place() -> None:
    bad = changed(GOOD, ipv4=v4("10.61.4.1/25"))
    assert set(faults(answer(asked("UPDATE", GOOD, bad)))) == {"spec.ipv4.cidr"}


def test_the_first_spec_may_be_written_back() -> None:
    other = changed(GOOD, ipv4=v4("10.61.5.0/25"))
    other["metadata"] = {"name": "kiosks", "annotations": {FIRST_SPEC: spec_text(GOOD["spec"])}}
    assert answer(asked("UPDATE", {**other, "spec": GOOD["spec"]}, other))["allowed"]
    assert not answer(asked("UPDATE", changed(other, ipv4=v4("10.61.6.0/25")), other))["allowed"]


def test_a_copy_that_says_of_itself_to_have_been_another_is_refused() -> None:
    copied = changed(GOOD, ipv4=v4("10.61.5.0/25"))
    copied["metadata"] = {"name": "copy", "annotations": {FIRST_SPEC: spec_text(GOOD["spec"])}}
    assert "leave it out" in faults(answer(asked("CREATE", copied)))["metadata.annotations"]
    copied["metadata"]["annotations"][FIRST_SPEC] = spec_text(copied["spec"])  # from a backup
    assert answer(asked("CREATE", copied))["allowed"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"finalizers": [FINALIZER], "annotations": {FIRST_SPEC: "{"}},
        {"finalizers": [], "deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"labels": {"a": "b"}},
    ],
)
def test_a_bad_config_can_be_marked_labelled_and_let_go(metadata: Json) -> None:
    for document, _, _ in REFUSED.values():
        new = copy.deepcopy(document)
        new["metadata"] = {"name": "x", **metadata}
        assert answer(asked("UPDATE", new, {**document, "metadata": {"name": "x"}}))["allowed"]


@pytest.mark.parametrize(
    "request_",
    [
        asked("DELETE", None, changed(GOOD, ipv4={})),
        asked("CONNECT", None),
        asked("UPDATE", changed(GOOD, ipv4={}), GOOD, subResource="status"),
        asked("CREATE", {}, kind="apps/v1"),
        asked(
            "CREATE", {}, resource={"group": "addresses.contmec.dev", "version": "v1alpha1", "resource": "x"}
        ),
        asked("CREATE", {}, kind="addresses.contmec.dev/v2"),
    ],
)
def test_what_is_not_ours_to_judge_is_allowed(request_: Json) -> None:
    assert answer(request_)["allowed"]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "must be an AdmissionReview of admission.k8s.io/v1"),
        ({"apiVersion": "admission.k8s.io/v1beta1", "kind": KIND}, "must be an AdmissionReview"),
        ({"apiVersion": API, "kind": KIND}, "request must be an object"),
        ({"apiVersion": API, "kind": KIND, "request": {}}, "request.uid must be a string"),
        (asked("CREATE", None), "object must be an object"),
        (asked("CREATE", {"metadata": 5}), "metadata must be an object"),
        (asked("UPDATE", GOOD, None), "oldObject must be an object"),
    ],
)
def test_what_is_no_review_is_said_to_be_none(document: Json, words: str) -> None:
    with pytest.raises(UnfitError, match=words):
        review(document, lambda: ALONE)


def test_it_asks_for_nothing_else_where_a_config_cannot_be_used_anyway() -> None:
    def never() -> Surroundings:
        raise AssertionError

    for document, _, _ in REFUSED.values():
        review(asked("CREATE", document), never)
    review(asked("UPDATE", changed(GOOD, ipv4={}), GOOD), never)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
CIDRS = st.sampled_from(["10.61.4.0/25", "10.0.0.1/8", "fd62::/112", "fd62::/96", "::", ""])
FAMILY = st.fixed_dictionaries(
    {}, optional={"cidr": CIDRS | ANYTHING, "perNodeMaskSize": st.integers(8, 30) | ANYTHING}
)
REQUIREMENT = st.fixed_dictionaries({}, optional=dict.fromkeys(("key", "operator", "values"), ANYTHING))
TERM = st.dictionaries(
    st.sampled_from(["matchExpressions", "matchFields"]), st.lists(REQUIREMENT, max_size=2)
)
SELECTOR = st.fixed_dictionaries(
    {},
    optional={"matchLabels": ANYTHING, "nodeSelectorTerms": st.lists(TERM | ANYTHING, max_size=2) | ANYTHING},
)
SPEC = st.fixed_dictionaries(
    {}, optional={"ipv4": FAMILY | ANYTHING, "ipv6": FAMILY | ANYTHING, "nodeSelector": SELECTOR | ANYTHING}
)
ANNOTATIONS = st.fixed_dictionaries({}, optional={FIRST_SPEC: ANYTHING | SPEC.map(json.dumps)})
METADATA = st.fixed_dictionaries(
    {}, optional={"name": ANYTHING, "namespace": ANYTHING, "annotations": ANNOTATIONS | ANYTHING}
)
DOCUMENT = st.fixed_dictionaries({}, optional={"metadata": METADATA | ANYTHING, "spec": SPEC | ANYTHING})
OPERATIONS = st.sampled_from(["CREATE", "UPDATE", "DELETE"])


@settings(max_examples=cases.count("CONCORDE_REVIEWS", 150, 20_000), deadline=None, database=None)
@given(OPERATIONS | ANYTHING, DOCUMENT | ANYTHING, DOCUMENT | ANYTHING, ANYTHING)
def test_whatever_is_asked_is_answered_or_no_review(operation: Any, new: Any, old: Any, other: Any) -> None:
    """What is allowed to be made is a config; what is allowed to be changed has the spec that it had."""
    around = Surroundings([held("first", *BOTH)], Rules((ip_network("10.96.0.0/12"),)), both=True)
    for request in (asked(operation, new, old), asked(operation, new, old, resource=other, name=other)):
        try:
            allowed = answer(request, around)["allowed"]
        except UnfitError:
            continue
        if allowed and operation == "CREATE" and request["request"]["resource"] != other:
            assert kinds.parse(new)
        if allowed and operation == "UPDATE" and request["request"]["resource"] != other:
            assert spec_text(new.get("spec")) in (
                spec_text(old.get("spec")),
                str((old["metadata"].get("annotations") or {}).get(FIRST_SPEC)),
            )
    with pytest.raises(UnfitError):
        review(other if isinstance(other, dict) else {"request": other}, lambda: around)


def test_what_is_nested_deeply_is_no_review() -> None:
    deep: Any = 5
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(UnfitError, match="nested too deeply"):
        review(asked("UPDATE", {**GOOD, "spec": {"ipv4": deep}}, GOOD), lambda: ALONE)
