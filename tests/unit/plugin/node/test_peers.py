"""A fabric's classes and rules: what goes to another node, what may be granted, and what is no fault."""

from __future__ import annotations

from typing import Any

import pytest
from concorde import links, shaping
from concorde.cni import INVALID_CONFIGURATION, CniError
from concorde.node import htb, peers, tables, uplinks
from concorde.node.differences import Difference, differences
from concorde.node.observe import State, UplinkState
from concorde.node.records import Entry, Fabric, Tree, fabric_of
from concorde.node.settings import Settings
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.node.examples import GIGA, entry

OTHER = 0xC0A83810  # 192.168.56.16
FABRIC = Fabric(("192.168.56.0/24",), 25_000_000, 7473)


def tree(*others: int, fabric: Fabric | None = FABRIC) -> Tree:
    found = Tree("eth0", GIGA, 20_000_000, (22,), fabric=fabric)
    found.peers = {address: minor for minor, address in enumerate(others, htb.PEERS[0])}
    return found


def promised() -> Entry:
    return entry(minor=0x10, rate=100_000_000, ceil=200_000_000)


def as_made(of: Tree, one: Entry) -> State:
    """What tc shows of a tree as it begins; nothing else is looked at."""
    state, uplink = State(), UplinkState("ours")
    minors = {
        **dict.fromkeys((htb.ROOT, htb.BEST_EFFORT, *htb.special(of))),
        **dict.fromkeys(htb.minors(one), one),
    }
    count = shaping.shown_count(of.overhead, of.least)
    for minor, owner in minors.items():
        rate, ceil = map(shaping.shown_rate, htb.rates(of, minor, one.rate, owner))
        above = "" if minor == htb.ROOT else htb.parent(minor)
        uplink.classes[minor] = (rate, ceil, *count, above)
        if minor not in htb.INNER:
            uplink.queues.update(htb.queues(of, minor, owner, fair=False))
    uplink.filters = set(htb.filters(of))
    state.uplinks["eth0"] = uplink
    return state


def differences_of(of: Tree, one: Entry, state: State) -> list[Difference]:
    return [found for found in differences([of], [one], state) if found.uplink]


def faults(of: Tree, one: Entry, state: State) -> list[str]:
    return [found.text for found in differences_of(of, one, state)]


def test_a_fabrics_tree_begins_with_the_safe_rate_and_promises_with_no_more_than_their_own() -> None:
    of, one = tree(OTHER), promised()
    lines = [line.split() for line in htb.plant(of, 0, fair=False).splitlines()]
    assert " ".join(lines[-1]).endswith(
        " protocol ip pref 2 u32 match u32 0xc0a83800 0xffffff00 at 16 classid c0de:fffb"
    )
    said = {words[words.index("classid") + 1]: words for words in lines if words[:2] == ["class", "add"]}
    assert list(said) == ["c0de:1", "c0de:fffc", "c0de:fffe", "c0de:fffd", "c0de:fffb", "c0de:7000"]
    for name in ("c0de:fffb", "c0de:7000"):
        words = said[name]
        assert words[words.index("parent") + 1] == "c0de:fffc"
        assert (words[words.index("rate") + 1], words[words.index("ceil") + 1]) == ("1000bit", "25000000bit")
    rate, ceil = htb.rates(of, 0x10, one.rate, one)
    assert rate == ceil == of.on_wire(100_000_000)
    assert htb.granted(of, 0x10, one) == (rate, of.on_wire(200_000_000))
    assert htb.rates(tree(fabric=None), 0x10, one.rate, one) == (rate, of.on_wire(200_000_000))


def test_no_minor_is_two_classes() -> None:
    pods = range(htb.FIRST_MINOR, htb.LAST_MINOR + 1)
    kinds = [set(pods), {htb.best_effort(minor) for minor in pods}, set(htb.PEERS)]
    kinds.append({htb.ROOT, htb.SAFE, htb.BEST_EFFORT, htb.CONTROL, htb.DEFAULT})
    assert sum(map(len, kinds)) == len(set().union(*kinds))
    # From there on the kernel numbers queues that were given none.
    assert not set().union(*kinds[:3]) & set(range(0x8000, 0xFFFB))


def test_what_was_granted_is_no_fault_and_what_nobody_could_grant_is_one() -> None:
    of, one = tree(OTHER), promised()
    state = as_made(of, one)
    assert faults(of, one, state) == []
    classes = state.uplinks["eth0"].classes

    def having(minor: int, ceil: str) -> list[str]:
        as_it_was = classes[minor]
        classes[minor] = (as_it_was[0], ceil, *as_it_was[2:])
        found = faults(of, one, state)
        classes[minor] = as_it_was
        return found

    for minor, ceil in ((0x10, "150Mbit"), (0x7000, "984395Kbit"), (0x7000, "1Mbit")):
        assert having(minor, ceil) == []
    for minor, ceil in ((0x10, "99Mbit"), (0x10, "500Mbit"), (htb.SAFE, "26Mbit"), (0x7000, "2Gbit")):
        (words,) = having(minor, ceil)
        assert f"class {htb.handle(minor)}" in words
        assert f"ceil {ceil}" in words
    del classes[0x7000]
    (words,) = faults(of, one, state)
    assert words == "class c0de:7000 of eth0 is missing"
    # Without a fabric no other node has a class, none is named, and promises have their ceilings at once.
    assert len(faults(tree(fabric=None), one, as_made(of, one))) == 4


