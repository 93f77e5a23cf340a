from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest

from tests.system.plugin.conftest import Document, Node, child_of, network, promising

NONE_VALID: dict[str, Any] = {"cni.dev/valid-attachments": []}


def test_add_makes_what_the_papers_figures_show(node: Node) -> None:
    node.add_pod_namespace("A-1")
    result = node.call("ADD", "A-1", promising("1500M"))
    assert result["ips"] == [{"address": "172.16.1.2/24", "gateway": "172.16.1.1", "interface": 2}]

    bridge, host, pod = (interface["name"] for interface in result["interfaces"])
    (shown,) = node.show("ip", "-j", "addr", "show", "dev", bridge)
    assert [(a["local"], a["prefixlen"]) for a in shown["addr_info"]] == [("172.16.1.1", 24)]
    (shown,) = node.show("ip", "-j", "link", "show", "dev", host)
    assert (shown["master"], shown["operstate"], shown["mtu"]) == ("cni-a", "UP", 1450)
    assert shown["address"] == result["interfaces"][1]["mac"]
    (shown,) = node.show("ip", "-j", "addr", "show", "dev", pod, pod="A-1")
    assert [(a["local"], a["prefixlen"]) for a in shown["addr_info"]] == [("172.16.1.2", 24)]
    assert (shown["address"], shown["mtu"]) == (result["interfaces"][2]["mac"], 1450)
    (route,) = node.show("ip", "-j", "route", "show", "default", pod="A-1")
    assert (route["gateway"], route["dev"]) == ("172.16.1.1", "eth0")
    assert node.run("cat", "/proc/sys/net/ipv4/ip_forward") == "1\n"

    (qdisc,) = node.show("tc", "-j", "-s", "qdisc", "show", "dev", "eth0", "root", pod="A-1")
    assert (qdisc["kind"], qdisc["handle"], qdisc["options"]["default"]) == ("htb", "1:", "0x1")
    assert qdisc["options"]["direct_packets_stat"] == 0
    words = node.in_pod("A-1", "tc", "class", "show", "dev", "eth0").split()
    assert words[:3] == ["class", "htb", "1:1"]
    assert dict(zip(words[6::2], words[7::2], strict=True)) == {
        "rate": "1500Mbit",
        "ceil": "1500Mbit",
        "burst": "10Mb",
        "cburst": "10Mb",
    }


@pytest.mark.parametrize(("promise", "largest"), [("20M", 5000), ("1G", 65536)])
def test_a_slow_pod_s_packets_are_small_enough_to_flow_evenly(node: Node, promise: str, largest: int) -> None:
    node.add_pod_namespace("A-1")
    node.call("ADD", "A-1", promising(promise))
    (shown,) = node.show("ip", "-d", "-j", "link", "show", "dev", "eth0", pod="A-1")
    assert shown["gso_max_size"] == largest


def test_pods_get_addresses_one_after_the_other(node: Node) -> None:
    node.add_pod_namespace("A-1", "A-2")
    addresses = [node.call("ADD", pod, promising("1G"))["ips"][0]["address"] for pod in ("A-1", "A-2")]
    assert addresses == ["172.16.1.2/24", "172.16.1.3/24"]


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])
@pytest.mark.long(one_in=3)
def test_add_and_del_speak_every_version(node: Node, version: str) -> None:
    node.add_pod_namespace("A-1")
    configuration = promising("1G", cniVersion=version)
    assert node.call("ADD", "A-1", configuration)["cniVersion"] == version
    assert node.call("DEL", "A-1", configuration) == {}


@pytest.mark.parametrize(
    ("keys", "annotations", "rate"),
    [
        ({"count": "payload"}, {"guarantee": "1398M"}, "1464Mbit"),
        ({}, {"ceiling": "2G"}, "2Gbit"),
        ({}, {"guarantee": "1G", "ceiling": "2G"}, "1Gbit"),
        ({"defaultGuarantee": "300M"}, {}, "300Mbit"),
    ],
)
@pytest.mark.long(one_in=3)
def test_the_class_has_the_promised_rate(
    node: Node, keys: dict[str, Any], annotations: dict[str, Any], rate: str
) -> None:
    node.add_pod_namespace("A-1")
    result = node.call("ADD", "A-1", promising(**annotations, **keys))
    words = node.in_pod("A-1", "tc", "class", "show", "dev", "eth0").split()
    assert words[words.index("rate") + 1] == words[words.index("ceil") + 1] == rate
    assert node.call("CHECK", "A-1", promising(**annotations, **keys, prevResult=result)) == {}


