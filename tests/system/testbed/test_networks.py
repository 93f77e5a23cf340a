"""Networks described in files: what the kernel has of each, and which bytes pass there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testbed.access.place import Place, in_parallel
from testbed.assembly import assemble
from testbed.scenario import ScenarioError, load
from testbed.testbed import Testbed
from tests.paths import ROOT

REFERENCE = [Path(directory) / "bridge" for directory in ("/usr/lib/cni", "/opt/cni/bin")]
MINE = str(ROOT / "docs" / "examples" / "network" / "mine.yaml")
ALONE = ["containers={}", "disturbances=[]", "underlay.rate=1G", "pods.A-2.guarantee=20M"]
RATE = 100 * 10**6  # promised to A-1, bits per second
SENT = 2 * 2**20  # bytes, more than any burst

RECEIVE = (
    "import socket; s = socket.create_server(('', 5000)); c, _ = s.accept(); n = 0\n"
    "while part := c.recv(65536): n += len(part)\n"
    "print(n)"
)
SEND = (
    "import socket, sys, time\n"
    "while True:\n"
    "    try: s = socket.create_connection((sys.argv[1], 5000), 60); break\n"
    "    except ConnectionRefusedError: time.sleep(0.01)\n"
    "s.sendall(bytes(int(sys.argv[2])))"
)


pytestmark = pytest.mark.skipif(
    not any(plugin.exists() for plugin in REFERENCE),
    reason="the reference plugins are not installed (Debian: containernetworking-plugins)",
)


class Queue(NamedTuple):
    """What a promised pod's packets pass: where, the start of its device's name, the kind."""

    on_node: bool
    device: str
    kind: str


NETWORKS = {
    "bandwidth": Queue(True, "bwp", "tbf"),
    "ptp-bandwidth": Queue(True, "bwp", "tbf"),
    "bridge-firewall-bandwidth": Queue(True, "bwp", "tbf"),
    "ptp-concorde": Queue(True, "eth0", "bfifo"),
    MINE: Queue(False, "eth0", "tbf"),
}


@contextmanager
def up(network: str) -> Iterator[Testbed]:
    fields = [*ALONE, f"pods.A-1.guarantee={RATE}", f"enforcement={network}"]
    testbed = assemble(load(ROOT / "scenarios" / "kubernetes.yaml", fields), "netns", "cni")
    testbed.up()
    try:
        yield testbed
    finally:
        testbed.down()


@pytest.mark.parametrize("network", NETWORKS, ids=lambda name: name.rpartition("/")[2])
@pytest.mark.long(one_in=6)
def test_bytes_pass_the_queue_of_the_promised_rate(network: str) -> None:
    queue = NETWORKS[network]
    with up(network) as testbed:
        pod = testbed.pods["A-1"]
        where: Place = testbed.nodes["worker-01"] if queue.on_node else pod
        before = _passed(where, queue)
        assert _transfer(testbed, "A-1", "A-4") == SENT
        after = _passed(where, queue)
        grown = {name: after[name] - before[name] for name in after}
        assert max(grown.values()) >= SENT  # all of it through one of them: A-1's own
        rates = {one["options"].get("rate") for one in _qdiscs(where, queue)}
        if queue.kind == "tbf":
            assert RATE // 8 in rates  # tc says bytes per second
        assert testbed.check() == []


def test_macvlan_puts_pods_on_the_underlay_each_node_with_a_range_of_its_own() -> None:
    with up("macvlan") as testbed:
        (link,) = testbed.pods["A-1"].run(["ip", "-j", "-d", "-s", "link", "show", "dev", "eth0"]).json()
        assert (link["linkinfo"]["info_kind"], link["mtu"]) == ("macvlan", 1500)
        addresses = {name: IPv4Address(pod.address) for name, pod in testbed.pods.items()}
        assert all(one in IPv4Network("192.168.56.128/25") for one in addresses.values())
        first, second = (testbed.addressing.pod_range("a", node) for node in ("worker-01", "worker-02"))
        assert first.first <= addresses["A-1"] <= first.last < second.first <= addresses["A-4"] <= second.last
        assert _transfer(testbed, "A-1", "A-4") == SENT
        (link,) = testbed.pods["A-1"].run(["ip", "-j", "-s", "link", "show", "dev", "eth0"]).json()
        assert link["stats64"]["tx"]["bytes"] >= SENT
        assert testbed.check() == []


def test_the_firewall_lets_each_pods_own_address_pass_and_says_so() -> None:
    with up("bridge-firewall-bandwidth") as testbed:
        listed = testbed.nodes["worker-01"].run(["nft", "-j", "list", "chain", "ip", "filter", "CNI-FORWARD"])
        rules = [entry["rule"]["expr"] for entry in listed.json()["nftables"] if "rule" in entry]
        senders = {
            part["match"]["right"]
            for rule in rules
            for part in rule
            if part.get("match", {}).get("left", {}).get("payload", {}).get("field") == "saddr"
        }
        assert senders == {testbed.pods["A-1"].address, testbed.pods["A-2"].address}


def test_a_limit_for_both_directions_is_on_both_ends_of_the_pair() -> None:
    with up("ptp-bandwidth") as testbed:
        node, host = testbed.nodes["worker-01"], testbed.pods["A-1"].host_interface
        kinds = {one["dev"]: one["options"]["rate"] for one in _qdiscs(node, Queue(True, "", "tbf"))}
        assert kinds[host] == RATE // 8
        assert [rate for device, rate in kinds.items() if device.startswith("bwp")].count(RATE // 8) == 1


def test_a_plugin_that_is_not_there_is_missed_before_anything_is_made() -> None:
    conflist = "{plugins: [{type: bridge}, {type: bandwith}]}"
    words = (
        r"enforcement.conflist.plugins\[1\].type: no plugin 'bandwith' in .* \(did you mean 'bandwidth'\?\)"
    )
    with pytest.raises(ScenarioError, match=words), up(f"{{name: own, conflist: {conflist}}}"):
        pass


def _transfer(testbed: Testbed, sender: str, receiver: str) -> int:
    """Send bytes by TCP, and return how many have arrived."""
    pods = testbed.pods
    programs = {receiver: [RECEIVE], sender: [SEND, pods[receiver].address, str(SENT)]}
    arrived, _ = in_parallel(
        lambda name: pods[name].run(["/usr/bin/python3", "-c", *programs[name]]).stdout, programs
    )
    return int(arrived)


def _qdiscs(place: Place, queue: Queue) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = place.run(["tc", "-j", "-s", "qdisc", "show"]).json()
    return [one for one in shown if one["kind"] == queue.kind and one["dev"].startswith(queue.device)]


def _passed(place: Place, queue: Queue) -> dict[str, int]:
    """Return the bytes that have passed each queue, by its device and place there."""
    return {f"{one['dev']} {one.get('parent', 'root')}": one["bytes"] for one in _qdiscs(place, queue)}