def test_filters_of_other_nodes_go_before_what_they_name_and_come_after_it() -> None:
    of, one = tree(), promised()
    former = as_made(of, one)
    former.uplinks["eth0"].filters = set(htb.filters(tree(fabric=None)))
    (missing,) = differences_of(of, one, former)
    assert missing.text == "eth0 has no filter for what goes to 192.168.56.0/24"
    others = tree(fabric=Fabric(("10.0.0.0/8",), FABRIC.safe, FABRIC.port))
    gone, come = differences_of(others, one, as_made(of, one))
    assert gone.text == "eth0 has filters that belong to nobody"
    assert gone.tc == "filter delete dev eth0 parent c0de: protocol ip pref 2\n"
    assert " match u32 0xa000000 0xff000000 at 16 " in come.tc
    first, second, *_ = differences_of(tree(fabric=None), one, as_made(of, one))
    assert first.tc == gone.tc
    assert "class delete dev eth0 classid c0de:fffb" in second.tc


@given(st.integers(8, 10**12))
def test_a_rate_is_read_as_tc_shows_it(rate: int) -> None:
    assert shaping.rate_shown(shaping.shown_rate(rate)) <= rate
    assert shaping.rate_shown(shaping.shown_rate(rate)) >= rate * 0.998 - 8


def test_rules_of_a_fabric_come_and_go_with_it() -> None:
    assert peers.chains([tree(fabric=None)]) == {}
    of = tree()
    made = tables.chains([of])
    assert made.keys() >= peers.CHAINS
    state = State()
    state.families = {"ip", "ip6", "bridge"}
    for (family, name), (_, rules) in made.items():
        state.comments[family, name] = tables.comments(rules)
    state.sets = set(tables.SETS)
    state.uplinks["eth0"] = as_made(of, promised()).uplinks["eth0"]
    left = [one.nft for one in differences([tree(fabric=None)], [promised()], state) if "nobody" in one.text]
    gone = [text.split()[-1] for text in left if text.startswith("flush")]
    assert gone == sorted(name for _, name in peers.CHAINS)
    # No chain is removed while another leads there.
    assert gone.index("fabric") < gone.index("towards")
    assert gone.index("fabric") < gone.index("through")


def test_the_ledger_has_a_fabric_as_text() -> None:
    assert fabric_of(FABRIC.text) == FABRIC
    assert fabric_of("") is None
    for text in ("7473", "7473 many", "7473 1 192.168.56.1/24", "port 1 192.168.56.0/24"):
        with pytest.raises(ValueError, match=r"\S"):
            fabric_of(text)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "exists", lambda name: name == "eth0")
    monkeypatch.setattr(uplinks, "mtu", lambda name: 1500)


def fabric(**keys: Any) -> Fabric | None:
    return Settings({"uplink": "eth0", "capacity": "1G", "fabric": keys}, in_fabric=True).tree.fabric


@pytest.mark.usefixtures("node")
def test_what_is_said_of_a_fabric() -> None:
    assert fabric(nodes=["192.168.56.0/24"]) == FABRIC
    found = fabric(nodes=["10.0.0.0/8", "10.1.0.0/16"], safeRate="30M", port=7000)
    assert found == Fabric(("10.0.0.0/8", "10.1.0.0/16"), 30_000_000, 7000)
    assert Settings({"uplink": "eth0", "capacity": "1G"}).tree.fabric is None


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({}, "fabric.nodes: must be a list of 1 to 16 networks of nodes' addresses"),
        ({"nodes": []}, "fabric.nodes: "),
        ({"nodes": "192.168.56.0/24"}, "fabric.nodes: "),
        ({"nodes": ["192.168.56.0/24"] * 17}, "fabric.nodes: "),
        ({"nodes": ["192.168.56.0/24", "192.168.57.1/24"]}, "fabric.nodes[1]: "),
        ({"nodes": [7]}, "fabric.nodes[0]: "),
        ({"nodes": ["10.0.0.0/8"], "safeRate": "much"}, "fabric.safeRate: "),
        ({"nodes": ["10.0.0.0/8"], "safeRate": "2G"}, "fabric.safeRate: "),
        ({"nodes": ["10.0.0.0/8"], "port": 0}, "fabric.port: "),
        ({"nodes": ["10.0.0.0/8"], "port": "x"}, "fabric.port: "),
    ],
)
def test_what_is_wrong_with_a_fabric_is_said_with_its_path(keys: dict[str, Any], path: str) -> None:
    with pytest.raises(CniError) as found:
        fabric(**keys)
    assert found.value.code == INVALID_CONFIGURATION
    assert found.value.msg.startswith(path)