@pytest.mark.parametrize(
    ("keys", "annotations"),
    [({}, {}), ({"enforcement": "none"}, {"guarantee": "1G"})],
    ids=["no promise", "none"],
)
def test_without_promise_or_enforcement_nothing_is_shaped(
    node: Node, keys: dict[str, Any], annotations: dict[str, Any]
) -> None:
    node.add_pod_namespace("A-1")
    result = node.call("ADD", "A-1", promising(**annotations, **keys))
    (qdisc,) = node.show("tc", "-j", "qdisc", "show", "dev", "eth0", pod="A-1")
    assert qdisc["kind"] == "noqueue"
    assert node.call("CHECK", "A-1", promising(**annotations, **keys, prevResult=result)) == {}


def test_del_takes_everything_away_any_number_of_times(node: Node) -> None:
    node.add_pod_namespace("A-1")
    result = node.call("ADD", "A-1", promising("1G"))
    assert node.call("DEL", "A-1", promising("1G", prevResult=result)) == {}
    assert node.veths() == set()
    assert node.leases("cluster-a") == []
    assert [link["ifname"] for link in node.show("ip", "-j", "link", pod="A-1")] == ["lo"]
    assert node.call("DEL", "A-1", promising("1G", prevResult=result)) == {}
    assert node.call("DEL", "A-1", network(), netns="") == {}


def test_del_needs_neither_namespace_nor_previous_result(node: Node) -> None:
    node.add_pod_namespace("A-1", "A-2")
    node.call("ADD", "A-1", promising("1G"))
    node.call("ADD", "A-2", promising("1G"))
    assert node.call("DEL", "A-1", network(), netns="") == {}
    node.run("ip", "netns", "delete", "A-2")
    assert node.call("DEL", "A-2", network()) == {}
    assert node.veths() == set()
    assert node.leases("cluster-a") == []


def test_five_dels_at_once_all_succeed(node: Node) -> None:
    node.add_pod_namespace("A-1")
    node.call("ADD", "A-1", promising("1G"))
    calls = [node.start("DEL", "A-1", network(), netns="") for _ in range(5)]
    assert [(*call.communicate(), call.returncode) for call in calls] == [(b"", b"", 0)] * 5
    assert node.veths() == set()
    assert node.leases("cluster-a") == []


def test_a_second_add_is_refused_and_harms_nothing(node: Node) -> None:
    node.add_pod_namespace("A-1")
    result = node.call("ADD", "A-1", promising("1G"))
    assert node.call("ADD", "A-1", promising("1G"))["code"] == 103
    assert node.call("CHECK", "A-1", promising("1G", prevResult=result)) == {}


@pytest.mark.parametrize(
    ("obstacle", "words"),
    [
        (["ip", "link", "add", "name", "eth0", "type", "veth"], "File exists"),
        (["ip", "rule", "add", "to", "172.16.1.1", "unreachable"], "invalid gateway"),
    ],
    ids=["interface exists", "gateway is unreachable"],
)
def test_a_failed_add_leaves_nothing_behind(node: Node, obstacle: list[str], words: str) -> None:
    node.add_pod_namespace("A-1")
    node.in_pod("A-1", "ip", "link", "set", "lo", "up")
    node.in_pod("A-1", *obstacle)
    error = node.call("ADD", "A-1", promising("1G"))
    assert error["code"] == 101
    assert words in error["msg"]
    assert node.veths() == set()
    assert node.leases("cluster-a") == []
    assert node.call("DEL", "A-1", promising("1G")) == {}


def test_a_file_that_is_no_namespace_is_an_error(node: Node) -> None:
    node.run("touch", "/run/netns/A-1")
    assert node.call("ADD", "A-1", promising("1G"))["code"] == 4


