"""A scenario brought up for real, looked at through the kernel's own state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from testbed.access.place import Node, Place
from testbed.assembly import assemble
from testbed.overlays.backends.vxlan import Overlay
from testbed.runtime.cni import CniError
from testbed.scenario import Scenario, load
from testbed.testbed import Testbed
from tests.paths import ROOT
from tests.waiting import PATIENCE

SCENARIOS = ROOT / "scenarios"
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def contmec() -> Iterator[Testbed]:
    testbed = assemble(load(SCENARIOS / "contmec.yaml", scale=0.1), "netns", "cni")
    testbed.up()
    yield testbed
    testbed.down()


def crossed(source: Place, destination: Place, address: str, port: int = 5301) -> int:
    """Send a mebibyte by TCP and return how many bytes arrived."""
    with ThreadPoolExecutor() as pool:
        receive = "import socket,sys; s=socket.create_server(('', int(sys.argv[1]))); s.settimeout(60)\n"
        receive += "c=s.accept()[0]; n=0\nwhile d:=c.recv(65536): n+=len(d)\nprint(n)"
        received = pool.submit(destination.run, ["python3", "-c", receive, str(port)], timeout=PATIENCE)
        send = "import socket,sys,time\nend=time.time()+60\n"
        send += "while True:\n try: c=socket.create_connection((sys.argv[1],int(sys.argv[2])),60); break\n"
        send += " except ConnectionRefusedError:\n  if time.time()>end: raise\n"
        send += "c.sendall(bytes(2**20)); c.close()"
        source.run(["python3", "-c", send, address, str(port)], timeout=PATIENCE)
        return int(received.result().stdout)


def routes(node: Node) -> dict[str, tuple[str, str | None]]:
    return {r["dst"]: (r["dev"], r.get("gateway")) for r in node.run(["ip", "-j", "route"]).json()}


def test_the_workers_route_as_in_the_papers_figure_6(contmec: Testbed) -> None:
    found = routes(contmec.nodes["worker-01"])
    assert found["172.16.2.0/24"] == ("flannel.1", "172.16.2.0")
    assert found["172.17.2.0/24"] == ("flannel.2", "172.17.2.0")
    assert found["172.16.1.0/24"] == ("cni-a", None)
    assert found["172.17.1.0/24"] == ("cni-b", None)


def test_each_cluster_has_a_vtep_of_its_own_on_an_overlapped_worker(contmec: Testbed) -> None:
    links = contmec.nodes["worker-02"].run(["ip", "-d", "-j", "link", "show", "type", "vxlan"]).json()
    assert {link["ifname"]: link["linkinfo"]["info_data"]["id"] for link in links} == {
        "flannel.1": 1,
        "flannel.2": 2,
    }
    assert {link["mtu"] for link in links} == {1450}


def test_forwarding_entries_lead_to_the_other_nodes(contmec: Testbed) -> None:
    entries = contmec.nodes["worker-01"].run(["bridge", "-j", "fdb", "show", "dev", "flannel.1"]).json()
    behind = {entry["mac"]: entry["dst"] for entry in entries if "dst" in entry}
    overlay = Overlay(contmec.addressing, "a")
    assert behind == {
        overlay.mac(node): str(contmec.addressing.address(node)) for node in ("master-01", "worker-02")
    }


def test_pods_get_the_papers_addresses_and_their_cluster_s_bridge(contmec: Testbed) -> None:
    assert contmec.pods["A-1"].address == "172.16.1.2"
    assert contmec.pods["B-1"].address == "172.17.1.2"
    ports = contmec.nodes["worker-01"].run(["ip", "-j", "link", "show", "master", "cni-a"]).json()
    assert {port["ifname"] for port in ports} == {contmec.pods[p].host_interface for p in ("A-1", "A-2")}


def test_a_promise_becomes_a_class_on_eth0_and_its_absence_none(contmec: Testbed) -> None:
    shaped = contmec.pods["A-1"].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).json()
    assert [(q["kind"], q["options"]["default"]) for q in shaped] == [("htb", "0x1")]
    classes = contmec.pods["A-1"].run(["tc", "class", "show", "dev", "eth0"]).stdout
    assert "rate 100Mbit ceil 100Mbit" in classes
    unshaped = contmec.pods["A-4"].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).json()
    assert all(qdisc["kind"] != "htb" for qdisc in unshaped)


@pytest.mark.parametrize("index", range(4), ids=["A-1", "A-2", "B-1", "containers"])
@pytest.mark.long(one_in=2)
def test_bytes_cross_between_the_ends_of_every_transfer(contmec: Testbed, index: int) -> None:
    traffic = contmec.scenario.traffic[index]
    source, destination = contmec.place(traffic.source), contmec.place(traffic.destination)
    port = contmec.addressing.port_of(traffic)
    assert crossed(source, destination, contmec.address_for(traffic), port) == MEBIBYTE


def test_a_container_is_masqueraded_behind_its_node(contmec: Testbed) -> None:
    listing = contmec.nodes["worker-01"].run(["nft", "-j", "list", "table", "ip", "containers"]).json()
    rules = [item["rule"]["expr"] for item in listing["nftables"] if "rule" in item]
    assert any("masquerade" in expression for rule in rules for expression in rule)
    # Published: reached at the node's address, not at its own, which every node uses again.
    assert contmec.address_for(contmec.scenario.disturbances[0]) == "192.168.56.14"


def test_two_clusters_do_not_reach_each_other_s_addresses_by_the_overlay(contmec: Testbed) -> None:
    master_of_a = contmec.nodes["master-01"]
    assert not any(destination.startswith("172.17.") for destination in routes(master_of_a))


def test_check_finds_what_was_changed_by_hand(contmec: Testbed) -> None:
    assert contmec.check() == []
    pod = contmec.pods["A-2"]
    saved = pod.run(["tc", "class", "show", "dev", "eth0"]).stdout
    assert "300Mbit" in saved
    change = ["tc", "class", "change", "dev", "eth0", "parent", "1:", "classid", "1:1", "htb"]
    try:
        pod.run([*change, "rate", "200mbit", "ceil", "200mbit", "burst", "10Mb", "cburst", "10Mb"])
        faults = contmec.check()
    finally:
        restore = ["rate", "300mbit", "ceil", "300mbit", "burst", "10Mb", "cburst", "10Mb"]
        pod.run([*change, *restore])
    assert len(faults) == 1
    assert faults[0].startswith("pod A-2: ")


def test_a_refused_pod_takes_the_whole_testbed_down_with_the_reason() -> None:
    scenario = load(SCENARIOS / "kubernetes.yaml")
    pods = {**scenario.pods, "X": scenario.pods["A-1"].model_copy(update={"guarantee": 10**15})}
    testbed = assemble(scenario.model_copy(update={"pods": pods}), "netns", "cni")
    with pytest.raises(CniError, match=r"pod X on worker-01: .*plugin type=\"concorde\" failed \(add\)"):
        testbed.up()
    assert testbed.provider.nodes  # they were there
    with pytest.raises(RuntimeError):
        next(iter(testbed.provider.nodes.values())).run(["true"])


def test_a_part_that_does_not_exist() -> None:
    scenario = load(SCENARIOS / "kubernetes.yaml")
    with pytest.raises(LookupError, match=r"no provider 'cloud' \(providers: netns"):
        assemble(scenario, "cloud", "cni")
    with pytest.raises(LookupError, match=r"no orchestrator 'swarm'"):
        assemble(scenario, "netns", "swarm")


def three_workers() -> Scenario:
    """Three workers, two clusters, overlapping on the middle one only."""
    scenario = load(SCENARIOS / "contmec.yaml", scale=0.1)
    clusters = {
        "a": scenario.clusters["a"].model_copy(update={"workers": ["worker-01", "worker-02"]}),
        "b": scenario.clusters["b"].model_copy(update={"workers": ["worker-02", "worker-03"]}),
    }
    pods = dict(scenario.pods)
    pods["B-1"] = pods["B-1"].model_copy(update={"node": "worker-02"})
    pods["B-2"] = pods["B-2"].model_copy(update={"node": "worker-03"})
    nodes = {**scenario.nodes, "worker-03": scenario.nodes["worker-01"]}
    return scenario.model_copy(update={"clusters": clusters, "pods": pods, "nodes": nodes})


@pytest.mark.long(one_in=0)
def test_clusters_may_overlap_on_one_worker_of_three() -> None:
    testbed = assemble(three_workers(), "netns", "cni")
    testbed.up()
    try:
        names = {
            node: {link["ifname"] for link in testbed.nodes[node].run(["ip", "-j", "link", "show"]).json()}
            for node in ("worker-01", "worker-02", "worker-03")
        }
        assert {"flannel.1", "flannel.2", "cni-a", "cni-b"} <= names["worker-02"]
        assert "flannel.2" not in names["worker-01"]
        assert "flannel.1" not in names["worker-03"]
        b1, b2 = testbed.pods["B-1"], testbed.pods["B-2"]
        assert crossed(b1, b2, b2.address) == MEBIBYTE
        assert testbed.check() == []
    finally:
        testbed.down()


STEERING = (
    "mount -t sysfs sysfs /sys && cat /sys/class/net/eth0/queues/rx-0/rps_cpus && "
    "cd /proc/sys/net/ipv4 && cat tcp_recovery tcp_rmem tcp_wmem"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="steering is for root only")
def test_where_links_have_a_rate_networks_steer_flows_and_let_them_wait() -> None:
    scenario = load(SCENARIOS / "contmec.yaml", ["underlay.rate=9G"])
    processors = len(os.sched_getaffinity(0))
    testbed = assemble(scenario, "netns", "cni")
    testbed.up()
    try:
        for name in ("worker-01", "master-02", "A-1", "B-2", "container-1"):
            place: Place = testbed.nodes[name] if name in testbed.nodes else testbed.networks[name]
            mask, *rest = place.run(["unshare", "--mount", "sh", "-c", STEERING]).stdout.splitlines()
            assert int(mask.replace(",", ""), 16).bit_count() == processors, name
            assert [line.split() for line in rest] == [
                ["0"],
                ["4096", "131072", "33554432"],
                ["4096", "65536", "33554432"],
            ], name
    finally:
        testbed.down()
