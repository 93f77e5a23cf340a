"""What a resolver does when it cannot hear and when it cannot ask: entries come right all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed import resources
from testbed.access.components import Component
from testbed.access.place import Node
from testbed.overlays.backends.vxlan_miss import Resolved
from testbed.providers.netns.sandbox import Sandbox
from testbed.testbed import Testbed
from tests.system.edge import events
from tests.system.edge.conftest import give_vtep
from tests.waiting import PATIENCE

SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for address in sys.argv[1:]:
    s.sendto(b"hello", (address, 9))
"""
PUT = """
import json, sys, urllib.request
url, key, value = sys.argv[1:]
body = json.dumps({"key": key, "value": value}).encode()
urllib.request.urlopen(urllib.request.Request(url + "/v3/kv/put", body), timeout=60).read()
"""


class Alone:
    """A node, its etcd and its resolver; the other nodes are entries of the store."""

    def __init__(self, node: Node, etcd: str, buffer: int) -> None:
        self.node = node
        give_vtep(node, "miss", "miss")
        url, peer = f"http://{events.HERE}:{events.PORT}", "http://127.0.0.1:4002"
        self.url = url
        self.etcd = Component("etcd", node, "/run/etcd", [
            etcd, "--data-dir=/run/etcd/data", "--unsafe-no-fsync",
            f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}", "--heartbeat-interval=10", "--election-timeout=100",
            "--log-level=error",
        ])  # fmt: skip
        settings: dict[str, Any] = {
            "device": "flannel.1", "network": "10.1.0.0/16", "subnet": events.OWN, "address": events.HERE,
            "l2": "miss", "l3": "miss", "store": url, "buffer": buffer, "report": "/run/leases",
        }  # fmt: skip
        node.run(["tee", "/run/settings.json"], stdin=json.dumps(settings))
        command = ["/usr/bin/python3", "-IS", str(resources.EDGE), "resolver", "/run/settings.json"]
        self.resolver = Component("resolver", node, "/run/resolver", command)
        self.etcd.start()
        self.etcd.wait_until_it_answers(f"{url}/health", PATIENCE)
        self.resolver.start()

    def put(self, number: int) -> None:
        value = {
            "PublicIP": events.ADDRESSES[0],
            "BackendType": "vxlan",
            "BackendData": {"VtepMAC": mac(number)},
        }
        key, coded = events.key(number), events.coded(json.dumps(value))
        self.node.run(["python3", "-c", PUT, self.url, key, coded])

    def wait_until_known(self, number: int) -> None:
        known = ["grep", f"10.1.{number}.0/24 at {mac(number)}", "/run/leases"]
        self.resolver.wait_until_it_says(known, PATIENCE)

    def send(self, *addresses: str) -> None:
        self.node.run(["python3", "-c", SEND, *addresses])

    def neighbours(self) -> dict[str, str]:
        shown = self.node.run(["ip", "-j", "-4", "neigh", "show", "dev", "flannel.1"]).json()
        return {one["dst"]: one["lladdr"] for one in shown if "lladdr" in one}

    def stop_resolver(self) -> None:
        """Let it hear nothing from now on."""
        stop = "kill -STOP $0; until grep -q '^State:.T' /proc/$0/status; do :; done"
        self.node.run(["sh", "-c", stop, self.node.run(["cat", "/run/resolver/pid"]).stdout.strip()])

    def continue_resolver(self) -> None:
        self.node.run(["sh", "-c", "kill -CONT $(cat /run/resolver/pid)"])

    def log(self) -> str:
        return self.node.run(["cat", "/run/resolver/log"]).stdout


def mac(number: int) -> str:
    return f"0e:00:00:00:02:{number:02x}"


@pytest.fixture
def alone(box: Sandbox, etcd: str) -> Alone:
    box.add_nodes(["here"])
    return Alone(box.node("here"), etcd, buffer=4096)


@pytest.mark.long(one_in=0)
def test_what_was_not_heard_is_found_by_looking(alone: Alone) -> None:
    """The kernel asks once in a minute here, so a question that was lost would stay without an answer."""
    alone.node.run(["tee", "/proc/sys/net/ipv4/neigh/flannel.1/retrans_time_ms"], stdin="60000\n")
    for number in (2, 3):
        alone.put(number)
        alone.wait_until_known(number)
    asked = [f"10.1.{number}.{pod}" for number in (2, 3) for pod in range(1, 41)]
    alone.stop_resolver()
    alone.send(*asked)
    assert alone.neighbours() == {}
    alone.continue_resolver()
    said = ["grep", "the kernel said more than could be heard", "/run/resolver/log"]
    alone.resolver.wait_until_it_says(said, PATIENCE)
    known = f"[ $(ip -4 neigh show dev flannel.1 nud reachable | wc -l) = {len(asked)} ] && echo all"
    alone.resolver.wait_until_it_says(["sh", "-c", known], PATIENCE)
    assert alone.neighbours() == {one: mac(int(one.split(".")[2])) for one in asked}


