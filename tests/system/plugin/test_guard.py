"""The guard at pods' ports and the VTEPs it knows: for every enforcement; compared, repaired, upgraded."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.runtime import names
from tests.system.plugin import former
from tests.system.plugin.conftest import Document, Node, network
from tests.system.plugin.uplinks import Pair, ledger, on_uplink
from tests.waiting import until

COUNTING = str(Path(__file__).with_name("counting.py"))
PORT = "veth8ebf4b385a1"  # of cluster-a's A-1; it follows from the names
MAC = "0a:58:ac:10:01:02"
PACKETS = 3000


def added(node: Node, pod: str, configuration: Document) -> Document:
    result = node.call("ADD", pod, configuration)
    assert "code" not in result, result
    return result


def guarded(node: Node) -> Any:
    """What a pod's port needs, as the kernel has it: tables' sets without counters, ports and entries."""
    sets = {}
    for entry in node.show("nft", "-j", "list", "ruleset")["nftables"]:
        if "set" in entry:
            found = entry["set"].get("elem", [])
            values = [e["elem"]["val"] if isinstance(e, dict) and "elem" in e else e for e in found]
            sets[entry["set"]["family"], entry["set"]["name"]] = sorted(map(json.dumps, values))
    ports = {
        link["ifname"]: (link["linkinfo"]["info_slave_data"]["learning"], link["master"])
        for link in node.show("ip", "-j", "-d", "link", "show", "type", "bridge_slave")
        if "ifname" in link
    }
    fixed = sorted(
        (entry["ifname"], entry["mac"])
        for entry in node.show("bridge", "-j", "fdb")
        if "sticky" in entry["flags"]
    )
    return sets, ports, fixed


TAMPERING = {
    f"bridge link set dev {PORT} learning on": "is open",
    f"bridge link set dev {PORT} flood on": "is open",
    f"ip link set dev {PORT} type bridge_slave group_fwd_mask 0": "is open",
    f"bridge fdb delete {MAC} dev {PORT} master": f"has lost its hardware address {MAC}",
    "nft flush chain bridge concorde port": "bridge concorde port is not as made",
    "nft flush chain ip concorde forward": "ip concorde forward is not as made",
    "nft flush set bridge concorde frames": "bridge concorde frames",
    "nft flush set ip concorde tunnels": "",  # what the kernel tells is read again, and nobody need know
    "nft flush ruleset": "table bridge concorde is missing",
}


@pytest.mark.parametrize(
    ("enforcement", "tampering", "message"),
    [(("pod", "none")[at % 2], *both) for at, both in enumerate(TAMPERING.items())],
)
@pytest.mark.long(one_in=10)
def test_the_guard_is_kept_without_a_guarantee_too(
    node: Node, enforcement: str, tampering: str, message: str
) -> None:
    Pair(node)
    node.add_pod_namespace("A-1", "A-2")
    configuration = network(enforcement=enforcement)
    result = added(node, "A-1", configuration)
    added(node, "A-2", configuration)
    whole = guarded(node)
    assert whole[2] == [("veth59103e1e369", "0a:58:ac:10:01:03"), (PORT, MAC)]
    checked = {**configuration, "prevResult": result}
    assert node.call("CHECK", "A-1", checked) == node.call("STATUS", "", configuration) == {}
    node.run(*tampering.split())
    if message:
        assert message in node.call("STATUS", "", configuration)["details"]
        assert node.call("CHECK", "A-1", checked)["code"] == 104
        assert message in node.run(node.plugin, "reconcile")
    else:
        assert node.call("STATUS", "", configuration) == {}
    assert guarded(node) == whole
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert node.call("CHECK", "A-1", checked) == node.call("STATUS", "", configuration) == {}


@pytest.mark.parametrize("enforcement", ["pod", "none", "node"])
@pytest.mark.long(one_in=3)
def test_nothing_of_the_guard_stays_when_its_pods_are_gone(node: Node, enforcement: str) -> None:
    Pair(node)
    node.add_pod_namespace("A-1")
    configuration = on_uplink(enforcement=enforcement)
    added(node, "A-1", configuration)
    assert node.call("DEL", "A-1", configuration) == {}
    sets, ports, fixed = guarded(node)
    assert (ports, fixed) == ({}, [])
    kept = {"tunnels", "vteps", "underlays", "bridges"}
    assert {name for (_, name), found in sets.items() if found} <= kept
    assert ledger(node)["attachments"] == []
    listed = {"name": "cluster-a", "plugins": [configuration]}
    node.run(node.plugin, "dismantle", stdin=json.dumps(listed))
    assert "concorde" not in node.run("nft", "list", "tables")


def test_a_vtep_is_noticed_by_status_and_by_the_next_add(node: Node) -> None:
    Pair(node)
    node.add_pod_namespace("A-1", "A-2")
    configuration = network(enforcement="none")
    added(node, "A-1", configuration)

    def ports() -> list[int]:
        (found,) = (e["set"] for e in node.show(*LIST)["nftables"] if "set" in e)
        return sorted(found["elem"])

    vtep = "type vxlan id {} dev eth0 local 192.168.9.1 dstport {} nolearning"
    assert ports() == [8472]
    node.run(*f"ip link add flannel.2 {vtep.format(2, 8473)}".split())
    assert node.call("STATUS", "", configuration) == {}
    assert ports() == [8472, 8473]
    node.run(*f"ip link add flannel.3 {vtep.format(3, 8474)}".split())
    added(node, "A-2", configuration)
    assert ports() == [8472, 8473, 8474]
    node.run("ip", "link", "delete", "flannel.3")
    assert node.call("STATUS", "", configuration) == {}  # it may be one again; no fault
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert ports() == [8472, 8473]


LIST = ("nft", "-j", "list", "set", "ip", "concorde", "tunnels")


@contextmanager
def stream(node: Node, source: str, destination: str, address: str) -> Iterator[None]:
    """Datagrams from one pod to another all the while, of which none may be lost."""
    enter = [node.argv("nsenter", f"--net=/run/netns/{pod}") for pod in (destination, source)]
    receiver = subprocess.Popen(
        [*enter[0], "/usr/bin/python3", COUNTING, "receive"], stdout=subprocess.PIPE, text=True
    )
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == "ready\n"
    sender = subprocess.Popen(
        [*enter[1], "/usr/bin/python3", COUNTING, "send", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert sender.stdout is not None
    assert sender.stdout.readline() == "under way\n"
    try:
        yield
    finally:
        sent, _ = sender.communicate("")
        received, _ = receiver.communicate()
    assert int(sent) > 20
    assert received == sent


@pytest.mark.parametrize("upgrade", ["reconcile", "ADD"])
@pytest.mark.long(one_in=2)
def test_what_the_version_before_made_is_upgraded_and_no_packet_is_lost(node: Node, upgrade: str) -> None:
    Pair(node)
    node.add_pod_namespace("A-1", "C-1", "C-2", "C-3")
    promised, plain = on_uplink("100M"), network("cluster-c", 18)
    results = {"A-1": added(node, "A-1", promised)}
    for pod in ("C-1", "C-2"):
        results[pod] = added(node, pod, plain)
    whole = guarded(node)
    former.set_back(node, PORT)
    with stream(node, "A-1", "C-1", "172.18.1.2"), stream(node, "C-1", "C-2", "172.18.1.3"):
        if upgrade == "reconcile":
            assert "bridge concorde senders belongs to nobody" in node.run(node.plugin, "reconcile")
        else:
            added(node, "C-3", plain)
            node.call("DEL", "C-3", plain)
    assert guarded(node) == whole
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert node.call("CHECK", "A-1", {**promised, "prevResult": results["A-1"]}) == {}
    for pod in ("C-1", "C-2"):
        assert node.call("CHECK", pod, {**plain, "prevResult": results[pod]}) == {}


def test_an_unguarded_node_of_the_version_before_is_guarded_by_reconcile(node: Node) -> None:
    """With enforcement pod or none there was no ledger at all."""
    node.add_pod_namespace("C-1")
    plain = network("cluster-c", 18)
    added(node, "C-1", plain)
    whole = guarded(node)
    former.keep(node, 0)
    node.run("nft", "flush", "ruleset")
    assert "table bridge concorde is missing" in node.run(node.plugin, "reconcile")
    assert guarded(node) == whole
    assert [entry["container"] for entry in ledger(node)["attachments"]] == ["C-1"]


def test_a_bare_node_has_no_names_of_protocols_and_services(node: Node) -> None:
    """They are of Debian's package netbase, which containers' images leave out."""
    Pair(node)
    node.add_pod_namespace("A-1")
    for file in ("/etc/protocols", "/etc/services"):
        if Path(file).exists():
            node.run("mount", "--bind", "/dev/null", file)
    configuration = on_uplink("100M")
    added(node, "A-1", configuration)
    assert node.call("STATUS", "", configuration) == {}


SEND = "import socket; s = socket.socket(type=socket.SOCK_DGRAM)\nfor _ in range({}): s.sendto({}, {})"
INNER = bytes.fromhex(f"{6 * 'ff'}0e00000000420800") + bytes(50)  # a frame
VXLAN = b"\x08" + bytes(5) + b"\x01\x00" + bytes(50)  # the header of network 1, and something


def test_what_is_dropped_is_counted_for_its_pod(node: Node) -> None:
    Pair(node)
    node.add_pod_namespace("A-1", "A-2")
    for pod in ("A-1", "A-2"):
        added(node, pod, on_uplink())
    node.in_pod("A-2", "ip", "link", "set", "eth0", "address", "0a:58:ac:10:01:63")
    gateway = "neigh replace 172.16.1.1 lladdr 0a:58:ac:10:01:01 dev eth0"
    node.in_pod("A-2", "ip", *gateway.split())
    node.in_pod("A-2", "/usr/bin/python3", "-c", SEND.format(7, b"x", ("192.168.9.2", 9)))
    node.in_pod("A-1", "/usr/bin/python3", "-c", SEND.format(5, VXLAN, ("192.168.9.1", 8472)))
    counted = {entry["container"]: entry["dropped"] for entry in ledger(node)["attachments"]}
    assert counted["A-1"] == 5
    assert counted["A-2"] >= 7
    rows = [line.split() for line in node.run(node.plugin, "ledger").splitlines()]
    assert [row[-1] for row in rows if "A-1" in row] == ["5"]


@pytest.mark.parametrize(
    ("option", "flags", "reserved"),
    [
        ([], "08000000", "00"),
        (["gbp"], "88000007", "00"),
        (["gbp"], "8848ffff", "00"),  # as if a policy had been applied, and nothing were to be learned
        (["remcsumrx"], "08200000", "05"),
        (["external", "gpe"], "0c000003", "00"),
    ],
)
@pytest.mark.long(one_in=5)
def test_a_vtep_that_nobody_has_read_yet_is_out_of_pods_reach(
    node: Node, option: list[str], flags: str, reserved: str
) -> None:
    Pair(node)
    node.add_pod_namespace("A-1")
    added(node, "A-1", on_uplink())
    number = [] if "external" in option else ["id", "1"]
    device = ["link", "add", "later", "type", "vxlan", *number, "local", "192.168.9.1", "dstport", "9999"]
    node.run("ip", *device, *option)
    node.run("ip", "link", "set", "later", "up")
    packet = bytes.fromhex(f"{flags}000001{reserved}") + INNER
    targets = ("192.168.9.1", 9999), ("172.16.1.1", 9999), ("192.168.9.2", 9999)

    def send() -> int:
        for to in targets:
            node.in_pod("A-1", "/usr/bin/python3", "-c", SEND.format(3, packet, to))
        return taken_out(node)

    assert send() == 0
    assert ledger(node)["attachments"][0]["dropped"] == 9
    node.run("nft", "delete", "table", "ip", "concorde")
    assert send() == 6  # so it is one that would take them


@pytest.mark.parametrize("port", [9999, 53])
def test_nor_does_one_get_what_comes_out_of_an_overlay(node: Node, port: int) -> None:
    pair = Pair(node)
    node.add_pod_namespace("A-1")
    added(node, "A-1", on_uplink())
    node.run(*f"ip link add later type vxlan id 1 local 192.168.9.1 dstport {port}".split())
    node.run("ip", "link", "set", "later", "up")
    pair.plug_in()

    def send() -> int:
        plain = bytes.fromhex("0800000000000100") + INNER
        pair.on("two", "/usr/bin/python3", "-c", SEND.format(3, plain, ("172.16.1.0", port)))
        return taken_out(node)

    assert send() == 0
    node.run("nft", "delete", "table", "ip", "concorde")
    assert send() == 3


ECHO = """import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(("", 7)); print(flush=True)
while True: s.sendto(*s.recvfrom(99))"""
ASK = """import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(20); s.connect({})
s.send({}); print(s.recv(99).hex(), end="")"""
# An answer of DNS that there is no such name, and one with an address; and of UDP that begins at random.
ANSWERS = "084881830001000000000000", "08008180000100010000000003616263", "8868" + 24 * "05"
TRACKED = 'table ip nat { chain out { type nat hook postrouting priority 100; oifname "x" masquerade; }\n}\n'


def test_where_connections_are_tracked_an_answer_may_look_like_vxlan(node: Node) -> None:
    """None that a VTEP would take of somebody it never answered."""
    pair = Pair(node)
    pair.bring_up({"A-1": on_uplink()})
    node.run("nft", "-f", "-", stdin=TRACKED)

    def ask(side: str, address: str, question: str) -> str:
        return pair.on(side, "/usr/bin/python3", "-c", ASK.format((address, 7), bytes.fromhex(question)))

    def enter(namespace: str) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{namespace}", "/usr/bin/python3", "-c", ECHO]

    with node.running(*enter("A-1")) as pod, node.running(*enter("two")) as other:
        for server in (pod, other):
            assert server.stdout is not None
            server.stdout.readline()
        assert ask("two", "172.16.1.2", "00") == "00"  # a connection, so they are tracked
        assert node.call("STATUS", "", on_uplink()) == {}
        for answer in ANSWERS:
            assert ask("two", "172.16.1.2", answer) == answer  # of a pod
            assert ask("one", "172.16.2.0", answer) == answer  # out of an overlay, to the node
        assert ledger(node)["attachments"][0]["dropped"] == 0
        pair.on("two", "/usr/bin/python3", "-c", SEND.format(1, VXLAN, ("172.16.1.2", 7)))
        until(lambda: ledger(node)["attachments"][0]["dropped"] == 1)  # the plain form is none's


def test_who_is_tracked_gets_no_nearer_to_a_vtep(node: Node) -> None:
    Pair(node)
    node.add_pod_namespace("A-1")
    added(node, "A-1", on_uplink())
    node.run("nft", "-f", "-", stdin=TRACKED)
    later = "ip link add later type vxlan id 1 local 192.168.9.1 dstport 9999 gbp"
    node.run(*later.split())
    node.run("ip", "link", "set", "later", "up")
    packet = bytes.fromhex("8800000700000100") + INNER
    knock = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 9999))\n"
    knock += f"for one in (b'x', {packet!r}, b'x', {packet!r}): s.sendto(one, ('192.168.9.1', 9999))"

    def send() -> int:
        node.in_pod("A-1", "/usr/bin/python3", "-c", knock)
        return taken_out(node)

    assert send() == 0
    assert node.call("STATUS", "", on_uplink()) == {}
    assert "established" in node.run("nft", "list", "chain", "ip", "concorde", "input")
    node.run("nft", "flush", "set", "ip", "concorde", "tunnels")  # as if nobody had read it
    assert send() == 0
    assert ledger(node)["attachments"][0]["dropped"] == 4
    node.run("nft", "delete", "table", "ip", "concorde")
    assert send() == 2


def taken_out(node: Node) -> int:
    """How many packets the VTEP that came later has got."""
    (link,) = node.show("ip", "-j", "-s", "link", "show", "dev", "later")
    return int(link["stats64"]["rx"]["packets"])


@pytest.mark.parametrize(
    ("packet", "port"),
    [
        ("0848010000010000000000000361626300", 53),  # a question with a number like a VTEP's flags
        ("0848010000010000000000000361626300", 5353),
        ("0848010000010000000000000361626300", names.FIRST_PORT),
        ("48000000000001000000", 9),  # no VTEP takes these flags
        ("18000000000001000000", 9),
        ("09000000000001000000", 9),
        ("00000000000001000000", 9),
        ("0c08a1b3c400000100", 7946),  # memberlist's, with a checksum: one in 32 was dropped
    ],
)
@pytest.mark.long(one_in=4)
def test_what_only_resembles_vxlan_passes(node: Node, packet: str, port: int) -> None:
    Pair(node)
    node.add_pod_namespace("A-1")
    added(node, "A-1", on_uplink())
    send = SEND.format(3, bytes.fromhex(packet), ("192.168.9.2", port))
    node.in_pod("A-1", "/usr/bin/python3", "-c", send)
    assert ledger(node)["attachments"][0]["dropped"] == 0
