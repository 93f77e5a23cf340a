"""What will be made on a machine, and what is in the way."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

from testbed.providers.ssh import plan
from testbed.providers.ssh.ledger import Directory, Mount, Routes, Setting, Tree, remove
from testbed.providers.ssh.plan import Interface, MachineState
from tests.doubles import RecordingNode
from tests.unit.testbed.builders import addressed
from tests.unit.testbed.providers.ssh.builders import EMPTY, UPLINK


def test_everything_of_a_worker_is_in_the_plan() -> None:
    addressing = addressed("contmec")
    made = [str(thing) for thing in plan.everything(addressing, "worker-01", EMPTY, "/d")]
    for expected in (
        "/run/netns", "mount /run/netns", "/proc/sys/net/ipv4/ip_forward = 1 (was 0)", "interface flannel.1",
        "interface flannel.2", "/run/flannel/subnet-a.env", "interface docker0", "interface vethc0",
        "network namespace container-1", "nftables table ip containers", "interface cni-a", "interface cni-b",
        "network namespace A-1", "attachment of contmec-B-1", "/run/concorde",
    ):  # fmt: skip
        assert expected in made
    assert not any("container-2" in one or "A-3" in one for one in made)  # they are on worker-02
    assert [str(t) for t in plan.everything(addressing, "master-01", EMPTY, "/d")][-2:] == [
        "interface flannel.1",
        "/run/flannel/subnet-a.env",
    ]


def test_what_serves_services_is_in_the_plan_of_every_member_of_their_cluster() -> None:
    addressing = addressed("contmec", "services={web: {cluster: a, pods: [A-4]}}")
    for node, there in (("worker-01", True), ("master-01", True), ("master-02", False)):
        made = [str(thing) for thing in plan.everything(addressing, node, EMPTY, "/d")]
        assert ("nftables table ip services-a" in made) is ("/run/services" in made) is there
        assert "nftables table ip services-b" not in made
    assert {"/run/services", "/run/names"} <= set(plan.paths(addressing, "worker-01"))


def test_routes_that_no_device_takes_along_are_in_the_plan() -> None:
    addressing = addressed("contmec", "clusters.a.backend=host-gw")
    made = [str(thing) for thing in plan.everything(addressing, "worker-01", EMPTY, "/d")]
    assert "routes into 172.16.0.0/16 by eth0" in made
    assert not any("172.17" in one for one in made)  # flannel.2 takes them along
    assert "interface flannel.1" not in made


def test_routes_are_taken_away_by_what_they_lead_into() -> None:
    node = RecordingNode()
    remove(node, Routes(network="172.16.0.0/16", interface="ens5"))
    assert node.commands == [["ip", "route", "flush", "root", "172.16.0.0/16", "dev", "ens5"]]


def test_routes_need_nodes_that_are_neighbours() -> None:
    addressing = addressed("contmec", "clusters.a.backend=host-gw")
    wide = replace(UPLINK, networks=(IPv4Network("192.168.56.0/24"),))
    narrow = replace(UPLINK, networks=(IPv4Network("192.168.56.12/31"),))
    assert list(plan.strangers(addressing, "worker-01", wide)) == []
    assert list(plan.strangers(addressing, "worker-01", narrow)) == [
        f"clusters.a.backend: host-gw needs nodes on one layer 2, and {node} at {address} is not a "
        "neighbour on ens5; vxlan does not"
        for node, address in (("master-01", "192.168.56.11"), ("worker-02", "192.168.56.14"))
    ]
    assert list(plan.strangers(addressed("contmec"), "worker-01", narrow)) == []


def test_the_uplink_is_in_the_plan_only_if_it_is_shaped() -> None:
    own = ["master-01", "master-02", "worker-01", "worker-02"]
    machines = [f"nodes.{n}={{address: 192.168.56.{i}, uplink: ens5}}" for i, n in enumerate(own, 20)]
    shaped = addressed("contmec", *machines, "enforcement=node", "underlay.rate=9G")
    plain = addressed("contmec", *machines)
    assert Tree(interface="ens5") in plan.everything(shaped, "worker-01", EMPTY, "/d")
    assert Tree(interface="ens5") not in plan.everything(plain, "worker-01", EMPTY, "/d")


def test_what_was_there_is_not_taken_away() -> None:
    there = frozenset({"/run/netns", "/run/flannel"})
    seen = MachineState((UPLINK,), (), frozenset(), True, frozenset(), {}, there, "1")
    made = plan.everything(addressed("contmec"), "worker-01", seen, "/d")
    assert not any(isinstance(thing, (Directory, Mount, Setting)) for thing in made)


def test_obstacles_are_named() -> None:
    vxlan = Interface("vx", 1450, (), vxlan=(1, 8472))
    seen = MachineState(
        (UPLINK, Interface("cni-a", 1450, ()), vxlan), (IPv4Network("172.16.0.0/24"),), frozenset({"A-1"}),
        True, frozenset({("ip", "containers")}), {"eth0": "1:"}, frozenset({"/run/concorde"}), "1",
    )  # fmt: skip
    addressing = addressed("contmec", "enforcement=node", "underlay.rate=9G")
    assert list(plan.obstacles(addressing, "worker-01", EMPTY)) == []
    assert list(plan.obstacles(addressing, "worker-01", seen)) == [
        "there is an nftables table ip containers already",
        "there is /run/concorde already",
        "there is an interface cni-a already",
        "somebody shapes eth0: its root qdisc is 1:",
        "there is a network namespace A-1 already",
        "interface vx is VXLAN 1 at port 8472 already",
        "there is a route to 172.16.0.0/24 already, within 172.16.0.0/16",
    ]


def test_a_link_that_cannot_do_what_is_stated() -> None:
    scenario = addressed("contmec", "underlay.rate=9G").scenario
    slow = Interface("ens5", 1400, ())
    assert [words.partition(",")[0] for words in plan.unfit(scenario, slow, 10**9)] == [
        "ens5 has an MTU of 1400",
        "ens5 says it does 1G",
    ]
    assert list(plan.unfit(scenario, UPLINK, 10**10)) == list(plan.unfit(scenario, UPLINK, None)) == []
