"""Manifests in the vendor's form: what they ask for, who gets what of it, and what is wrong with variants."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.addresses import kinds
from edge.addresses.allocation import Allocator, Config, NoBlockError, Node
from edge.addresses.selectors import NAME_FIELD
from tests import cases
from tests.manifests import GONE, another, documents

DOCUMENTS = cases.count("CONCORDE_CONFIG_DOCUMENTS", 50, 3_000)
KIOSK = {"baremetal.cluster.gke.io/node-pool": "kiosks"}
WORKER = {"kubernetes.io/hostname": "worker-03"}


def allocator(*files: str) -> Allocator:
    made = Allocator()
    for document in (one for file in files for one in documents(file)):
        made.add(kinds.parse(document))
    return made


def blocks(one: Allocator, labels: dict[str, str], *names: str) -> list[str]:
    given = [one.allocate(Node(name, labels)) for name in names]
    return [f"{each.config}: {' '.join(map(str, each.blocks))}" for each in given]


def test_a_pool_and_a_node_have_ranges_of_their_own() -> None:
    one = allocator("by-pool-and-node")
    assert blocks(one, KIOSK, "k0", "k1") == [
        "cluster-edge/kiosks: 10.61.4.0/28",
        "cluster-edge/kiosks: 10.61.4.16/28",
    ]
    # One label of each is matched, and one-node has the fewest blocks.
    assert blocks(one, {**KIOSK, **WORKER}, "worker-03") == ["cluster-edge/one-node: 10.61.8.0/26"]
    assert one.free("cluster-edge/kiosks") == 6
    with pytest.raises(NoBlockError) as refused:
        one.allocate(Node("worker-04", {}))
    assert str(refused.value) == (
        "cluster-edge/kiosks is for nodes with baremetal.cluster.gke.io/node-pool=kiosks: label the node so; "
        "cluster-edge/one-node is for nodes with kubernetes.io/hostname=worker-03: label the node so"
    )


def test_both_families_are_given_side_by_side_to_the_last() -> None:
    one = allocator("dual-stack")
    given = blocks(one, {}, *(f"n{number}" for number in range(256)))
    assert given[0] == "cluster-edge/both-families: 10.62.0.0/24 fd62::/120"
    assert given[-1] == "cluster-edge/both-families: 10.62.255.0/24 fd62::ff00/120"
    with pytest.raises(NoBlockError, match="has no block left, 256 of 256 given"):
        one.allocate(Node("late", {}))


def test_the_whole_cluster_has_what_is_nobodys_own() -> None:
    one = allocator("whole-cluster", "by-pool-and-node")
    assert blocks(one, {}, "n0") == ["cluster-edge/whole-cluster: 10.60.0.0/24"]
    kiosks = blocks(one, KIOSK, *(f"k{number}" for number in range(9)))
    assert kiosks[-2:] == ["cluster-edge/kiosks: 10.61.4.112/28", "cluster-edge/whole-cluster: 10.60.1.0/24"]
    assert one.free("cluster-edge/whole-cluster") == 254


INTEGER = "must be an integer from {}, the range's own, to {}"
NETWORK = "must be an IPv{} network like "
V4, V6 = "spec.ipv4", "spec.ipv6"
TERMS, EXPRESSIONS = (
    "nodeSelector.nodeSelectorTerms",
    "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions",
)
# A file, the field that is another, its value, the field that is named, and how its words begin.
REFUSED: list[tuple[str, str, object, str, str]] = [
    ("whole-cluster", "ipv4.perNodeMaskSize", 15, f"{V4}.perNodeMaskSize", INTEGER.format(16, 30)),
    ("whole-cluster", "ipv4.perNodeMaskSize", 31, f"{V4}.perNodeMaskSize", INTEGER.format(16, 30)),
    ("whole-cluster", "ipv4.perNodeMaskSize", True, f"{V4}.perNodeMaskSize", INTEGER.format(16, 30)),
    ("whole-cluster", "ipv4.perNodeMaskSize", "24", f"{V4}.perNodeMaskSize", INTEGER.format(16, 30)),
    ("whole-cluster", "ipv4.perNodeMaskSize", 24.0, f"{V4}.perNodeMaskSize", INTEGER.format(16, 30)),
    ("whole-cluster", "ipv4.perNodeMaskSize", GONE, f"{V4}.perNodeMaskSize", INTEGER.format(16, 30)),
    ("whole-cluster", "ipv4.cidr", "10.60.0.1/16", f"{V4}.cidr", "has host bits set: 10.60.0.0/16 is meant"),
    ("whole-cluster", "ipv4.cidr", "10.60.0.0/33", f"{V4}.cidr", NETWORK.format(4)),
    ("whole-cluster", "ipv4.cidr", "10.60.0.0/255.255.0.0", f"{V4}.cidr", NETWORK.format(4)),
    ("whole-cluster", "ipv4.cidr", "10.60.0.0", f"{V4}.cidr", NETWORK.format(4)),
    ("whole-cluster", "ipv4.cidr", "10.060.0.0/16", f"{V4}.cidr", NETWORK.format(4)),
    ("whole-cluster", "ipv4.cidr", "fd62::/112", f"{V4}.cidr", NETWORK.format(4)),
    ("whole-cluster", "ipv4.cidr", 16, f"{V4}.cidr", NETWORK.format(4)),
    ("whole-cluster", "ipv4.cidr", GONE, f"{V4}.cidr", NETWORK.format(4)),
    ("whole-cluster", "ipv4", GONE, "spec", "must have ipv4, ipv6 or both"),
    ("whole-cluster", "ipv4", ["10.60.0.0/16"], V4, "must be an object"),
    ("whole-cluster", "", GONE, "spec", "must be an object"),
    ("dual-stack", "ipv6.cidr", "fd62::1/112", f"{V6}.cidr", "has host bits set: fd62::/112 is meant"),
    ("dual-stack", "ipv6.cidr", "10.62.0.0/16", f"{V6}.cidr", NETWORK.format(6)),
    ("dual-stack", "ipv6.cidr", "fe80::%eth0/112", f"{V6}.cidr", NETWORK.format(6)),
    ("dual-stack", "ipv6.perNodeMaskSize", 111, f"{V6}.perNodeMaskSize", INTEGER.format(112, 126)),
    ("dual-stack", "ipv6.perNodeMaskSize", 127, f"{V6}.perNodeMaskSize", INTEGER.format(112, 126)),
    ("dual-stack", "ipv6.perNodeMaskSize", 121, f"{V6}.perNodeMaskSize", "must be 120: both families have"),
    ("dual-stack", "ipv4.perNodeMaskSize", 25, f"{V6}.perNodeMaskSize", "must be 121: both families have"),
    ("dual-stack", "ipv6.cidr", "fd62::/103", f"{V6}.perNodeMaskSize", "must be at most 119: 16 more than"),
    ("by-pool-and-node", "ipv4.perNodeMaskSize", 24, f"{V4}.perNodeMaskSize", INTEGER.format(25, 30)),
    ("by-pool-and-node", "ipv4.cidr", "10.61.4.0/29", f"{V4}.perNodeMaskSize", INTEGER.format(29, 30)),
    ("by-pool-and-node", "nodeSelector", ["kiosks"], "spec.nodeSelector", "must be an object"),
    ("by-pool-and-node", "nodeSelector.matchLabels", "a=b", "spec.nodeSelector.matchLabels", "must be"),
    ("by-pool-and-node", "nodeSelector.matchLabels.size", 5, "spec.nodeSelector.matchLabels.size", "must"),
    ("by-pool-and-node", TERMS, {}, f"spec.{TERMS}", "must be a list"),
    ("by-pool-and-node", TERMS, ["a"], f"spec.{TERMS}[0]", "must be an object"),
]  # fmt: skip
NUMBER = "must be one integer for "
# What is asked of a label, the field of it that is named, and how its words begin.
UNMEETABLE: list[tuple[dict[str, object], str, str]] = [
    ({"operator": "Exists"}, ".key", "must be a string"),
    ({"key": "a"}, ".operator", "must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt"),
    ({"key": "a", "operator": "in", "values": ["b"]}, ".operator", "must be one of In, NotIn, Exists,"),
    ({"key": "a", "operator": "In"}, ".values", "must have values for In"),
    ({"key": "a", "operator": "NotIn", "values": []}, ".values", "must have values for NotIn"),
    ({"key": "a", "operator": "In", "values": "b"}, ".values", "must be a list"),
    ({"key": "a", "operator": "In", "values": ["b", 5]}, ".values[1]", "must be a string"),
    ({"key": "a", "operator": "Exists", "values": ["b"]}, ".values", "must be empty for Exists"),
    ({"key": "a", "operator": "DoesNotExist", "values": ["b"]}, ".values", "must be empty for DoesNotExist"),
    ({"key": "a", "operator": "Gt"}, ".values", f"{NUMBER}Gt"),
    ({"key": "a", "operator": "Gt", "values": ["1", "2"]}, ".values", f"{NUMBER}Gt"),
    ({"key": "a", "operator": "Lt", "values": ["few"]}, ".values", f"{NUMBER}Lt"),
    ({"key": "a", "operator": "Lt", "values": ["1_000"]}, ".values", f"{NUMBER}Lt"),
    ({"key": "a", "operator": "Gt", "values": [str(2**63)]}, ".values", f"{NUMBER}Gt"),
]


def problems(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    with pytest.raises(kinds.BadConfigError) as refused:
        kinds.parse(document)
    yield from refused.value.problems
    assert str(refused.value) == "; ".join(f"{path}: {what}" for path, what in refused.value.problems)


@pytest.mark.parametrize(("file", "path", "value", "field", "words"), REFUSED)
def test_a_variant_is_refused_with_its_field(
    file: str, path: str, value: object, field: str, words: str
) -> None:
    found = list(problems(another(file, path, value)))
    assert found[0][0] == field
    assert found[0][1].startswith(words)


@pytest.mark.parametrize(("asked", "field", "words"), UNMEETABLE)
def test_what_no_node_can_meet_is_refused_with_its_field(
    asked: dict[str, object], field: str, words: str
) -> None:
    found = list(problems(another("by-pool-and-node", TERMS, [{"matchExpressions": [asked]}])))
    assert (f"{EXPRESSIONS}[0]{field}", words) in [(path, what[: len(words)]) for path, what in found]


def test_terms_that_ask_for_nothing_are_for_no_node_which_is_told_so() -> None:
    config = kinds.parse(another("whole-cluster", "nodeSelector", {"nodeSelectorTerms": [{}]}))
    assert (config.selector.example(), given_to(config, {"size": "small"})) == (None, False)


def test_of_a_nodes_fields_its_name_alone_can_be_asked_for() -> None:
    fields = [
        {"key": "spec.x", "operator": "In", "values": ["a"]},
        {"key": "metadata.name", "operator": "Exists"},
    ]
    terms = [{"matchFields": fields}]
    assert list(
        problems(another("whole-cluster", TERMS.partition(".")[0], {"nodeSelectorTerms": terms}))
    ) == [
        (f"spec.{TERMS}[0].matchFields[0].key", "must be metadata.name"),
        (f"spec.{TERMS}[0].matchFields[1].operator", "must be one of In, NotIn"),
    ]


def test_all_that_is_wrong_is_said_at_once() -> None:
    document = another("dual-stack", "ipv4.cidr", "10.62.0.1/16")
    document["spec"]["ipv6"]["perNodeMaskSize"] = 127
    document["spec"]["nodeSelector"] = {"matchLabels": []}
    assert [path for path, _ in problems(document)] == [
        "spec.ipv4.cidr",
        "spec.ipv6.perNodeMaskSize",
        "spec.nodeSelector.matchLabels",
    ]


@pytest.mark.parametrize(
    ("ipv4", "ipv6", "possible"),
    [
        ("10.0.0.0/30:30", "", 1),
        ("0.0.0.0/0:30", "", 2**30),
        ("", "fd00::/126:126", 1),
        ("", "fd00::/110:126", 2**16),
        ("", "::/0:16", 2**16),
        ("10.0.0.0/16:24", "fd00::/104:120", 2**8),  # the fewer of both
        ("0.0.0.0/0:16", "fd00::/96:112", 2**16),
    ],
)
def test_what_is_just_within_the_bounds_is_taken(ipv4: str, ipv6: str, possible: int) -> None:
    spec = {}
    for field, text in (("ipv4", ipv4), ("ipv6", ipv6)):
        if text:
            cidr, _, mask = text.rpartition(":")
            spec[field] = {"cidr": cidr, "perNodeMaskSize": int(mask)}
    config = kinds.parse({"metadata": {"name": "a"}, "spec": spec})
    one = Allocator()
    one.add(config)
    assert one.free("a") == possible
    first = [str(ip_network((each.network.network_address, each.mask))) for each in config.ranges]
    assert [str(block) for block in one.allocate(Node("n", {})).blocks] == first


def test_a_config_is_called_by_its_namespace_and_name() -> None:
    named = {"metadata": {"namespace": "cluster-a", "name": "b"}}
    assert kinds.called(named) == "cluster-a/b"
    assert kinds.called({"metadata": {"name": "b"}}) == "b"


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(max_size=8), parts, max_size=3),
    max_leaves=8,
)
OTHERS = "a-name-that-no-text-is"
TEXTS = st.text(string.ascii_lowercase + string.digits + "-_.+ ", max_size=4)
VALUES = {"Exists": 0, "DoesNotExist": 0, "Gt": 1, "Lt": 1}  # and of the others two


@st.composite
def families(draw: st.DrawFn, version: int) -> object:
    """A range and a mask, within the bounds."""
    bits = 32 if version == 4 else 128
    length = draw(st.integers(0, kinds.LONGEST[version]))
    address = draw(st.integers(0, 2**length - 1)) << (bits - length)
    written = IPv4Address(address) if version == 4 else IPv6Address(address)
    mask = draw(st.integers(length, min(length + kinds.MOST_BITS_IPV6, kinds.LONGEST[version])))
    return {"cidr": f"{written}/{length}", "perNodeMaskSize": mask}


@st.composite
def requirements(draw: st.DrawFn, key: st.SearchStrategy[str], operators: Sequence[str]) -> object:
    operator = draw(st.sampled_from(operators))
    values = st.integers(-9, 9).map(str) if operator in ("Gt", "Lt") else TEXTS
    count = VALUES.get(operator, 2)
    listed = draw(st.lists(values, min_size=min(count, 1), max_size=count))
    return {"key": draw(key), "operator": operator, "values": listed}


TERMS_OF = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(requirements(TEXTS, kinds.OPERATORS), max_size=2),
        "matchFields": st.lists(requirements(st.just(NAME_FIELD), kinds.FIELD_OPERATORS), max_size=1),
    },
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.fixed_dictionaries(
            {},
            optional={
                "matchLabels": st.dictionaries(TEXTS, TEXTS, max_size=2),
                "nodeSelectorTerms": st.lists(TERMS_OF, max_size=2),
            },
        )
    },
)


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where anything stands in a document: what it is in, and its key or number there."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in [*inside]:
        yield document, key
        if isinstance(value, dict | list):
            yield from places(value)


@st.composite
def documents_of_any_kind(draw: st.DrawFn) -> Any:
    """A config, with up to two places in which there is anything else."""
    spec: Any = draw(SPECS)
    for version in draw(st.sampled_from([(4,), (6,), (4, 6)])):
        spec[f"ipv{version}"] = draw(families(version))
    if len(spec.keys() & {"ipv4", "ipv6"}) == 2 and draw(st.booleans()):
        spec["ipv6"] = {"cidr": "fd00::/100", "perNodeMaskSize": spec["ipv4"]["perNodeMaskSize"] + 96}
    document: Any = {"metadata": {"name": draw(TEXTS), "namespace": draw(TEXTS)}, "spec": spec}
    for _ in range(draw(st.integers(0, 2))):
        container, key = draw(st.sampled_from([*places(document)]))
        container[key] = draw(ANY)
    return document


@pytest.mark.long
@settings(max_examples=DOCUMENTS)
@given(documents_of_any_kind(), st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_any_json_is_a_config_or_refused_with_fields(document: Any, labels: dict[str, str]) -> None:
    try:
        config = kinds.parse(document)
    except kinds.BadConfigError as error:
        wrong = [path.partition(".")[0] for path, what in error.problems if what]
        assert set(wrong) == {"spec"}
        return
    for one in config.ranges:
        version, mask = one.network.version, one.mask
        assert 0 <= mask - one.network.prefixlen <= (kinds.MOST_BITS_IPV6 if version == 6 else 32)
        assert mask <= kinds.LONGEST[version]
    assert len({one.host_bits for one in config.ranges}) == 1
    example = config.selector.example()
    assert given_to(config, labels) in (True, False)
    assert example is None or given_to(config, example)


def given_to(config: Config, labels: dict[str, str]) -> bool:
    """Whether a node with these labels gets a block; one that gets none is told of its labels."""
    node = Node(labels.get(NAME_FIELD, OTHERS), labels)
    allocator = Allocator()
    allocator.add(config)
    offered = allocator.offer(node)
    lacks = config.selector.missing({**labels, NAME_FIELD: node.name})
    if offered is None:
        assert "is for no" in allocator.why_not(node)
        return False
    assert lacks == []
    return all(one.has(block) for one, block in zip(config.ranges, offered.blocks, strict=True))
