"""What packet filters' chains would do, from their text; the rest of `surroundings` is tested on nodes."""

from __future__ import annotations

from typing import Any

import pytest
from concorde.routing import Block
from concorde.surroundings import features, filters
from concorde.surroundings.filters import Packet

OWN, CLUSTER = Block(0x0AF40100, 24), Block(0x0AF40000, 16)  # 10.244.1.0/24 of 10.244.0.0/16
OUT = Packet(OWN, OWN, CLUSTER, ["cni-a"], ["flannel.1"], "new")
ANYWHERE = Packet(OWN, OWN, None, ["cni-a"], [], "new")
ANSWER = Packet(OWN, CLUSTER, OWN, ["flannel.1"], ["cni-a"], "established")


def saved(*given: str, policy: str = "DROP") -> dict[str, filters.Chain]:
    """A table as iptables-save writes it, with a chain for each that is jumped to."""
    return filters.saved(
        "\n".join(
            ["*filter", f":FORWARD {policy} [0:0]", ":other - [0:0]", ":more - [0:0]", *given, "COMMIT"]
        )
    )


@pytest.mark.parametrize(
    ("given", "drops"),
    [
        ([], True),
        (["-A FORWARD -s 10.244.0.0/16 -j ACCEPT"], False),
        (["-A FORWARD -s 10.244.1.0/24 -j ACCEPT"], False),
        (["-A FORWARD -s 10.244.2.0/24 -j ACCEPT"], True),
        (["-A FORWARD ! -s 10.244.2.0/24 -j ACCEPT"], False),
        (["-A FORWARD -s 10.244.1.7/32 -j ACCEPT"], False),  # for one of them it may be
        (["-A FORWARD -d 10.244.1.0/24 -j ACCEPT"], True),  # what comes here, not what leaves
        (["-A FORWARD -d 10.244.0.0/16 -j ACCEPT"], False),
        (["-A FORWARD -d 192.0.2.0/24 -j ACCEPT"], True),
        (["-A FORWARD -i cni-a -j ACCEPT"], False),
        (["-A FORWARD -i cni+ -j ACCEPT"], False),
        (["-A FORWARD -i docker0 ! -o docker0 -j ACCEPT"], True),
        (["-A FORWARD -o flannel.1 -j ACCEPT"], False),
        (["-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"], True),
        (["-A FORWARD -m state --state NEW,ESTABLISHED -j ACCEPT"], False),
        (["-A FORWARD -m conntrack --ctstatus DNAT -j ACCEPT"], True),
        (["-A FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT"], True),
        (["-A FORWARD -m mark ! --mark 0x4000/0x4000 -j ACCEPT"], False),
        (
            [
                "-A other -j MARK --set-xmark 0x4000/0x4000",
                "-A FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT",
            ],
            False,
        ),
        (["-A FORWARD -p icmp -j ACCEPT"], True),
        (["-A FORWARD -p tcp -m tcp --dport 80 -j ACCEPT"], False),  # nobody knows the port
        (["-A FORWARD -m set --match-set known src -j ACCEPT"], False),
        (['-A FORWARD -m comment --comment "-j ACCEPT" -j other'], True),
        (["-A FORWARD -j LOG --log-prefix x", "-A FORWARD -j NFLOG"], True),
        (["-A FORWARD -j NFQUEUE --queue-num 1"], False),
        (["-A FORWARD -j other", "-A other -j ACCEPT"], False),
        (["-A FORWARD -j other", "-A other -j RETURN", "-A other -j ACCEPT"], True),
        (["-A FORWARD -g other", "-A FORWARD -j ACCEPT"], True),  # back to who called FORWARD: its policy
        (["-A FORWARD -m set --match-set known src -g other", "-A FORWARD -j ACCEPT"], False),
        (["-A FORWARD -j other", "-A other -j more", "-A more -j DROP", "-A FORWARD -j ACCEPT"], True),
        (["-A FORWARD -m set --match-set known src -j DROP", "-A FORWARD -j ACCEPT"], False),
        # Who has left the chain before the rule that drops.
        (
            ["-A other -m set --match-set known src -j RETURN", "-A other -j DROP", "-A FORWARD -j other"],
            False,
        ),
        (["-A FORWARD -j FORWARD"], False),  # no end of it; the kernel has none such
    ],
)
def test_a_packet_is_dropped_where_nothing_may_let_it_through(given: list[str], drops: bool) -> None:
    assert bool(filters.drops(saved(*given), "FORWARD", OUT)) is drops


def test_what_drops_it_is_named() -> None:
    assert filters.drops(saved(), "FORWARD", OUT) == "the policy of FORWARD"
    inner = saved(
        "-A FORWARD -j other", "-A other -s 10.0.0.0/8 -j REJECT --reject-with icmp-port-unreachable"
    )
    assert filters.drops(inner, "FORWARD", OUT) == "a rule of other"
    assert filters.drops(saved(policy="ACCEPT"), "FORWARD", OUT) == ""


def test_an_answer_is_another_packet() -> None:
    one_way = saved("-A FORWARD -s 10.244.1.0/24 -j ACCEPT")
    assert filters.drops(one_way, "FORWARD", OUT) == ""
    assert filters.drops(one_way, "FORWARD", ANSWER) == "the policy of FORWARD"
    both = saved(
        "-A FORWARD -s 10.244.1.0/24 -j ACCEPT", "-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT"
    )
    assert filters.drops(both, "FORWARD", ANSWER) == ""


@pytest.mark.parametrize(
    ("given", "drops"),
    [
        ("-d 192.0.2.0/24", False),  # that may be where it goes
        ("-o eth7", False),
        ("-d 10.244.1.0/24", True),
        ("-d 0.0.0.0/0", False),
        ("-i eth7", True),
    ],
)
def test_where_a_packet_goes_nobody_may_know(given: str, drops: bool) -> None:
    assert bool(filters.drops(saved(f"-A FORWARD {given} -j ACCEPT"), "FORWARD", ANYWHERE)) is drops


