"""Enforcement node: admission across clusters, what the kernel is made to hold, and its repair."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.system.plugin.conftest import REFERENCE, Node, child_of
from tests.system.plugin.uplinks import chain, ledger, on_uplink

TOOLS = ("ip", "tc", "nft", "nsenter", "bridge")
PODS = ("A-1", "A-2", "B-1")
# What `ethtool -s DEVICE speed MBIT` does: ETHTOOL_GSET, then ETHTOOL_SSET. A tun takes it.
SET_SPEED = """
import array, fcntl, socket, struct, sys
command = array.array("B", bytes(44))
request = struct.pack("16sP16x", sys.argv[1].encode(), command.buffer_info()[0])
for verb in 1, 2:
    struct.pack_into("=I", command, 0, verb)
    struct.pack_into("=H", command, 12, int(sys.argv[2]))
    fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, request)
"""


@pytest.fixture
def node(node: Node) -> Node:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.run("ip", "link", "set", "eth0-peer", "up")
    node.add_pod_namespace(*PODS)
    return node


SHARED = {"c0de:1", "c0de:fffc", "c0de:fffd", "c0de:fffe"}


def classes(node: Node) -> dict[str, tuple[str, str]]:
    """Rate and ceil of every class of the uplink."""
    lines = map(str.split, node.run("tc", "class", "show", "dev", "eth0").splitlines())
    return {
        words[2]: (words[words.index("rate") + 1], words[words.index("ceil") + 1])
        for words in lines
        if words[1] == "htb"
    }


def elements(node: Node, family: str, name: str, kind: str = "set") -> list[Any]:
    shown = node.show("nft", "-j", "list", kind, family, "concorde", name)["nftables"]
    found: list[Any] = next(entry[kind] for entry in shown if kind in entry).get("elem", [])
    return found


def added(node: Node, pod: str, configuration: dict[str, Any]) -> dict[str, Any]:
    result = node.call("ADD", pod, configuration)
    assert "code" not in result, result
    return result


def test_add_makes_the_tree_and_the_map(node: Node) -> None:
    result = added(node, "A-1", on_uplink("100M", "200M"))
    # 100 Mbit/s of frames of 1464 bytes are 105.1 of the wire, where they take 1538.
    assert classes(node) == {
        "c0de:1": ("984395Kbit", "984395Kbit"),
        "c0de:10": ("105054Kbit", "210109Kbit"),
        "c0de:4010": ("1Kbit", "984395Kbit"),
        "c0de:fffc": ("859340Kbit", "984395Kbit"),
        "c0de:fffd": ("20Mbit", "984395Kbit"),
        "c0de:fffe": ("429670Kbit", "984395Kbit"),
    }
    shown = node.run("tc", "-d", "class", "show", "dev", "eth0").splitlines()
    counts = [line for line in shown if line.startswith("class htb ")]
    assert all("overhead 24 " in line and line.count("mpu 84b") == 2 for line in counts)
    who = {"concat": ["cni-a", "172.16.1.2"]}
    assert elements(node, "ip", "promises", "map") == [[who, "c0de:10"]]
    assert elements(node, "ip", "efforts", "map") == [[who, "c0de:4010"]]
    host = result["interfaces"][1]["name"]
    assert elements(node, "bridge", "frames") == [{"concat": [host, "0a:58:ac:10:01:02", "172.16.1.2"]}]
    # The ceiling holds between two pods of the node too.
    assert "ceil 200Mbit" in node.in_pod("A-1", "tc", "class", "show", "dev", "eth0")
    (root,) = node.show("tc", "-j", "qdisc", "show", "dev", "eth0", "root")
    assert root["options"]["direct_packets_stat"] == 0
    assert node.call("CHECK", "A-1", on_uplink("100M", "200M", prevResult=result)) == {}
    assert node.call("STATUS", "", on_uplink()) == {}


def test_del_takes_the_class_away_and_leaves_the_tree(node: Node) -> None:
    added(node, "A-1", on_uplink("100M"))
    for _ in range(2):
        assert node.call("DEL", "A-1", on_uplink(), netns="") == {}
    assert classes(node).keys() == SHARED
    assert classes(node)["c0de:fffe"] == ("482197Kbit", "984395Kbit")
    assert elements(node, "ip", "promises", "map") == elements(node, "bridge", "guarded") == []
    assert ledger(node)["attachments"] == []


@pytest.mark.parametrize(
    ("guarantee", "ceiling", "keys", "on_pod"),
    [("", "", {}, False), ("", "50M", {}, True), ("", "", {"bandwidth": 50_000_000}, True)],
    ids=["neither", "ceiling", "capability"],
)
@pytest.mark.long(one_in=3)
def test_without_a_guarantee_there_is_a_class_of_best_effort_alone(
    node: Node, guarantee: str, ceiling: str, keys: dict[str, int], on_pod: bool
) -> None:
    configuration = on_uplink(guarantee, ceiling)
    if keys:
        configuration["runtimeConfig"]["bandwidth"] = {"EgressRate": keys["bandwidth"]}
    result = added(node, "A-1", configuration)
    assert classes(node).keys() == SHARED | {"c0de:4010"}
    shown = node.in_pod("A-1", "tc", "class", "show", "dev", "eth0")
    assert ("rate 50Mbit" in shown) == on_pod
    assert len(elements(node, "bridge", "frames")) == 1
    assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}


@pytest.mark.parametrize(
    ("keys", "rate"),
    [
        ({"count": "payload", "frameOverhead": 0}, "108297Kbit"),
        ({"encapsulation": 0, "frameOverhead": 0}, "100Mbit"),
        ({"frameOverhead": 0}, "103415Kbit"),
        ({}, "105054Kbit"),
    ],
)
@pytest.mark.long(one_in=2)
def test_what_a_guarantee_counts(node: Node, keys: dict[str, Any], rate: str) -> None:
    added(node, "A-1", on_uplink("100M", **keys))
    assert classes(node)["c0de:10"][0] == rate


def test_two_clusters_cannot_promise_more_than_the_uplink_has(node: Node) -> None:
    added(node, "A-1", on_uplink("600M"))
    added(node, "B-1", on_uplink("300M", cluster="b"))
    before = classes(node), node.veths(), ledger(node)
    error = node.call("ADD", "A-2", on_uplink("60M"))
    assert error["code"] == 105
    for words in (
        "60 Mbit/s",
        "on eth0",
        "18.608 Mbit/s of 949.346 Mbit/s are free",
        "cluster-a",
        "cluster-b B-1",
    ):
        assert words in error["msg"]
    assert (classes(node), node.veths(), ledger(node)) == before
    assert [container for container, _ in node.leases("cluster-a")] == ["A-1"]
    node.call("DEL", "B-1", on_uplink(cluster="b"))
    added(node, "A-2", on_uplink("60M"))


def test_a_contradicting_configuration_of_another_cluster_is_refused(node: Node) -> None:
    added(node, "A-1", on_uplink("100M"))
    other = on_uplink("100M", cluster="b", capacity="2G")
    error = node.call("ADD", "B-1", other)
    assert error["code"] == 106
    assert "capacity 2000000000 here, 1000000000 there" in error["msg"]
    status = node.call("STATUS", "", other)
    assert (status["code"], status["msg"]) == (50, error["msg"])
    assert node.call("STATUS", "", on_uplink()) == {}


def test_the_only_cluster_may_change_the_capacity_as_far_as_its_promises_fit(node: Node) -> None:
    added(node, "A-1", on_uplink("100M"))
    small = on_uplink("10M", capacity="100M")
    error = node.call("ADD", "A-2", small)
    assert error["code"] == 105
    assert "promised on eth0" in error["msg"]
    assert node.call("STATUS", "", small)["code"] == 50
    added(node, "A-2", on_uplink("10M", capacity="500M"))
    assert classes(node)["c0de:1"] == ("492197Kbit", "492197Kbit")
    assert node.call("STATUS", "", on_uplink(capacity="500M")) == {}


@contextmanager
def without_tools(node: Node) -> Iterator[None]:
    """Let every program that the plugin may start fail."""
    paths = [node.run("sh", "-c", f"readlink -f $(command -v {tool})").strip() for tool in TOOLS]
    for path in paths:
        node.run("mount", "--bind", "/bin/false", path)
    yield
    for path in paths:
        node.run("umount", path)


@pytest.mark.parametrize("keys", [{}, {"enforcement": "pod"}], ids=["node", "pod"])
@pytest.mark.long(one_in=2)
def test_a_pod_comes_and_goes_without_a_program_once_the_tables_are_there(
    keys: dict[str, Any], node: Node
) -> None:
    """The kernel is told directly; that a repair had to be made instead would be slow, and not be noticed."""
    added(node, "A-1", on_uplink("100M", **keys))
    with without_tools(node):
        result = added(node, "A-2", on_uplink("50M", "60M", **keys))
    assert node.call("CHECK", "A-2", on_uplink("50M", "60M", prevResult=result, **keys)) == {}
    with without_tools(node):
        assert node.call("DEL", "A-2", on_uplink(), netns="") == {}
        assert node.call("DEL", "A-1", on_uplink(), netns="") == {}
        # Nor does a network's first pod need one where the node is as it was.
        added(node, "A-1", on_uplink("100M", **keys))
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


@pytest.mark.skipif(not (REFERENCE / "bridge").exists(), reason=f"no bridge in {REFERENCE}")
@pytest.mark.parametrize("enforcement", ["node", "pod"])
@pytest.mark.long(one_in=2)
def test_nor_does_one_behind_another_plugins_bridge(enforcement: str, node: Node) -> None:
    added(node, "B-1", on_uplink("100M", cluster="b"))
    _, previous, chained = chain(node, "bridge")
    chained = {**chained, "enforcement": enforcement}
    with without_tools(node):
        assert node.call("ADD", "A-1", chained) == previous
    assert node.call("CHECK", "A-1", chained) == {}
    with without_tools(node):
        assert node.call("DEL", "A-1", chained) == {}
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


def in_turns(node: Node) -> bool:
    """Whether flows can take turns in a queue of this kernel."""
    made = node.argv("tc", "qdisc", "add", "dev", "eth0-peer", "root", "fq_codel")
    done = subprocess.run(made, capture_output=True, text=True)
    assert done.returncode == 0 or "kind is unknown" in done.stderr, done.stderr
    return done.returncode == 0


def test_queues_are_what_this_kernel_is_able_to_make_and_asking_leaves_nothing(node: Node) -> None:
    able = in_turns(node)
    loopback = node.run("tc", "qdisc", "show", "dev", "lo")
    results = {pod: added(node, pod, on_uplink("100M")) for pod in ("A-1", "A-2")}
    shown = node.show("tc", "-j", "qdisc", "show", "dev", "eth0")
    found = {queue["parent"]: queue["kind"] for queue in shown if "parent" in queue}
    best_effort, promised = ("4010", "4011", "fffe"), ("10", "11", "fffd")
    wanted = {f"c0de:{minor}": "tbf" for minor in best_effort}
    wanted |= {f"c0de:{minor}": "fq_codel" if able else "bfifo" for minor in promised}
    if able:
        wanted |= {f"{minor}:1": "fq_codel" for minor in best_effort}
    assert found == wanted
    for pod, result in results.items():
        assert node.call("CHECK", pod, on_uplink("100M", prevResult=result)) == {}
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert node.run("tc", "qdisc", "show", "dev", "lo") == loopback


def test_offloaded_packets_may_be_taken_apart_before_the_tree(node: Node) -> None:
    fifo = "fq_codel" if in_turns(node) else "bfifo"

    def queues() -> set[str]:
        shown = node.show("tc", "-j", "qdisc", "show", "dev", "eth0")
        return {queue["kind"] for queue in shown if queue.get("parent", "").startswith("c0de:1")}

    def segments() -> int:
        (link,) = node.show("ip", "-j", "-d", "link", "show", "flannel.1")
        return int(link["gso_max_segs"])

    node.run("ip", "-batch", "-", stdin="link add flannel.1 type vxlan id 1 dev eth0 dstport 8472\n")
    whole = segments()
    added(node, "A-1", on_uplink("100M"))
    assert (queues(), segments() > 1) == ({fifo}, True)
    for pod, segment, kind in (("A-2", True, "tbf"), ("B-1", False, fifo)):
        result = added(node, pod, on_uplink("10M", segment=segment))
        assert (queues(), segments()) == ({kind}, 1)
        assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
        assert node.call("CHECK", pod, on_uplink("10M", segment=segment, prevResult=result)) == {}
        assert node.call("STATUS", "", on_uplink(segment=segment)) == {}
        if segment:
            node.run("ip", "link", "set", "flannel.1", "gso_max_segs", str(whole))
            assert "flannel.1 sends packets of" in node.call("STATUS", "", on_uplink(segment=True))["msg"]
            assert "flannel.1 sends packets of" in node.run(node.plugin, "reconcile")


@pytest.mark.parametrize(
    "anothers", ["htb default 1", "handle c0de: htb default 5", "tbf rate 1gbit burst 1m latency 1ms"]
)
@pytest.mark.long(one_in=3)
def test_a_root_qdisc_of_somebody_else_stays_unless_told(node: Node, anothers: str) -> None:
    node.run("tc", "qdisc", "add", "dev", "eth0", "root", *anothers.split())
    error = node.call("ADD", "A-1", on_uplink("100M"))
    assert error["code"] == 106
    assert "somebody else configured eth0" in error["msg"]
    assert node.call("STATUS", "", on_uplink())["code"] == 50
    assert (node.veths(), ledger(node)["attachments"]) == ({"eth0", "eth0-peer"}, [])
    assert node.call("DEL", "A-1", on_uplink("100M")) == {}
    added(node, "A-1", on_uplink("100M", takeOver=True))
    assert "c0de:10" in classes(node)


def test_a_tree_that_no_ledger_knows_is_not_taken_for_ones_own(node: Node) -> None:
    added(node, "A-1", on_uplink("100M"))
    error = node.call("ADD", "B-1", on_uplink("100M", cluster="b", stateDir="/run/other"))
    assert error["code"] == 106
    assert "is not in this ledger" in error["msg"]
    assert "c0de:10" in classes(node)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"uplink": ""}, "uplink"),
        ({"uplink": "eth9"}, "uplink"),
        ({"uplink": "a b"}, "uplink"),
        ({"uplink": "lo", "capacity": ""}, "capacity"),
        ({"capacity": "lots"}, "capacity"),
        ({"reserve": 0.6}, "reserve"),
        ({"reserve": "2%"}, "reserve"),
        ({"takeOver": 1}, "takeOver"),
        ({"controlPorts": [0]}, "controlPorts"),
        ({"controlPorts": 22}, "controlPorts"),
        ({"encapsulation": -1}, "encapsulation"),
        ({"frameOverhead": "24"}, "frameOverhead"),
        ({"segment": 1}, "segment"),
    ],
)
@pytest.mark.long(one_in=4)
def test_a_bad_key_is_named_and_nothing_is_made(node: Node, keys: dict[str, Any], path: str) -> None:
    error = node.call("ADD", "A-1", on_uplink("100M", **keys))
    assert (error["code"], error["msg"].partition(":")[0]) == (7, path)
    assert node.veths() == {"eth0", "eth0-peer"}


def test_uplink_and_capacity_are_the_default_routes_and_the_drivers(node: Node) -> None:
    node.run("ip", "tuntap", "add", "tap0", "mode", "tap")
    node.run("ip", "link", "set", "tap0", "up")
    node.run("ip", "addr", "add", "192.168.9.1/24", "dev", "tap0")
    node.run("ip", "route", "add", "default", "via", "192.168.9.2")
    refused = node.call("ADD", "A-1", on_uplink("100M", uplink=None, capacity=None))
    assert refused["msg"] == "capacity: missing, and the kernel does not report the speed of tap0"
    node.run("/usr/bin/python3", "-c", SET_SPEED, "tap0", "2500")
    added(node, "A-1", on_uplink("100M", uplink=None, capacity=None))
    (tree,) = ledger(node)["trees"]
    assert (tree["uplink"], tree["capacity"]) == ("tap0", 2_500_000_000)


# As the version before made it.
UNCOUNTED = "tc class change dev eth0 classid c0de:10 htb rate 105054kbit ceil 984395kbit quantum 65536"
TAMPERING = {
    UNCOUNTED: "overhead 0, mpu 0b",
    "tc qdisc delete dev eth0 root": "eth0 has no root qdisc htb c0de:",
    "tc class delete dev eth0 classid c0de:10": "class c0de:10 of cluster-a A-1 of eth0 is missing",
    "tc class delete dev eth0 classid c0de:fffe": "class c0de:fffe (default) of eth0 is missing",
    "tc class delete dev eth0 classid c0de:4010": "class c0de:4010 of cluster-a A-1 of eth0 is missing",
    "tc qdisc delete dev eth0 parent c0de:4010": "class c0de:4010 of cluster-a A-1 of eth0 lacks its queue",
    "tc class change dev eth0 classid c0de:10 htb rate 7mbit ceil 1gbit quantum 65536": "has rate 7Mbit",
    "tc class change dev eth0 classid c0de:fffe htb rate 7mbit ceil 1gbit quantum 65536": "has rate 7Mbit",
    "tc class add dev eth0 parent c0de:1 classid c0de:77 htb rate 7mbit quantum 65536": "belongs to nobody",
    "tc qdisc delete dev eth0 parent c0de:10": "class c0de:10 of cluster-a A-1 of eth0 lacks its queue",
    "tc filter delete dev eth0 parent c0de:": "eth0 has no filter for ARP",
    "ip ntable change name arp_cache dev eth0 queue 101": "eth0 keeps 101 packets for each neighbour",
    "ip ntable change name ndisc_cache dev eth0 queue 101": "that has not answered (ndisc_cache)",
    "nft flush ruleset": "ip concorde postrouting is missing",
    "nft delete table ip6 concorde": "ip6 concorde postrouting is missing",
    "nft flush chain ip concorde postrouting": "ip concorde postrouting is not as made",
    "nft flush chain bridge concorde prerouting": "bridge concorde prerouting is not as made",
    "nft delete element ip concorde promises { cni-a . 172.16.1.2 }": " : c0de:10 } of cluster-a A-1",
    "nft delete element ip concorde ways { cni-a . 172.16.1.2 }": "ip concorde ways",
    "nft delete element bridge concorde addresses { 172.16.1.2 }": "bridge concorde addresses",
    "nft add element ip concorde promises { cni-a . 172.16.1.9 : c0de:10 }": "belongs to nobody",
}


@pytest.mark.long(one_in=14)
@pytest.mark.parametrize(("tampering", "message"), TAMPERING.items())
def test_one_difference_is_noticed_and_repaired_alone(node: Node, tampering: str, message: str) -> None:
    results = {}
    for pod, configuration in (("A-1", on_uplink("100M")), ("B-1", on_uplink("200M", cluster="b"))):
        results[pod] = added(node, pod, configuration)
    before = classes(node), elements(node, "ip", "promises", "map")
    checked = on_uplink("100M", prevResult=results["A-1"])
    node.run(*tampering.split())
    check = node.call("CHECK", "A-1", checked)
    assert check["code"] == 104
    status = node.call("STATUS", "", on_uplink())
    assert status["code"] == 50
    assert message in status["details"]
    repaired = node.run(node.plugin, "reconcile")
    assert message in repaired
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert (classes(node), elements(node, "ip", "promises", "map")) == before
    assert node.call("CHECK", "A-1", checked) == node.call("STATUS", "", on_uplink()) == {}


@pytest.mark.parametrize("flush", ["tc qdisc delete dev eth0 root", "nft flush ruleset"])
def test_the_next_add_repairs_what_was_flushed(node: Node, flush: str) -> None:
    added(node, "A-1", on_uplink("100M"))
    node.run(*flush.split())
    added(node, "B-1", on_uplink("200M", cluster="b"))
    assert classes(node).keys() >= {"c0de:10", "c0de:11"}
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


@pytest.mark.long(one_in=14)
@pytest.mark.parametrize("flush", [*TAMPERING, "ip link delete dev eth0"])
def test_del_succeeds_whatever_is_gone(node: Node, flush: str) -> None:
    added(node, "A-1", on_uplink("100M"))
    node.run(*flush.split())
    assert node.call("DEL", "A-1", on_uplink()) == {}
    assert ledger(node)["attachments"] == []
    assert node.leases("cluster-a") == []


def test_gc_of_one_cluster_leaves_the_others_classes_alone(node: Node) -> None:
    added(node, "A-1", on_uplink("100M"))
    result = added(node, "B-1", on_uplink("200M", cluster="b"))
    assert node.call("GC", "", {**on_uplink(), "cni.dev/valid-attachments": []}) == {}
    assert classes(node).keys() == SHARED | {"c0de:11", "c0de:4011"}
    assert node.call("CHECK", "B-1", on_uplink("200M", cluster="b", prevResult=result)) == {}


def test_gc_drops_entries_whose_leases_were_removed(node: Node) -> None:
    added(node, "A-1", on_uplink("100M"))
    node.run("rm", "-r", "/run/concorde/cluster-a")
    assert node.call("GC", "", {**on_uplink(), "cni.dev/valid-attachments": []}) == {}
    assert ledger(node)["attachments"] == []
    assert "c0de:10" not in classes(node)


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["ledger", "--jsn"],
        ["reconcile", "--json"],
        ["ledger", "--state-dir"],
        ["ledger", "--state-dir", "x"],
    ],
)
def test_a_command_line_that_says_nothing_is_refused(node: Node, arguments: list[str]) -> None:
    status = node.run("sh", "-c", '"$@" > /run/out 2> /run/err; echo $?', "sh", node.plugin, *arguments)
    assert status == "2\n"
    assert node.run("cat", "/run/out") == ""
    assert "usage: concorde" in node.run("cat", "/run/err")


def test_the_ledger_as_a_table(node: Node) -> None:
    assert "empty" in node.run(node.plugin, "ledger")
    added(node, "A-1", on_uplink("100M"))
    table = node.run(node.plugin, "ledger", "--state-dir", "/run/concorde")
    assert "free      845.93 Mbit/s" in table
    assert table.splitlines()[-1].split()[:3] == ["c0de:10", "cluster-a", "A-1"]


@pytest.mark.skipif(
    not all((REFERENCE / name).exists() for name in ("ptp", "bridge", "host-local")),
    reason=f"the reference plugins are not in {REFERENCE}",
)
@pytest.mark.parametrize("kind", ["ptp", "bridge"])
def test_in_a_chain_the_class_is_given_to_the_other_plugins_interface(node: Node, kind: str) -> None:
    _, previous, chained = chain(node, kind)
    assert node.call("ADD", "A-1", chained) == previous
    way = previous["interfaces"][0]["name"]
    address = previous["ips"][0]["address"].partition("/")[0]
    assert elements(node, "ip", "ways") == [{"concat": [way, address]}]
    assert len(elements(node, "bridge", "guarded")) == (kind == "bridge")
    assert node.call("CHECK", "A-1", chained) == {}
    assert node.call("DEL", "A-1", chained) == {}
    assert elements(node, "ip", "ways") == elements(node, "bridge", "guarded") == []
    assert json.loads(node.in_pod("A-1", "tc", "-j", "qdisc", "show", "dev", "eth0"))[0]["kind"] == "noqueue"


def test_the_next_add_waits_for_what_a_killed_one_left_running(node: Node) -> None:
    """The plugin is gone, its `nft` has yet to make the tables: another cluster must not come between."""
    added(node, "A-1", on_uplink("100M"))
    killed = node.start("ADD", "A-2", on_uplink("200M"), path=node.slow_nft())
    node.run("cat", "/run/reached")
    os.kill(child_of(killed.pid), signal.SIGKILL)
    killed.communicate()
    other = node.start("ADD", "B-1", on_uplink("300M", cluster="b"))
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.5)  # alone it takes 0.03 s
    assert "c0de:12" not in classes(node)
    node.run("sh", "-c", "echo > /run/go")
    assert "code" not in json.loads(other.communicate()[0])
    # What the killed one had yet to do itself, at least to close its port, is its pod's alone.
    repaired = node.run(node.plugin, "reconcile").splitlines()
    assert repaired
    assert all(" of cluster-a A-2 " in line for line in repaired), repaired
    assert classes(node).keys() >= {"c0de:10", "c0de:11", "c0de:12"}
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert node.call("DEL", "A-2", on_uplink()) == {}
    assert "c0de:11" not in classes(node)


@pytest.mark.long(one_in=0)
def test_reconcile_builds_all_at_once_for_a_full_node(node: Node) -> None:
    """More lines than a pipe holds; the entries are written into the ledger directly."""
    added(node, "A-1", on_uplink("1M"))
    code = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).executemany("
        "sys.argv[2], eval(sys.argv[3]))"
    )
    attachments = (
        "INSERT INTO attachment (network, container, interface, pod, enforcement, address, host_interface,"
        " port, mac, others, link, host_mac, inside, number, namespace)"
        " VALUES ('cluster-b', ?, 'eth0', '', 'node', ?, 'cni-b', ?, ?, '', 0, '', 0, -1, '')",
        "[(f'B-{n}', 0xAC110000 + n, f'vethb{n}', f'0a:58:ac:11:{n >> 8:02x}:{n & 255:02x}')"
        " for n in range(500)]",
    )
    promises = (
        "INSERT INTO promise (network, container, interface, direction, peer, guarantee, uplink, rate, ceil,"
        " minor) VALUES ('cluster-b', ?, 'eth0', 'egress', '', 1000000, 'eth0', 1034153, 1000000000, ?)",
        "[(f'B-{n}', 0x100 + n) for n in range(500)]",
    )
    for table in (attachments, promises):
        node.run("/usr/bin/python3", "-c", code, "/run/concorde/node/ledger.sqlite", *table)
    assert len(node.run(node.plugin, "reconcile").splitlines()) > 500
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert len(classes(node)) == 1006
    node.run("tc", "qdisc", "delete", "dev", "eth0", "root")
    node.run("nft", "flush", "ruleset")
    assert node.run(node.plugin, "reconcile").startswith("repaired: eth0 has no root qdisc")
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
