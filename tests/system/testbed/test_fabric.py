"""A fabric for real: whose class packets are, what may be granted, and what ends with an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from testbed.access.components import Component
from testbed.access.place import Place
from testbed.assembly import assemble
from testbed.enforcements.agents import DIRECTORY
from testbed.orchestrators.cni import ATTACHMENTS
from testbed.resources import BUILT_PLUGIN
from testbed.scenario import load
from testbed.testbed import Testbed
from tests.paths import ROOT
from tests.waiting import until

INCAST = ROOT / "scenarios" / "promise" / "incast.yaml"
SENDER, RECEIVER = "worker-02", "worker-04"
PORT, AGENTS = 6000, 7473
PEER, SAFE, DEFAULT = "c0de:7000", "c0de:fffb", "c0de:fffe"
# So many datagrams a second, until somebody ends it.
SEND = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    out.sendto(bytes(1000), (sys.argv[1], int(sys.argv[2])))
    time.sleep(1 / int(sys.argv[3]))
"""


@pytest.fixture(scope="module")
def fabric() -> Iterator[Testbed]:
    with assemble(load(INCAST, ["enforcement=fabric"], scale=0.1), "netns", "cni").running() as testbed:
        yield testbed


@contextmanager
def sending(place: Place, to: str, port: int = PORT, a_second: int = 100) -> Iterator[None]:
    argv = ["/usr/bin/python3", "-I", "-c", SEND, to, str(port), str(a_second)]
    with TemporaryDirectory() as directory:
        said, errors = Path(directory) / "said", Path(directory) / "errors"
        sender = place.start(argv, stdout=said, stderr=errors)
        try:
            yield
        finally:
            sender.kill()
        assert errors.read_text() == ""


def sent(node: Place, name: str) -> int:
    """Bytes that a class of a node's uplink has sent."""
    shown = node.run(["tc", "-s", "class", "show", "dev", "eth0", "classid", name]).stdout
    found = re.search(r"Sent (\d+) bytes", shown)
    return int(found[1]) if found else 0


def leads(node: Place) -> list[Any]:
    """To which nodes' classes the kernel leads, while it does."""
    shown = node.run(["nft", "-j", "list", "map", "ip", "concorde", "peers"]).json()
    (found,) = [one["map"] for one in shown["nftables"] if "map" in one]
    return list(found.get("elem", []))


def state(node: Place) -> Any:
    return json.loads(node.run(["cat", "/run/concorde/node/fabric.json"]).stdout)


def ledger(node: Place) -> Any:
    return node.run(["/usr/bin/python3", "-IS", f"{BUILT_PLUGIN}/concorde", "ledger", "--json"]).json()


def metrics(node: Place) -> str:
    return node.run(["/usr/bin/python3", "-IS", f"{BUILT_PLUGIN}/concorde", "metrics"]).stdout


def agent(testbed: Testbed, node: str) -> Component:
    assert testbed.agents is not None
    (found,) = [one for one in testbed.agents.components if one.place.name == node]
    return found


def grows(count: Callable[[], int], by: int = 20_000) -> None:
    begun = count()
    until(lambda: count() > begun + by)


def test_what_goes_to_a_node_has_its_class_which_ends_with_the_agent(fabric: Testbed) -> None:
    node, receiver = fabric.nodes[SENDER], fabric.pods["receiver"]
    with sending(fabric.pods["other-1"], receiver.address):
        grows(lambda: sent(node, PEER))
        assert fabric.check() == []
        (tree,) = ledger(node)["trees"]
        address = str(fabric.addressing.address(RECEIVER))
        assert tree["fabric"]["nodes"] == {address: PEER}
        until(lambda: state(node)["nodes"] == {address: PEER})  # it tells so once a second
        until(lambda: str(fabric.addressing.address(SENDER)) in state(fabric.nodes[RECEIVER])["granted"])
        told = metrics(node)
        assert 'concorde_fabric_agent{device="eth0"} 1\n' in told
        assert f'concorde_fabric_ceil_bits_per_second{{device="eth0",class="{PEER}"}} ' in told
        assert 'concorde_fabric_refused_messages_total{device="eth0",reason="key"} 0\n' in told
        own = agent(fabric, SENDER)
        own.kill()
        assert 'concorde_fabric_agent{device="eth0"} 0\n' in metrics(node)
        until(lambda: not leads(node))
        grows(lambda: sent(node, SAFE))
        own.start()
        grows(lambda: sent(node, PEER))
    assert fabric.check() == []


