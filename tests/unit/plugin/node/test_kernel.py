"""What is asked of the kernel, and in which order, where an attachment comes, goes, or is repaired."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from concorde import names
from concorde.cni import UPLINK_CONFLICT, CniError
from concorde.node import htb, kernel, tables
from concorde.node.differences import Difference
from concorde.node.records import VXLAN_HEADERS, Tree

from tests.unit.plugin.node import examples
from tests.unit.plugin.node.examples import GIGA, MAC, TREE, entry
from tests.unit.plugin.node.kernels import NotingKernel, failure

OURS = names.host_veth("cluster-a", "A-1", "eth0")
VTEP = ("ip", "vteps", '"of eth0"')
NOTHING = ("", "", "", "", "")  # of what a class has


def tc(*lines: str) -> tuple[str, str]:
    return "tc", "".join(lines)


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> NotingKernel:
    return NotingKernel(monkeypatch, examples.whole())


@pytest.mark.parametrize("fair", [False, True])
def test_a_class_gives_room_before_others_take_it_and_what_waits_in_it_stays(
    noting: NotingKernel, fair: bool
) -> None:
    noting.below = htb.FAIR if fair else "bfifo"
    low, high = entry(rate=GIGA, minor=0x10), entry(rate=2 * GIGA, minor=0x10)
    kernel.change(TREE, low, high, 2 * GIGA)
    kernel.change(TREE, high, low, GIGA)
    raised, lowered = (lines.splitlines() for _, (_, lines), _ in noting.asked)
    assert [line.split()[5] for line in raised[:3]] == ["c0de:1", "c0de:fffc", "c0de:1"]
    assert "classid c0de:10 htb prio 0 rate 2000000000bit" in raised[2]
    assert "classid c0de:10 htb prio 0 rate 1000000000bit" in lowered[0]
    assert all(line.split()[1] == "change" for line in (*raised, *lowered))
    assert not any("flows" in line for line in (*raised, *lowered))  # which nobody can change
    kinds = {"fq_codel"} if fair else {"bfifo"}
    assert {line.split()[8] for line in (raised[3], lowered[1])} == kinds
    nft, back = (rules for _, _, (_, rules) in noting.asked)
    assert nft.count("delete element ip concorde spoken") == back.count("add element ip concorde spoken") == 1


def test_who_enters_has_its_class_after_the_default_one_has_given_way_and_its_port_before_its_chain(
    noting: NotingKernel,
) -> None:
    one = entry(minor=0x10, port=OURS)
    kernel.enter(TREE, one, 2 * GIGA)
    elements, close, commands = noting.asked
    assert elements == ("set", "add", [VTEP, ("ip", "bridges", '"cni-a"'), *tables.elements(one)])
    assert close == ("close", OURS, MAC, True)
    assert commands == (
        "batches",
        tc(
            htb.change_rest(TREE, htb.default_rate(TREE, 2 * GIGA)),
            htb.add_class(TREE, 0x10, 2 * GIGA, one),
            htb.add_class(TREE, 0x4010, 2 * GIGA, one),
        ),
        ("nft", ""),
    )


def test_who_enters_without_a_promise_has_a_class_and_takes_of_no_other(noting: NotingKernel) -> None:
    one = entry(rate=0, minor=0x10, port="")
    kernel.enter(TREE, one, GIGA)
    assert [asked[0] for asked in noting.asked] == ["set", "batches"]
    assert noting.asked[-1][1] == tc(htb.add_class(TREE, 0x4010, GIGA, one))
    noting.asked.clear()
    kernel.enter(None, entry(rate=0, mac=""), 0)
    assert noting.asked[0][2][0] == ("ip", "vteps", '"of "')
    assert noting.asked[-1] == ("batches", ("tc", ""), ("nft", ""))


@pytest.mark.parametrize(("segment", "above"), [(0, 0xC0DEFFFD), (1518, 0xFFFD0001)])
def test_who_enters_has_queues_like_the_trees(noting: NotingKernel, segment: int, above: int) -> None:
    tree = Tree(TREE.uplink, TREE.capacity, TREE.reserve, TREE.ports, segment=segment)
    for noting.below in ("bfifo", "fq_codel"):
        kernel.enter(tree, entry(minor=0x10), GIGA)
        lines = noting.asked[-1][1][1]
        assert lines.count(" fq_codel ") == (2 if noting.below == "fq_codel" else 0)
    assert noting.looked_below == [above, above]


def test_overlays_that_are_there_take_offloaded_packets_apart_if_the_tree_does(noting: NotingKernel) -> None:
    tree = Tree(TREE.uplink, TREE.capacity, TREE.reserve, TREE.ports, segment=1518)
    kernel.enter(tree, entry(minor=0x10), GIGA)
    assert noting.asked[-1][-1] == ("ip", "link set dev of eth0 gso_max_segs 1\n")


def test_a_chain_of_an_attachment_is_nfts_and_all_else_goes_without_it(noting: NotingKernel) -> None:
    routed = entry(rate=0, port="", host_interface="cali1", minor=None)
    chains = [element for element in tables.elements(routed) if element[1] == tables.INGRESS]
    assert chains
    kernel.enter(None, routed, 0)
    assert not any(element in noting.asked[0][2] for element in chains)
    assert noting.asked[-1] == ("batches", ("tc", ""), ("nft", tables.change("add", chains)))
    noting.asked.clear()
    kernel.leave(None, routed, 0)
    assert noting.asked[-1] == ("batches", ("tc", ""), ("nft", tables.change("delete", chains)))


def test_who_leaves_gives_its_class_back_before_the_default_one_grows(noting: NotingKernel) -> None:
    one = entry(minor=0x10, port=OURS)
    kernel.leave(TREE, one, GIGA)
    assert noting.asked == [
        ("set", "delete", tables.elements(one)),
        (
            "batches",
            tc(
                htb.delete_class(TREE, 0x10),
                htb.delete_class(TREE, 0x4010),
                htb.change_rest(TREE, htb.default_rate(TREE, GIGA)),
            ),
            ("nft", ""),
        ),
    ]
    noting.asked.clear()
    kernel.leave(TREE, entry(rate=0, minor=None), GIGA)
    assert noting.asked[-1][1] == ("tc", "")


def test_vteps_that_cannot_be_entered_are_left_to_who_compares(noting: NotingKernel) -> None:
    noting.failing["set",] = OSError(errno.ENOENT, "no table")
    kernel.learn([TREE])
    assert noting.asked == [("set", "add", [VTEP])]


def test_once_connections_are_tracked_they_are_counted_and_until_then_no_rule_asks_for_them(
    monkeypatch: pytest.MonkeyPatch, noting: NotingKernel
) -> None:
    asking = [
        text for key in tables.chains([TREE]) for text in [tables.chain(*key, [TREE])] if " ct " in text
    ]
    assert asking == []
    assert " ct count over 2048 " in tables.tracking(ipv6=True)
    noting.tracks = True
    kernel.learn([TREE])
    assert noting.asked[1:] == [("chain", "ip", "tracked"), ("batches", ("nft", tables.tracking(ipv6=True)))]
    noting.asked.clear()
    monkeypatch.setattr("concorde.node.nfnetlink.has_chain", lambda *_: True)
    kernel.learn([TREE])
    assert noting.asked == [("set", "add", [VTEP])]
    noting.asked.clear()
    kernel.leave(None, entry(port=OURS), 0)
    forgotten = [asked[2] for asked in noting.asked if asked[:2] == ("set", "delete")][1:]
    assert forgotten == [[("ip", name, '"cni-a" . 172.16.1.2')] for name in ("connections", "full")]


def found_by(monkeypatch: pytest.MonkeyPatch, noting: NotingKernel, *found: Difference) -> None:
    monkeypatch.setattr(kernel, "compare", lambda _tree, _entries: (noting.state, list(found)))


def test_a_repair_does_everything_and_says_what_was_wrong_unless_it_can_wait(
    monkeypatch: pytest.MonkeyPatch, noting: NotingKernel
) -> None:
    found_by(
        monkeypatch,
        noting,
        Difference("a class", tc="1\n"),
        Difference("a set", nft="2\n", waits=True),
        Difference("a queue", tc="3\n", ip="4\n"),
        Difference("a port", port=("veth1", MAC, True)),
    )
    assert kernel.repair([TREE], []) == ["a class", "a queue", "a port"]
    assert noting.asked == [
        ("batches", tc("1\n", "3\n"), ("nft", "2\n"), ("ip", "4\n")),
        ("close", "veth1", MAC, True),
    ]
    noting.asked.clear()
    assert kernel.repair([TREE], [], tables_only=True) == ["a port"]
    assert noting.asked[0] == ("batches", ("tc", ""), ("nft", "2\n"), ("ip", ""))


@pytest.mark.parametrize(
    ("root", "classes", "options", "refused"),
    [
        (None, {}, {"own": TREE}, "the uplink eth0 is missing"),
        (None, {}, {"own": TREE, "take_over": True}, "the uplink eth0 is missing"),
        ("tbf 1:", {}, {}, "somebody else configured eth0"),
        ("tbf 1:", {}, {"own": TREE, "take_over": True}, ""),
        ("tbf 1:", {}, {"tables_only": True}, ""),
        ("default", {}, {"own": TREE, "fresh": True}, ""),
        ("ours", {htb.ROOT: 0, htb.CONTROL: 0, htb.DEFAULT: 0}, {"own": TREE, "fresh": True}, ""),
        ("ours", {htb.ROOT: 0, 0x10: 0}, {"own": TREE, "fresh": True}, "is not in this ledger"),
        ("ours", {htb.ROOT: 0, 0x10: 0}, {"own": TREE, "fresh": True, "take_over": True}, ""),
        ("ours", {htb.ROOT: 0, 0x10: 0}, {}, ""),
    ],
)
def test_what_somebody_else_configured_is_not_touched_unasked(
    root: str | None,
    classes: dict[int, Any],
    options: dict[str, Any],
    refused: str,
    monkeypatch: pytest.MonkeyPatch,
    noting: NotingKernel,
) -> None:
    noting.has_uplink(root, classes)
    found_by(monkeypatch, noting, Difference("a class", tc="1\n"))
    if not refused:
        kernel.repair([TREE], [], **options)
        assert noting.asked
        return
    with pytest.raises(CniError, match=refused) as caught:
        kernel.repair([TREE], [], **options)
    assert (caught.value.code, noting.asked) == (UPLINK_CONFLICT, [])


def test_an_uplink_that_is_gone_keeps_nothing_of_the_others_from_repair(
    monkeypatch: pytest.MonkeyPatch, noting: NotingKernel
) -> None:
    found_by(monkeypatch, noting, Difference("a class", tc="1\n"))
    trees = [TREE, Tree("eth1", GIGA, 0, ())]
    noting.has_uplink("ours", {})
    assert kernel.repair(trees, [], own=TREE) == ["a class"]
    noting.asked.clear()
    with pytest.raises(CniError, match="the uplink eth1 is missing"):
        kernel.repair(trees, [])
    assert noting.asked == [("batches", tc("1\n"), ("nft", ""), ("ip", ""))]


@pytest.mark.parametrize("lacking", ["root", "ip", "bridge root"])
def test_what_is_not_there_at_all_is_made_before_anything_is_looked_at(
    noting: NotingKernel, lacking: str
) -> None:
    one, lacks = entry(minor=0x10), set(lacking.split())
    assert kernel.restore([TREE], [one]) == []
    noting.lacks = lacks
    words = kernel.restore([TREE], [one])
    ((_, (_, tree), (_, rules), _),) = [asked for asked in noting.asked if asked[0] == "batches"]
    assert noting.observed == []
    made = {line.split()[2] for line in rules.splitlines()}
    assert made == lacks - {"root"}
    for family in made:
        assert f"add table {family} concorde\n" in rules
        assert all(tables.change("add", [one]) in rules for one in tables.elements(one) if one[0] == family)
    assert ("qdisc add dev eth0 root" in tree) == ("root" in lacks)
    assert ("classid c0de:10 " in tree) == ("root" in lacks)
    assert any("root qdisc" in text for text in words) == ("root" in lacks)


def test_an_uplink_that_is_missing_has_no_tree_to_be_made(noting: NotingKernel) -> None:
    noting.lacks = {"root", "ip"}
    assert kernel.missing([Tree("gone", GIGA, 0, ())], []) == ([], ["ip"])


def test_a_comparison_looks_at_the_uplink_and_finds_nothing_where_all_is_as_it_should_be(
    noting: NotingKernel,
) -> None:
    noting.state.elements |= {VTEP, ("ip", "bridges", '"cni-a"')}
    state, found = kernel.compare([TREE], [entry(minor=0x10)])
    assert (state, noting.observed) == (noting.state, ["eth0"])
    assert [difference.text for difference in found if difference.tc or difference.port] == []
    kernel.compare([], [])
    assert noting.observed == ["eth0", ""]


def test_what_is_cleared_is_what_is_there_and_nobody_elses(noting: NotingKernel) -> None:
    gone, other = entry(minor=0x10), entry("A-2", address=0xAC100103, minor=0x11, port="veth2")
    shared = tables.elements(gone)[0]
    noting.state.elements = {shared, *tables.elements(other)}
    noting.has_uplink("ours", {0x10: NOTHING, htb.DEFAULT: NOTHING})
    kernel.clear(TREE, gone, [other])
    assert noting.asked == [
        (
            "batches",
            tc(
                htb.delete_class(TREE, 0x10),
                htb.change_rest(TREE, htb.default_rate(TREE, GIGA), [htb.DEFAULT]),
            ),
            ("nft", tables.change("delete", [shared])),
            ("ip", ""),
        )
    ]
    for root, classes in (("tbf 1:", {0x10: NOTHING, htb.DEFAULT: NOTHING}), ("ours", {})):
        noting.asked.clear()
        noting.has_uplink(root, classes)
        noting.state.elements = set()
        kernel.clear(TREE, gone, [])
        assert noting.asked == [("batches", ("tc", ""), ("nft", ""), ("ip", ""))]


def test_a_tree_is_abandoned_as_far_as_it_is_there(noting: NotingKernel) -> None:
    kernel.abandon("gone")
    assert noting.asked == []
    noting.answers["ip -j ntable show"] = "[]"
    kernel.abandon("eth1")
    assert noting.asked[0] == ("batch", "tc", "qdisc delete dev eth1 root handle c0de:\n")
    assert [asked[:2] for asked in noting.asked[1:]] == [("run", "ip"), ("batch", "ip")]
    noting.asked.clear()
    noting.failing["batch", "tc"] = failure()
    kernel.abandon("eth1")
    assert len(noting.asked) == 1


@pytest.mark.parametrize(("families", "lines"), [({"ip", "bridge"}, 2), (set(), 0)])
def test_what_is_dismantled_are_the_tables_that_there_are(
    families: set[str], lines: int, noting: NotingKernel
) -> None:
    noting.state.families = families
    assert kernel.dismantle(()) is bool(families)
    ((_, (tool, text)),) = noting.asked
    assert (tool, text.count("delete table ")) == ("nft", lines)
    assert all(f"delete table {family} concorde\n" in text for family in families)
    kernel.dismantle([Tree("eth1", GIGA, 0, ())])
    assert ("batch", "tc", "qdisc delete dev eth1 root handle c0de:\n") in noting.asked


def test_nfts_lines_are_divided_between_transactions_and_no_piece_is(
    monkeypatch: pytest.MonkeyPatch, noting: NotingKernel
) -> None:
    pieces = ["a\n" * 150, "b\n" * 250, "c\n", "d\n" * 500, "e\n"]
    found_by(monkeypatch, noting, *(Difference(piece[0], nft=piece) for piece in pieces))
    kernel.repair([], [])
    assert noting.asked == [
        ("batches", ("tc", ""), ("nft", "a\n" * 150 + "b\n" * 250), ("ip", "")),
        ("batches", ("nft", "c\n")),
        ("batches", ("nft", "d\n" * 500)),
        ("batches", ("nft", "e\n")),
    ]


def test_vxlan_adds_what_its_headers_are() -> None:
    assert VXLAN_HEADERS == 14 + 20 + 8 + 8