def matches(left: object, right: object, op: str = "==") -> dict[str, object]:
    return {"match": {"op": op, "left": left, "right": right}}


SADDR, DADDR = ({"payload": {"protocol": "ip", "field": field}} for field in ("saddr", "daddr"))
STATE, IIF = {"ct": {"key": "state"}}, {"meta": {"key": "iifname"}}
MARK = {"meta": {"key": "mark"}}


@pytest.mark.parametrize(
    ("expressions", "drops"),
    [
        ([matches(SADDR, {"prefix": {"addr": "10.244.0.0", "len": 16}}), {"accept": None}], False),
        ([matches(SADDR, {"prefix": {"addr": "10.245.0.0", "len": 16}}), {"accept": None}], True),
        ([matches(SADDR, {"prefix": {"addr": "10.245.0.0", "len": 16}}, "!="), {"accept": None}], False),
        (
            [
                matches(SADDR, {"set": ["192.0.2.1", {"prefix": {"addr": "10.0.0.0", "len": 8}}]}),
                {"accept": None},
            ],
            False,
        ),
        ([matches(SADDR, {"set": ["192.0.2.1", "192.0.2.2"]}), {"accept": None}], True),
        ([matches(SADDR, {"range": ["10.0.0.0", "10.1.0.0"]}), {"accept": None}], False),
        ([matches(SADDR, "@known"), {"accept": None}], False),
        ([matches(DADDR, "10.244.1.9"), {"accept": None}], True),
        ([matches(STATE, ["established", "related"], "in"), {"accept": None}], True),
        ([matches(STATE, {"set": ["new", "related"]}), {"accept": None}], False),
        ([matches({"ct": {"key": "status"}}, "dnat", "in"), {"accept": None}], True),
        ([matches({"ct": {"key": "mark"}}, 1), {"accept": None}], False),
        ([matches(IIF, "cni-*"), {"accept": None}], False),
        ([matches(IIF, {"set": ["lo", "docker0"]}), {"accept": None}], True),
        ([matches(IIF, "@known"), {"accept": None}], False),
        ([matches({"meta": {"key": "l4proto"}}, "tcp"), {"counter": None}, {"accept": None}], False),
        ([matches({"meta": {"key": "l4proto"}}, {"set": ["udp", "icmp"]}), {"accept": None}], True),
        ([matches({"&": [MARK, 16384]}, 16384), {"accept": None}], True),
        ([matches({"payload": {"protocol": "ip6", "field": "saddr"}}, "::1"), {"accept": None}], True),
        ([matches({"payload": {"protocol": "tcp", "field": "dport"}}, 80), {"accept": None}], False),
        ([{"xt": {"type": "match", "name": "comment"}}, {"accept": None}], False),
        ([{"xt": {"type": "match", "name": "conntrack"}}, {"accept": None}], False),
        ([{"xt": None}, {"accept": None}], False),
        ([{"vmap": {"key": IIF, "data": {"set": []}}}], False),
        ([{"jump": {"target": "other"}}], True),
        ([{"reject": {"type": "icmpx"}}], True),
        ([{"log": None}], True),
    ],
)
def test_the_same_of_what_nft_says(expressions: list[dict[str, object]], drops: bool) -> None:
    base: dict[str, object] = {
        "family": "inet",
        "table": "t",
        "name": "forward",
        "type": "filter",
        "hook": "forward",
        "policy": "drop",
    }
    listing: list[dict[str, Any]] = [
        {"metainfo": {}},
        {"chain": base},
        {"chain": {"family": "inet", "table": "t", "name": "other"}},
        {"rule": {"chain": "forward", "expr": expressions}},
    ]
    chains, hooked, _ = filters.listed(listing)
    assert hooked == ["forward"]
    assert bool(filters.drops(chains, "forward", OUT)) is drops


def test_where_a_rule_sets_marks_nobody_knows_them() -> None:
    marked = [matches({"&": [MARK, 16384]}, 16384), {"accept": None}]
    sets = [{"mangle": {"key": MARK, "value": 16384}}]
    base: dict[str, Any] = {"name": "forward", "type": "filter", "hook": "forward", "policy": "drop"}
    listing: list[dict[str, Any]] = [{"chain": base}]
    listing += ({"rule": {"chain": "forward", "expr": expressions}} for expressions in (sets, marked))
    assert filters.drops(filters.listed(listing)[0], "forward", OUT) == ""


@pytest.mark.parametrize(
    ("release", "version"),
    [("5.10.0-30-amd64", (5, 10)), ("5.11", (5, 11)), ("6.1.0+", (6, 1)), ("5.14.0-427.el9.x86_64", (5, 14))],
)
def test_a_kernels_release_is_a_version(
    release: str, version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told:
        pass

    told = Told()
    told.release = release  # type: ignore[attr-defined]
    monkeypatch.setattr("os.uname", lambda: told)
    monkeypatch.setattr(features, "_is_unknown_qdisc", lambda kind: kind == "tbf")
    monkeypatch.setattr(features, "_is_unknown_kind", lambda kind: kind == "bridge")
    monkeypatch.setattr(features, "_of_tables", lambda is_ours: [])
    found = features.lacking(("htb", "tbf"), makes_bridge=True)
    if version < (5, 11):
        assert found == [f"Linux {release} is too old: 5.11 or newer is needed"]
    else:
        assert found == [
            "this kernel has no tbf (CONFIG_NET_SCH_TBF): load or build that module",
            "this kernel has no bridge (CONFIG_BRIDGE): load or build that module",
        ]
