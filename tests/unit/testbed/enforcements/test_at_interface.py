"""Rendering of HTB at the five places, without privileges."""

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from testbed.enforcements import at_interface
from testbed.enforcements.at_interface import (
    AtInterface,
    Class,
    Interface,
    Promise,
    differences,
    frame_ratio,
    render,
)
from testbed.scenario import ScenarioError, load
from testbed.scenario.model import Shaping
from tests.doubles import RecordingNode, said
from tests.paths import ROOT
from tests.unit.testbed.builders import addressed
from tests.unit.testbed.enforcements.doubles import standing

SCENARIOS = ROOT / "scenarios" / "places"
PROMISES = [Promise(IPv4Address("172.16.1.2"), 10**9), Promise(IPv4Address("172.16.1.3"), 3 * 10**9)]
LINK = 5 * 10**9


def test_a_pods_own_interface_gets_what_the_papers_figure_10_shows() -> None:
    assert render(Shaping(at="eth0"), "eth0", PROMISES[:1], LINK) == (
        "qdisc add dev eth0 root handle 1: htb default 1\n"
        "class add dev eth0 parent 1: classid 1:1 htb rate 1000000000bit ceil 1000000000bit "
        "burst 10485760 cburst 10485760 quantum 65536\n"
    )


def test_without_a_filter_pods_share_one_class_of_the_sum() -> None:
    lines = render(Shaping(at="vtep"), "flannel.1", PROMISES, LINK).splitlines()
    assert len(lines) == 2
    assert "rate 4000000000bit ceil 4000000000bit" in lines[1]


def test_a_class_that_may_borrow_has_a_parent_to_borrow_from() -> None:
    lines = render(Shaping(at="eth0", ceiling="link"), "eth0", PROMISES[:1], LINK).splitlines()
    assert lines[0].endswith("htb default 10")
    assert "parent 1: classid 1:1 htb rate 5000000000bit ceil 5000000000bit" in lines[1]
    assert "parent 1:1 classid 1:10 htb rate 1000000000bit ceil 5000000000bit" in lines[2]


def test_with_a_filter_each_pod_has_its_class_and_the_rest_of_the_link_is_for_the_others() -> None:
    text = render(Shaping(at="vtep", classify="source"), "flannel.1", PROMISES, LINK)
    assert "htb default 2\n" in text
    assert "parent 1:1 classid 1:2 htb rate 1000000000bit ceil 5000000000bit" in text
    assert "classid 1:11 htb rate 3000000000bit ceil 3000000000bit" in text
    assert "u32 match ip src 172.16.1.3/32 flowid 1:11\n" in text


def test_the_inner_source_is_matched_in_two_halves_behind_the_encapsulation() -> None:
    inside = [replace(promise, overhead=50) for promise in PROMISES]
    text = render(Shaping(at="physical", classify="inner-source"), "eth0", inside, LINK)
    # Outer IPv4 20, UDP 8, VXLAN 8, inner Ethernet 14 bytes; then 12 to the source of the inner IPv4 header.
    assert "match ip protocol 17 0xff match u16 0xac10 0xffff at 62 match u16 0x0102 0xffff at 64 " in text


def test_promises_that_fill_the_link_leave_the_others_a_hundredth() -> None:
    text = render(Shaping(at="vtep", classify="source"), "flannel.1", PROMISES, 4 * 10**9)
    assert "classid 1:2 htb rate 40000000bit ceil 4000000000bit" in text


def test_only_the_physical_interface_counts_the_encapsulation() -> None:
    assert frame_ratio(load(SCENARIOS / "eth0.yaml"), "a") == 1
    assert frame_ratio(load(SCENARIOS / "physical.yaml"), "a") == pytest.approx(1514 / 1464)


def test_every_place_has_a_scenario_that_differs_in_nothing_else() -> None:
    loaded = {file.stem: load(file) for file in SCENARIOS.glob("*.yaml")}
    assert {"physical", "vtep", "bridge", "bridge-veth", "eth0"} <= set(loaded)
    for name, scenario in loaded.items():
        assert scenario.name == name
        same = {"name": "", "title": "", "shaping": None, "enforcement": "none"}
        assert scenario.model_copy(update=same) == loaded["eth0"].model_copy(update=same)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["enforcement=pod"], "enforcement: none"),
        (["underlay.rate=null"], "underlay.rate: shaping needs"),
        (["shaping.classify=source"], "shaping.classify: eth0 belongs to one pod"),
        (["shaping.at=bridge", "shaping.classify=inner-source"], "only the physical interface"),
        (["shaping.at=moon"], "shaping.at"),
    ],
)
def test_shaping_that_cannot_be_is_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        load(SCENARIOS / "eth0.yaml", overrides)


def test_bursts_are_the_papers_from_its_least_rate_up_and_as_long_below() -> None:
    assert at_interface._paper_burst(4 * 10**9) == 10 * 2**20
    assert at_interface._paper_burst(10**8) == 1_050_000


