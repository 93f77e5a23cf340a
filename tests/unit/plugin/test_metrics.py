from __future__ import annotations

import json
import time
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from concorde import addresses, configuration, locks, metrics, state_files
from concorde.leases import Terms
from concorde.metrics import COUNTER, GAUGE, Counters, Family, labelled, text
from concorde.node.records import Entry, Fabric, Tree
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

TREE = Tree("eth0", 1_000_000_000, 20_000_000, (22,), overhead=0)
FIRST = Entry(
    "a", "c1", "eth0", "ns/p1", addresses.parse("10.0.0.2"), "br", "v1", 100, 103, 200, 0x10, uplink="eth0"
)
SECOND = Entry("a", "c2", "eth0", "", addresses.parse("10.0.0.3"), "br", "v2", None, 0, 0)
TERMS = {FIRST.key: Terms("node", 100, None, None, None, 7), SECOND.key: Terms("pod", None, 50, 51, 3200)}
UPLINK = {
    "c0de:1": Counters(600, 6, 0, 0, 0),
    "c0de:10": Counters(100, 1, 2, 3, 4),
    "c0de:fffd": Counters(200, 2, 0, 0, 0),
    "c0de:fffe": Counters(300, 3, 0, 0, 0),
}


def rendered(*arguments: Any) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(metrics.render(*arguments)):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_a_link_tells_what_is_promised_and_free() -> None:
    found = rendered([TREE], [FIRST, SECOND], TERMS, {"eth0": UPLINK}, {}, 0, {})
    for name, value in (("capacity", 1e9), ("reserve", 2e7), ("promised", 103), ("free", 1e9 - 2e7 - 103)):
        assert found[f"concorde_uplink_{name}_bits_per_second"] == [({"device": "eth0"}, value)]
    assert found["concorde_attachments"] == [({"network": "a"}, 2)]


def test_a_link_tells_of_what_arrives_where_that_is_promised() -> None:
    receiver = copy(FIRST)
    receiver.uplink, receiver.ingress, receiver.inward = "eth0", 500, 517
    terms = {receiver.key: Terms("node", None, None, None, None, 25, 500)}
    woven = Tree("eth0", 10**9, 2 * 10**7, (), overhead=0, fabric=Fabric(("10.0.0.0/8",), 1000, 1))
    found = rendered([woven], [receiver, SECOND], terms, {}, {}, 0, {})
    assert found["concorde_downlink_promised_bits_per_second"] == [({"device": "eth0"}, 517)]
    assert found["concorde_downlink_free_bits_per_second"] == [({"device": "eth0"}, 1e9 - 2e7 - 517)]
    ((_, value),) = found["concorde_ingress_bits_per_second"]
    assert value == 500
    assert "concorde_downlink_free_bits_per_second" not in rendered([TREE], [FIRST], TERMS, {}, {}, 0, {})


def test_a_link_in_a_fabric_tells_what_arrives_and_who_is_not_believed() -> None:
    woven = Tree("eth0", 10**9, 2 * 10**7, (), overhead=0, fabric=Fabric(("10.0.0.0/8",), 1000, 1))
    told: dict[str, Any] = {
        "downlink": {"reserved": 5, "foreign": 6, "free": 7},
        "refused": {"key": 3, "stale": 0},
        "ceilings": {"c0de:10": 200, "c0de:7000": 300},
        "nodes": {"10.0.0.2": "c0de:7000"},
    }
    found = rendered([woven], [], {}, {}, {}, 0, {}, None, told)
    device = {"device": "eth0"}
    once = {"agent": 1, "nodes": 1}
    once |= {f"{name}_bits_per_second": value for name, value in told["downlink"].items()}
    assert {name: found[f"concorde_fabric_{name}"] for name in once} == {
        name: [(device, value)] for name, value in once.items()
    }
    assert found["concorde_fabric_ceil_bits_per_second"] == [
        ({**device, "class": name}, ceil) for name, ceil in told["ceilings"].items()
    ]
    assert found["concorde_fabric_refused_messages_total"] == [
        ({**device, "reason": "key"}, 3),
        ({**device, "reason": "stale"}, 0),
    ]


def test_a_link_in_a_fabric_without_an_agent_tells_that() -> None:
    woven = Tree("eth0", 10**9, 2 * 10**7, (), overhead=0, fabric=Fabric(("10.0.0.0/8",), 1000, 1))
    found = rendered([woven], [], {}, {}, {}, 0, {})
    told = {name: samples for name, samples in found.items() if name.startswith("concorde_fabric")}
    assert told == {"concorde_fabric_agent": [({"device": "eth0"}, 0)]}
    assert not any(name.startswith("concorde_fabric") for name in rendered([TREE], [], {}, {}, {}, 0, {}))