def test_what_is_routed_is_of_the_node_that_routed_it() -> None:
    scenario = load(INCAST, ["enforcement=fabric", "clusters.a.backend=host-gw"], scale=0.1)
    with assemble(scenario, "netns", "cni").running() as routed:
        node, receiver = routed.nodes[SENDER], routed.nodes[RECEIVER]
        with sending(routed.pods["other-1"], routed.pods["receiver"].address, a_second=400):
            grows(lambda: sent(node, PEER), 500_000)
            begun = state(receiver)["at"]
            until(lambda: state(receiver)["at"] > begun)
            told = state(receiver)
        assert str(routed.addressing.address(SENDER)) in told["granted"]
        assert told["downlink"]["foreign"] < 400_000  # of the 3.4 Mbit/s that come from a pod's address


@pytest.mark.long(one_in=0)
def test_a_ceiling_that_nobody_could_grant_is_said_and_repaired(fabric: Testbed) -> None:
    node = fabric.nodes["worker-01"]
    shown = node.run(["tc", "class", "show", "dev", "eth0", "classid", "c0de:10"]).stdout.split()
    assert shown[shown.index("rate") + 1] == shown[shown.index("ceil") + 1]
    change = (
        "tc class change dev eth0 parent c0de:1 classid c0de:10 htb rate 1mbit ceil 1mbit overhead 24 mpu 84"
    )
    node.run(change.split())
    (fault,) = fabric.check()
    assert "class c0de:10" in fault
    assert "rate 1Mbit" in fault
    said = node.run(["/usr/bin/python3", "-IS", f"{BUILT_PLUGIN}/concorde", "reconcile"]).stdout
    assert said.startswith("repaired: class c0de:10")
    assert fabric.check() == []


def test_a_tree_that_has_gone_is_seen_by_the_loop_and_made_anew(fabric: Testbed) -> None:
    node, own = fabric.nodes[SENDER], agent(fabric, SENDER)
    with sending(fabric.pods["other-1"], fabric.pods["receiver"].address):
        grows(lambda: sent(node, PEER))
        node.run(["tc", "qdisc", "delete", "dev", "eth0", "root"])
        until(lambda: "the tree has gone: 'eth0'" in node.run(["cat", f"{own.directory}/log"]).stdout)
        grows(lambda: sent(node, PEER))
    assert fabric.check() == []


def test_who_cannot_write_down_what_it_grants_grants_as_before(fabric: Testbed) -> None:
    node, own = fabric.nodes[RECEIVER], agent(fabric, RECEIVER)
    file = "/run/concorde/node/fabric.json"

    def said(words: str) -> int:
        return node.run(["cat", f"{own.directory}/log"]).stdout.count(words)

    begun = said("takes part in the fabric")
    with sending(fabric.pods["other-1"], fabric.pods["receiver"].address):
        until(lambda: leads(fabric.nodes[SENDER]))
        node.run(["sh", "-c", f"rm -f {file} && mkdir -p {file}/full"])
        until(lambda: said("cannot tell what it grants: "))
        grows(lambda: sent(fabric.nodes[SENDER], PEER), 300_000)  # of three seconds
        assert leads(fabric.nodes[SENDER])
        node.run(["rm", "-r", file])
        until(lambda: said("tells again what it grants"))
        until(lambda: str(fabric.addressing.address(SENDER)) in state(node)["granted"])
    assert (said("takes part in the fabric"), said("cannot tell"), said("tells again")) == (begun, 1, 1)


def test_what_cannot_be_done_of_a_grant_is_said_once_and_done_when_it_can(fabric: Testbed) -> None:
    node, own = fabric.nodes[SENDER], agent(fabric, SENDER)
    other = str(fabric.addressing.address("worker-03"))
    what = f"what {other} grants"
    with sending(fabric.pods["other-1"], fabric.pods["receiver"].address):
        grows(lambda: sent(node, PEER))
    journal = "/run/concorde/node/ledger.sqlite-journal"
    node.run(["mkdir", journal])  # the class of a node that is new cannot be written down
    with sending(fabric.pods["other-1"], fabric.pods["other-2"].address):
        until(lambda: f"agent: {what}: " in node.run(["cat", f"{own.directory}/log"]).stdout)
        grows(lambda: sent(node, SAFE), 100_000)  # a second, and fifty grants
        node.run(["rmdir", journal])
        until(lambda: f"agent: {what} is done again" in node.run(["cat", f"{own.directory}/log"]).stdout)
        (tree,) = ledger(node)["trees"]
        grows(lambda: sent(node, tree["fabric"]["nodes"][other]))
    said = node.run(["cat", f"{own.directory}/log"]).stdout
    assert said.count(f"agent: {what}") == 2
    assert fabric.check() == []


