from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from concorde import tools
from concorde.node import observe
from concorde.node.observe import Listed

from tests.unit.plugin.node.examples import TC_QDISCS

FDB = '[{"ifname": "veth1", "mac": "0a:58:0a:f4:01:02", "state": "static", "flags": ["sticky"]}]'
PORTS = '[{"ifname": "veth1", "linkinfo": {"info_slave_data": {}}}]'


@pytest.mark.parametrize(
    ("shown", "root"),
    [
        ("", "default"),
        ('[{"kind":"fq_codel","handle":"0:","root":true,"options":{}}]', "default"),
        ('[{"kind":"mq","handle":"0:","root":true},{"kind":"fq","handle":"0:","parent":":1"}]', "default"),
        ('[{"kind":"fq_codel","handle":"8001:","root":true,"options":{}}]', "fq_codel 8001:"),
        ('[{"kind":"htb","handle":"c0de:","root":true,"options":{"default":"0x1"}}]', "htb c0de:"),
        (TC_QDISCS, "ours"),
    ],
)
def test_whose_the_root_qdisc_is(shown: str, root: str) -> None:
    assert observe.read_qdiscs(shown).root == root


class Going:
    """A port that goes between two looks: whoever is asked first still sees it.

    The addresses are looked at as late as can be, the ports as early: when the tool is started.
    """

    def __init__(self) -> None:
        self.there = True

    def look(self, shown: str) -> str:
        there, self.there = self.there, False
        return shown if there else "[]"

    def start(self, *command: str, netns: str = "") -> Looking:
        assert not netns
        if command[0] == "nft":
            return Looking(lambda: '{"nftables": []}')
        if command[0] == "bridge":
            return Looking(lambda: self.look(FDB))
        shown = self.look(PORTS)
        return Looking(lambda: shown)


class Looking:
    def __init__(self, shown: Callable[[], str]) -> None:
        self.finish = shown


def test_a_port_that_goes_meanwhile_has_not_lost_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "start", Going().start)
    state = observe.observe()
    assert state.fixed == {("veth1", "0a:58:0a:f4:01:02")}
    assert not state.ports


def test_what_packets_put_into_a_set_is_nobodys_to_compare() -> None:
    state = observe.State()
    known = {"elem": {"val": {"concat": ["172.16.1.2", "10.0.0.1"]}, "expires": 59}}
    shown = {"nftables": [{"set": {"name": "hops", "elem": [known]}}]}
    observe.read_table(state, "ip", json.dumps(shown))
    assert ("ip", "hops") in state.sets
    assert state.elements == set()


@pytest.mark.parametrize(
    ("told", "closed"),
    [({}, True), ({"mcast_max_groups": 128}, True), ({"mcast_max_groups": 0}, False)],
)
def test_a_port_that_may_fill_the_table_of_groups_is_open_where_that_is_told(
    told: dict[str, int], closed: bool
) -> None:
    state = observe.State()
    settings = {"learning": False, "flood": False, "multicast_router": 0, "group_fwd_mask": "0xfffd", **told}
    port = {"ifname": "veth1", "linkinfo": {"info_slave_data": settings}}
    observe.read_ports(state, json.dumps([port]), "[]")
    assert (state.closed == {"veth1"}) == closed


def test_a_ports_hairpin_mode_is_read() -> None:
    state = observe.State()
    ports = [
        {"ifname": name, "linkinfo": {"info_slave_data": {"hairpin": on}}}
        for name, on in (("veth1", True), ("veth2", False))
    ]
    observe.read_ports(state, json.dumps(ports), "[]")
    assert (state.ports, state.hairpins) == ({"veth1", "veth2"}, {"veth1"})


@pytest.mark.parametrize(
    ("element", "key", "value"),
    [
        ("veth1", ["veth1"], None),
        (4789, ["4789"], None),
        ({"concat": ["cni-a", "172.16.1.2"]}, ["cni-a", "172.16.1.2"], None),
        (["172.16.1.2", "c0de:10"], ["172.16.1.2"], "c0de:10"),
        ({"elem": {"val": "veth1", "counter": {"packets": 3, "bytes": 9}}}, ["veth1"], None),
        ({"elem": {"val": {"concat": ["cni-a", "1.2.3.4"]}}}, ["cni-a", "1.2.3.4"], None),
    ],
)
def test_each_form_of_an_element_is_read(element: Any, key: list[str], value: str | None) -> None:
    listed = Listed(element)
    assert (listed.key, listed.value) == (key, value)


def test_an_element_is_written_as_nft_reads_it() -> None:
    assert (
        Listed({"concat": ["cni-a", "172.16.1.2"]}).text(['"cni-a"', "172.16.1.2"]) == '"cni-a" . 172.16.1.2'
    )
    limit = {
        "rate": 50,
        "rate_unit": "kbytes",
        "burst": 3000,
        "burst_unit": "bytes",
        "per": "second",
        "inv": True,
    }
    assert (
        Listed({"elem": {"val": "veth1", "limit": limit}}).text(['"veth1"'])
        == '"veth1" limit rate over 51200 bytes/second burst 3000 bytes'
    )
    in_packets = {"rate": 100, "burst": 200, "per": "second", "inv": True}  # is the set's, for all alike
    assert Listed({"elem": {"val": "veth1", "limit": in_packets}}).text(['"veth1"']) == '"veth1"'
    assert Listed(["172.16.1.2", "c0de:10"]).text(["172.16.1.2"]) == "172.16.1.2 : c0de:10"