@pytest.mark.parametrize(("age", "present", "known"), [(1, True, True), (60, True, False), (1, False, False)])
def test_what_the_loop_told_counts_while_it_goes_on(
    tmp_path: Path, age: int, present: bool, known: bool
) -> None:
    directory = configuration.node_directory(str(tmp_path))
    told = {"at": int(time.time()) - age}
    presence = locks.Presence(directory, state_files.FABRIC_LOCK)
    if not present:
        presence.close()
    (Path(directory) / state_files.FABRIC_STATE).write_text(json.dumps(told))
    assert metrics.of_fabric(str(tmp_path)) == (told if known else None)


def test_each_link_has_its_own_promises() -> None:
    found = rendered([TREE, Tree("eth1", 100, 0, (), overhead=0)], [FIRST], {}, {}, {}, 0, {})
    assert found["concorde_uplink_promised_bits_per_second"] == [
        ({"device": "eth0"}, 103),
        ({"device": "eth1"}, 0),
    ]


def test_a_class_says_whose_it_is() -> None:
    found = rendered([TREE], [FIRST, SECOND], TERMS, {"eth0": UPLINK}, {}, 0, {})
    at = {"at": "uplink", "device": "eth0"}
    pod = {"network": "a", "namespace": "ns", "pod": "p1", "port": "v1"}
    assert found["concorde_class_sent_bytes_total"] == [
        ({**at, "class": "c0de:10", "kind": "pod", **pod}, 100),
        ({**at, "class": "c0de:fffd", "kind": "control"}, 200),
        ({**at, "class": "c0de:fffe", "kind": "default"}, 300),
    ]
    own = [
        found[f"concorde_class_{what}"][0][1]
        for what in ("sent_packets_total", "dropped_packets_total", "backlog_bytes", "backlog_packets")
    ]
    assert own == [1, 2, 3, 4]
    assert found["concorde_guarantee_bits_per_second"] == [(pod, 100)]
    assert found["concorde_answers_bits_per_second"] == [(pod, 7)]


def test_a_class_within_a_pod_is_told_apart_and_what_was_not_seen_is_counted() -> None:
    within = {"v2": Counters(7, 1, 0, 0, 0)}
    found = rendered([], [FIRST, SECOND], TERMS, {}, within, 3, {})
    (labels, value), *others = found["concorde_class_sent_bytes_total"]
    assert (labels["at"], labels["class"], value, others) == ("pod", "1:1", 7, [])
    assert (labels["pod"], "namespace" in labels) == ("c2", False)  # no runtime told its name
    assert found["concorde_class_rate_bits_per_second"][0][1] == 51
    assert found["concorde_unseen_classes"] == [({}, 3)]


def test_what_was_refused_is_told_of_whom_it_is_known() -> None:
    found = rendered([], [FIRST, SECOND], {}, {}, {}, 0, {FIRST.key: 9})
    pod = {"network": "a", "namespace": "ns", "pod": "p1", "port": "v1"}
    assert found["concorde_refused_packets_total"] == [(pod, 9)]


def test_a_class_that_the_kernel_lacks_is_not_made_up() -> None:
    found = rendered([TREE], [FIRST], {}, {}, {}, 0, {})
    assert not any(name.startswith("concorde_class") for name in found)


def test_only_types_that_node_exporter_knows_and_no_timestamps() -> None:
    text = metrics.render(
        [TREE], [FIRST, SECOND], TERMS, {"eth0": UPLINK}, {"v2": Counters(7, 1, 0, 0, 0)}, 0, {}
    )
    types = {line.split()[-1] for line in text.splitlines() if line.startswith("# TYPE")}
    assert types == {"gauge", "counter"}
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(len(line.rpartition("}")[2].split()) <= 2 for line in samples)


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
help_words = words.filter(lambda text: text == text.strip())  # the parser cuts off what is around a help text


@given(help_words, words, st.integers(0, 2**64 - 1))
def test_any_text_and_number_comes_out_as_it_went_in(says: str, value: str, number: int) -> None:
    family = Family("one_bytes", COUNTER, says)
    family.add(labelled((("who", value),)), number)
    (found,) = parsed(text([family]))
    (sample,) = found.samples
    assert (found.name, found.type, found.documentation) == ("one_bytes", "counter", says)
    assert (sample.name, sample.labels, sample.value) == ("one_bytes_total", {"who": value}, number)


def test_a_family_without_samples_is_left_out() -> None:
    assert text([Family("empty", GAUGE, "Nothing.")]) == "# EOF\n"


def test_an_empty_label_is_left_out() -> None:
    assert labelled((("a", ""), ("b", "c"))) == '{b="c"}'
    assert labelled((("a", ""),)) == ""