def test_del_waits_for_what_a_killed_add_left_running(node: Node) -> None:
    """The worst moment for a kill: the plugin is gone, its `nft` has yet to make the guard."""
    node.add_pod_namespace("A-1", "A-2")
    node.call("ADD", "A-1", promising("1G"))
    add = node.start("ADD", "A-2", promising("1G"), path=node.slow_nft())
    node.run("cat", "/run/reached")
    os.kill(child_of(add.pid), signal.SIGKILL)
    add.communicate()
    assert len(node.veths()) == 2
    delete = node.start("DEL", "A-2", network(), netns="")
    with pytest.raises(subprocess.TimeoutExpired):
        delete.wait(0.5)  # alone it takes 0.03 s
    node.run("sh", "-c", "echo > /run/go")
    assert delete.communicate() == (b"", b"")
    assert len(node.veths()) == 1
    assert [container for container, _ in node.leases("cluster-a")] == ["A-1"]
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


def test_gc_drops_what_the_runtime_no_longer_knows(node: Node) -> None:
    node.add_pod_namespace("A-1", "A-2")
    for pod in ("A-1", "A-2"):
        node.call("ADD", pod, promising("1G"))
    valid: dict[str, Any] = {"cni.dev/valid-attachments": [{"containerID": "A-2", "ifname": "eth0"}]}
    assert node.call("GC", "", network(**valid)) == {}
    assert [container for container, _ in node.leases("cluster-a")] == ["A-2"]
    assert len(node.veths()) == 1
    assert [link["ifname"] for link in node.show("ip", "-j", "link", pod="A-2")] == ["lo", "eth0"]


ATTACHED: list[Any] = [{"containerID": "A-1", "ifname": "eth0"}]


@pytest.mark.parametrize(
    ("keys", "left"),
    [
        ({"cni.dev/valid-attachments": None}, []),  # Go writes so of no pods
        ({"cni.dev/attachments": ATTACHED}, ["A-1"]),  # of the specification's first text
        ({"cni.dev/attachments": ATTACHED, "cni.dev/valid-attachments": ATTACHED}, ["A-1"]),
        ({"cni.dev/attachments": None, "cni.dev/valid-attachments": None}, []),
        ({"cni.dev/attachments": ATTACHED, "cni.dev/valid-attachments": None}, ["A-1"]),
    ],
)
@pytest.mark.long(one_in=3)
def test_gc_takes_its_list_as_runtimes_send_it(node: Node, keys: Document, left: list[str]) -> None:
    """containernetworking/cni#1101, #1103."""
    node.add_pod_namespace("A-1", "A-2")
    for pod in ("A-1", "A-2"):
        assert "code" not in node.call("ADD", pod, promising("1G"))
    assert node.call("GC", "", network(**keys)) == {}
    assert [container for container, _ in node.leases("cluster-a")] == left
    assert len(node.veths()) == len(left)


def test_gc_of_one_network_leaves_the_others_alone(node: Node) -> None:
    node.add_pod_namespace("A-1", "B-1")
    other = promising("1G", name="cluster-b", third=17)
    node.call("ADD", "A-1", promising("1G"))
    result = node.call("ADD", "B-1", other)
    assert node.call("GC", "", network(**NONE_VALID)) == {}
    assert node.leases("cluster-a") == []
    assert node.call("CHECK", "B-1", {**other, "prevResult": result}) == {}


def test_gc_finds_links_whose_store_was_removed(node: Node) -> None:
    node.add_pod_namespace("A-1")
    node.call("ADD", "A-1", promising("1G"))
    node.run("rm", "-r", "/run/concorde")
    node.run(
        "ip", "link", "add", "name", "other0", "master", "cni-a", "type", "veth", "peer", "name", "other1"
    )
    assert node.call("GC", "", network(**NONE_VALID)) == {}
    assert node.veths() == {"other0", "other1"}


def test_status_tells_of_a_full_subnet(node: Node) -> None:
    small = promising("1G", subnet="172.16.1.0/30")
    node.add_pod_namespace("A-1", "A-2")
    assert node.call("STATUS", "", small) == {}
    assert "code" not in node.call("ADD", "A-1", small)
    assert node.call("STATUS", "", small)["code"] == 50
    assert node.call("ADD", "A-2", small)["code"] == 102
    assert len(node.veths()) == 1