def test_without_tables_what_goes_to_a_node_is_at_the_safe_rate_until_somebody_makes_them(
    fabric: Testbed,
) -> None:
    node, own = fabric.nodes[SENDER], agent(fabric, SENDER)
    assert fabric.check() == []
    own.kill()
    with sending(fabric.pods["other-1"], fabric.pods["receiver"].address):
        node.run(["nft", "delete", "table", "ip", "concorde"])
        others = sent(node, DEFAULT)
        grows(lambda: sent(node, SAFE))
        assert sent(node, DEFAULT) < others + 10_000
        own.start()
        grows(lambda: sent(node, PEER))
    assert fabric.check() == []


@pytest.mark.long(one_in=0)
def test_a_tree_of_the_version_before_gets_what_knows_nodes_by_their_addresses(fabric: Testbed) -> None:
    node = fabric.nodes["worker-01"]
    node.run(["tc", "filter", "delete", "dev", "eth0", "parent", "c0de:", "protocol", "ip", "pref", "2"])
    (fault,) = fabric.check()
    assert "eth0 has no filter for what goes to " in fault
    said = node.run(["/usr/bin/python3", "-IS", f"{BUILT_PLUGIN}/concorde", "reconcile"]).stdout
    assert said.startswith("repaired: eth0 has no filter for what goes to ")
    assert fabric.check() == []


@pytest.mark.long(one_in=0)
def test_an_agent_divides_by_what_a_pod_is_promised_now(fabric: Testbed) -> None:
    node = fabric.nodes[RECEIVER]

    def promised() -> int:
        return int(state(node)["downlink"]["promised"])

    with sending(fabric.pods["other-1"], fabric.pods["receiver"].address):
        until(lambda: 50_000_000 < promised() < 60_000_000)  # half the link, on the wire
        for rate, most in (("20M", 25_000_000), ("50M", 60_000_000)):
            program = ["/usr/bin/python3", "-IS", f"{BUILT_PLUGIN}/concorde", "change", "default/receiver"]
            node.run([*program, f"ingress-guarantee={rate}", "--cache", ATTACHMENTS])
            until(lambda most=most: most * 4 / 5 < promised() < most)  # type: ignore[misc]
            assert fabric.check() == []


@pytest.mark.parametrize("to", [RECEIVER, "worker-01"], ids=["another", "its own"])
@pytest.mark.long(one_in=2)
def test_no_pod_speaks_to_an_agent(fabric: Testbed, to: str) -> None:
    pod, node = fabric.pods["promised"], fabric.nodes["worker-01"]
    (own,) = [one for one in ledger(node)["attachments"] if one["pod"] == "default/promised"]
    with sending(pod, str(fabric.addressing.address(to)), AGENTS, 1000):
        until(lambda: dropped(node) > own["dropped"] + 10)
    told = state(fabric.nodes[to])["at"]
    with sending(pod, fabric.pods["receiver"].address):  # so that both agents tell what they have heard
        until(lambda: state(fabric.nodes[to])["at"] > told)
    assert state(fabric.nodes[to])["refused"]["malformed"] == 0


def dropped(node: Place) -> int:
    return sum(one["dropped"] for one in ledger(node)["attachments"])


def test_who_has_another_key_is_granted_nothing_and_counted(fabric: Testbed, tmp_path: Path) -> None:
    node, own = fabric.nodes[SENDER], agent(fabric, SENDER)
    key = f"{DIRECTORY}/a/key"
    right = node.run(["cat", key]).stdout
    own.kill()
    node.run(["tee", key], stdin="f" * 64)
    own.start()
    until(lambda: not leads(node))  # what the agent before was granted
    before = sent(node, PEER)
    with sending(fabric.pods["other-1"], fabric.pods["receiver"].address):
        grows(lambda: sent(node, SAFE))
        until(lambda: state(fabric.nodes[RECEIVER])["refused"]["key"] > 0)
        assert leads(node) == []
        assert sent(node, PEER) == before
    own.kill()
    node.run(["tee", key], stdin=right)
    own.start()
    with sending(fabric.pods["other-1"], fabric.pods["receiver"].address):
        grows(lambda: sent(node, PEER))