SHOWN = """class htb 1:11 parent 1:1 prio 0 rate 3Gbit ceil 3Gbit burst 1b cburst 1b
class htb 1:10 parent 1:1 prio 0 rate 1Gbit ceil 1Gbit burst 1b cburst 1b
class htb 1:1 root rate 5Gbit ceil 5Gbit burst 1b cburst 1b
class htb 1:2 parent 1:1 prio 0 rate 1Gbit ceil 5Gbit burst 1b cburst 1b
"""
HTB = '[{"kind": "htb", "root": true, "options": {"direct_packets_stat": %d}}]'


@pytest.mark.parametrize(
    ("qdiscs", "filters", "words"),
    [
        (HTB % 0, '[{"options": {"flowid": "1:10"}}, {"options": {"flowid": "1:11"}}, {}]', []),
        (HTB % 0, "", ["worker-01, flannel.1: 0 filters, not the 2 that were added"]),
        (HTB % 3, '[{"options": {"flowid": "1:10"}}, {"options": {"flowid": "1:11"}}]',
         ["worker-01, flannel.1: 3 packets passed by the classes"]),
        ('[{"kind": "noqueue", "root": true}]', '[{"options": {"flowid": "1:10"}}]',
         ["worker-01, flannel.1: no HTB, so nothing was shaped",
          "worker-01, flannel.1: 1 filters, not the 2 that were added"]),
    ],
)  # fmt: skip
def test_what_the_kernel_has_is_compared_with_what_was_set(
    qdiscs: str, filters: str, words: list[str]
) -> None:
    answers = {"qdisc": qdiscs, "filter": filters, "show": SHOWN}  # tc -j qdisc, tc -j filter, tc class show
    place = RecordingNode(answer=lambda asked: said(answers[asked.argv[2]]))
    interface = Interface(place, "worker-01", "flannel.1", tuple(PROMISES))
    shaping = Shaping(at="vtep", classify="source")
    assert list(at_interface._faults(shaping, interface, 5 * 10**9)) == words


@pytest.mark.parametrize(
    ("rate", "shown", "words"),
    [
        (10**9, "rate 1Gbit ceil 1Gbit", []),
        (10**9, "rate 500Mbit ceil 1Gbit",
         ["class 1:10 has rate 500Mbit ceil 1Gbit; expected rate 1G ceil 1G"]),
        (10**9, "rate 1Gbit ceil 2Gbit", ["class 1:10 has rate 1Gbit ceil 2Gbit; expected rate 1G ceil 1G"]),
        (954_913_388, "rate 954913Kbit ceil 954913Kbit", []),
        (8, "rate 8bit ceil 8bit", []),
    ],
)  # fmt: skip
def test_a_class_of_another_rate_is_named_with_both(rate: int, shown: str, words: list[str]) -> None:
    text = f"class htb 1:10 parent 1:1 leaf 8001: prio 0 {shown} burst 1b cburst 1b\n"
    assert list(differences([Class("1:1", 0x10, rate, rate)], text)) == words


def test_a_class_that_is_gone_is_named() -> None:
    assert list(differences([Class("1:1", 0x10, 8, 8)], "")) == ["no class 1:10"]


@pytest.mark.parametrize(
    ("at", "interfaces"),
    [
        ("physical", ["eth0"]),
        ("vtep", ["flannel.1"]),
        ("bridge", ["cni-a"]),
        ("bridge-veth", ["veth-A-1", "veth-A-2"]),
        ("eth0", ["eth0", "eth0"]),
    ],
)
def test_every_interface_of_the_kind_is_shaped_where_promised_pods_are(
    at: str, interfaces: list[str]
) -> None:
    addressing = addressed(f"places/{at}")
    up = standing(addressing)
    AtInterface(addressing).install(up)
    node = up.nodes["worker-01"]
    assert [asked.stdin.split()[3] for asked in node.asked] == interfaces
    inside = [[] if at != "eth0" else ["nsenter", f"--net=/run/netns/{pod}", "--"] for pod in ("A-1", "A-2")]
    for asked, entrance in zip(node.asked, inside, strict=False):
        assert asked.argv == [*entrance, "tc", "-batch", "-"]
    assert up.nodes["worker-02"].asked == up.nodes["master-01"].asked == []


def test_at_the_physical_interface_rates_are_higher_by_the_encapsulation() -> None:
    def rates(place: str) -> str:
        addressing = addressed(f"places/{place}", "shaping.ceiling=rate")
        up = standing(addressing)
        AtInterface(addressing).install(up)
        return up.nodes["worker-01"].asked[0].stdin

    assert "rate 4000000000bit ceil 4000000000bit" in rates("vtep")
    assert f"rate {round(10**9 * 1514 / 1464) + round(3 * 10**9 * 1514 / 1464)}bit" in rates("physical")


def test_only_at_the_physical_interface_a_tree_is_on_the_nodes_own_link() -> None:
    physical, vtep = (AtInterface(addressed(f"places/{at}")) for at in ("physical", "vtep"))
    assert physical.footprint("worker-01").trees == ("eth0",)
    assert vtep.footprint("worker-01").trees == ()


def test_counters_are_read_by_node_and_interface() -> None:
    addressing = addressed("places/bridge")
    up = standing(addressing, lambda _: said("class htb 1:1 root"))
    assert AtInterface(addressing).counters(up) == {"worker-01 cni-a": "class htb 1:1 root"}
