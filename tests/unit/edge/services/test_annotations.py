"""What Services ask for, by the version of Kubernetes; and hints that are beside their slice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.services.annotations import (
    AWARE_HINTS,
    OURS,
    TOPOLOGY_MODE,
    ZONE_HINTS,
    Version,
    Wish,
    annotation_of,
    annotations_of,
    annotations_of_policy,
    wish,
    with_hints,
)
from edge.services.endpoints import Endpoint, Slice
from edge.services.hints import AUTO, CLOSE, MODES, OFF, STRICT, allocate
from edge.services.selection import INTERNAL_POLICY
from tests.unit.edge.services.builders import nodes, service

VERSIONS = [(1, minor) for minor in range(20, 37)]


def asking(annotations: dict[str, str], **spec: str) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}, "spec": spec}


@pytest.mark.parametrize(
    ("annotations", "version", "mode", "built_in"),
    [
        ({AWARE_HINTS: "auto"}, (1, 20), AUTO, False),
        ({AWARE_HINTS: "Auto"}, (1, 23), AUTO, False),
        ({AWARE_HINTS: "Auto"}, (1, 24), AUTO, True),
        ({AWARE_HINTS: "auto"}, (1, 36), AUTO, True),
        ({TOPOLOGY_MODE: "Auto"}, (1, 27), AUTO, True),
        ({TOPOLOGY_MODE: "auto", AWARE_HINTS: "disabled"}, (1, 27), OFF, False),
        ({TOPOLOGY_MODE: "Disabled", AWARE_HINTS: "Auto"}, (1, 27), AUTO, True),
        ({}, (1, 36), OFF, False),
        ({OURS: "strict"}, (1, 20), STRICT, False),
        ({OURS: "strict"}, (1, 36), STRICT, False),
    ],
)
def test_annotations_are_read_as_each_version_reads_them(
    annotations: dict[str, str], version: Version, mode: str, built_in: bool
) -> None:
    assert wish(asking(annotations), version) == Wish(mode, built_in)


@pytest.mark.parametrize(
    ("annotations", "version", "said"),
    [
        (
            {AWARE_HINTS: "aUto"},
            (1, 20),
            f"{AWARE_HINTS}: must be auto, Auto, disabled or Disabled, not 'aUto': hints are off",
        ),
        (
            {TOPOLOGY_MODE: ""},
            (1, 27),
            f"{TOPOLOGY_MODE}: must be auto, Auto, disabled or Disabled, not '': hints are off",
        ),
        (
            {TOPOLOGY_MODE: "Auto"},
            (1, 26),
            f"{TOPOLOGY_MODE}: not read before Kubernetes 1.27: use {AWARE_HINTS}",
        ),
        (
            {OURS: "nearby"},
            (1, 20),
            f"{OURS}: must be one of off, auto, strict, close, nearest, not 'nearby': hints are off",
        ),
    ],
)
def test_what_is_none_is_off_and_said(annotations: dict[str, str], version: Version, said: str) -> None:
    assert wish(asking(annotations), version) == Wish(OFF, False, (said,))


@pytest.mark.parametrize(
    ("distribution", "version", "found"),
    [
        ("PreferClose", (1, 31), Wish(CLOSE, True)),
        ("PreferSameZone", (1, 34), Wish(CLOSE, True)),
        (
            "PreferClose",
            (1, 30),
            Wish(
                OFF,
                said=(
                    "spec.trafficDistribution: PreferClose is not read before Kubernetes 1.31: "
                    f"use {OURS}: close",
                ),
            ),
        ),
        (
            "PreferSameNode",
            (1, 36),
            Wish(
                OFF, said=(f"spec.trafficDistribution: PreferSameNode is not built here: use {OURS}: close",)
            ),
        ),
    ],
)
def test_traffic_distribution_is_read_where_it_is_on(
    distribution: str, version: Version, found: Wish
) -> None:
    assert wish(asking({}, trafficDistribution=distribution), version) == found


def test_annotations_come_before_traffic_distribution_and_ours_before_others() -> None:
    assert wish(asking({TOPOLOGY_MODE: "Auto"}, trafficDistribution="PreferClose"), (1, 36)).mode == AUTO
    found = wish(asking({TOPOLOGY_MODE: "Auto", OURS: "strict"}), (1, 36))
    said = f"{TOPOLOGY_MODE}: {OURS} comes before it, but not for kube-proxy: remove one"
    assert found == Wish(STRICT, False, (said,))


def test_hints_and_a_local_policy_are_warned_of() -> None:
    found = wish(asking({AWARE_HINTS: "auto"}, internalTrafficPolicy="Local"), (1, 20))
    assert found.said == (
        "spec.internalTrafficPolicy: Local, so hints are ignored: use Cluster, or off for hints",
    )
    assert not wish(asking({}, externalTrafficPolicy="Local"), (1, 20)).said
    annotated = wish(asking({AWARE_HINTS: "auto"} | annotations_of_policy("Local", (1, 20))), (1, 20))
    assert annotated.said == (
        f"{INTERNAL_POLICY}: Local, so hints are ignored: use Cluster, or off for hints",
    )


def test_a_policy_is_an_annotation_where_the_api_has_no_field() -> None:
    assert annotations_of_policy("Local", (1, 21)) == {INTERNAL_POLICY: "Local"}
    assert annotations_of_policy("Local", (1, 22)) == annotations_of_policy("Cluster", (1, 20)) == {}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_what_asks_for_a_mode_is_read_as_this_mode(mode: str, version: Version) -> None:
    assert wish(asking(annotations_of(mode, version)), version) == Wish(
        mode, mode == AUTO and version >= (1, 24)
    )


def test_hints_beside_a_slice_come_back() -> None:
    written = allocate(AUTO, nodes(350, 350, 300), service(5, 2, 3)).slices[0]
    text = annotation_of(written)
    assert text is not None
    assert text.startswith('{"a-0":["b"],"a-1":["a"]')
    assert with_hints(service(5, 2, 3)[0], text) == (written, "")
    assert annotation_of(service(1)[0]) is None
    assert with_hints(written, None) == (written, "")


@pytest.mark.parametrize(
    "now",
    [
        service(1, 1)[0],
        service(2, 1)[0],
        Slice("web-1", (Endpoint("a-0", "a"), Endpoint("b-0", "b", ready=False))),
    ],
)
def test_a_slice_changed_if_other_endpoints_are_ready_than_hints_say(now: Slice) -> None:
    found, wrong = with_hints(now, '{"a-0":["a"],"b-0":["b"]}')
    assert found.changed == (now != service(1, 1)[0])
    assert not wrong


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"a-0":"a"}', '{"a-0":[]}', '{"a-0":[1]}', "null", "[" * 100_000]
)
def test_an_annotation_that_is_none_of_ours_hints_nothing_and_is_said(text: str) -> None:
    found, wrong = with_hints(service(1)[0], text)
    assert found == service(1)[0]._replace(changed=True)
    assert wrong == f'{ZONE_HINTS}: must be like {{"10.1.2.3": ["zone-a"]}}, not {text[:60]!r}'


@settings(max_examples=20, deadline=None)
@given(st.text() | st.recursive(st.none() | st.text(), st.lists).map(repr))
def test_no_annotation_makes_it_fail(text: str) -> None:
    with_hints(service(1)[0], text)
    wish(asking({AWARE_HINTS: text, OURS: text}), (1, 20))