@pytest.mark.long(one_in=0)
def test_misses_are_answered_while_the_store_is_away(alone: Alone) -> None:
    alone.put(2)
    alone.wait_until_known(2)
    alone.etcd.kill()
    alone.resolver.wait_until_it_says(["grep", "the store is unavailable", "/run/resolver/log"], PATIENCE)
    alone.send("10.1.2.7")
    alone.resolver.wait_until_it_says(["sh", "-c", "ip neigh show 10.1.2.7 nud reachable"], PATIENCE)
    assert alone.neighbours() == {"10.1.2.7": mac(2)}
    alone.etcd.start()
    alone.resolver.wait_until_it_says(["grep", "the store is back", "/run/resolver/log"], PATIENCE)
    assert "Traceback" not in alone.log()


@pytest.mark.long(one_in=0)
def test_entries_of_before_lead_on_until_it_is_known_what_is_right(alone: Alone) -> None:
    alone.put(2)
    alone.wait_until_known(2)
    alone.send("10.1.2.7")
    alone.resolver.wait_until_it_says(["sh", "-c", "ip neigh show 10.1.2.7 nud reachable"], PATIENCE)
    alone.resolver.kill()
    alone.etcd.kill()
    alone.node.run(["bridge", "fdb", "add", "0e:00:00:00:02:99", "dev", "flannel.1", "dst", "192.168.1.107"])
    alone.resolver.start()
    last = "tail -n 1 /run/resolver/log | grep 'the store is unavailable'"
    alone.resolver.wait_until_it_says(["sh", "-c", last], PATIENCE)
    stale = ["bridge", "-j", "fdb", "show", "dev", "flannel.1"]
    assert "0e:00:00:00:02:99" in alone.node.run(stale).stdout
    assert alone.neighbours() == {"10.1.2.7": mac(2)}
    alone.etcd.start()
    alone.wait_until_known(2)
    assert "0e:00:00:00:02:99" not in alone.node.run(stale).stdout
    assert alone.neighbours() == {"10.1.2.7": mac(2)}


@pytest.mark.long(one_in=0)
def test_without_its_device_it_ends_and_says_so(alone: Alone) -> None:
    alone.put(2)
    alone.wait_until_known(2)
    alone.node.run(["ip", "link", "delete", "flannel.1"])
    alone.resolver.wait_until_it_says(["cat", "/run/resolver/ended"], PATIENCE)
    assert "ended with 1" in (alone.resolver.fault() or "")
    assert "device flannel.1 is gone" in alone.log()


def test_the_program_stands_alone(tmp_path: Path, box: Sandbox) -> None:
    """Bad settings end it with 2 and one line; nothing is imported that a bare node has not."""
    box.add_nodes(["bare"])
    (tmp_path / "settings.json").write_text('{"device": "flannel.1"}', encoding="utf-8")
    command = ["/usr/bin/python3", "-IS", str(resources.EDGE), "resolver", str(tmp_path / "settings.json")]
    done = box.node("bare").run(command, check=False)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr.endswith("settings.json: network: required\n")


SHOW_FDB = ["bridge", "-j", "fdb", "show", "dev", "flannel.1"]
SHOW_NEIGHBOURS = ["ip", "-j", "-4", "neigh", "show", "dev", "flannel.1"]
BACK = """
cd /run/overlay/a/resolver && kill -KILL $(cat pid); until [ -s ended ]; do :; done
ip link set flannel.1 address "$1"
"""


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize(("l2", "l3"), [("miss", "miss"), ("ahead", "miss"), ("ahead", "ahead")])
def test_a_node_that_is_back_with_another_mac_is_reached_again(
    l2: str, l3: str, resolved: Callable[[str, str], Testbed]
) -> None:
    """The former MAC leads nowhere any more, and a pod whose neighbours knew it is reached by the new one."""
    testbed = resolved(l2, l3)
    here, there = testbed.nodes["minion01"], testbed.nodes["minion02"]
    ping = ["ping", "-c", "1", "-i", "0.2", "-W", "1", "-w", "10", testbed.pods["A-3"].address]
    testbed.pods["A-1"].run(ping)
    (daemon,) = Resolved(testbed.addressing, "a").daemons("minion02")
    there.run(["sh", "-c", BACK, "sh", mac(99)])
    Component(daemon.name, there, daemon.directory, daemon.argv).start()
    known = ["grep", f"10.1.2.0/24 at {mac(99)}", "/run/overlay/a/leases"]
    Component(daemon.name, here, daemon.directory, daemon.argv).wait_until_it_says(known, PATIENCE)
    testbed.pods["A-1"].run(ping)
    behind = {one["mac"]: one["dst"] for one in here.run(SHOW_FDB).json() if one}
    assert behind[mac(99)] == "192.168.122.102"
    assert set(behind) <= {mac(99), "0e:01:c0:a8:7a:64"}
    at = {one["lladdr"] for one in here.run(SHOW_NEIGHBOURS).json() if "lladdr" in one}
    assert mac(99) in at
    assert "0e:01:c0:a8:7a:66" not in at
