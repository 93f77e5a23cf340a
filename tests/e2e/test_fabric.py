"""A fabric of two real clusters that share their workers: promises of both at both ends, one agent a node.

Only what kernel, ledger and agents have is judged; nobody measures a rate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.access.place import Place
from testbed.enforcements.enforcement import INGRESS_RESOURCE
from testbed.scenario import load
from testbed.testbed import Testbed
from tests.e2e.conftest import SCENARIOS, brought_up, ledger, until

WORKERS = ("worker-01", "worker-02")
STATE = "/run/concorde"
# Of each cluster one pod that sends and one that receives, with promises; and who sends without, both ways.
OVERRIDES = [
    "enforcement=fabric",
    "underlay.rate=20G",
    "containers={}",
    "disturbances=[]",
    "pods.A-2={cluster: a, node: worker-01}",
    "pods.A-1.ingress=1G",
    "pods.A-4.ingress=1G",
    "pods.B-2.ingress=4G",
]
PROMISED = {"A-1": "A-4", "B-1": "B-2"}
BEST_EFFORT = {"A-2": "A-4", "A-3": "A-1", "B-2": "B-1"}
# Fifty datagrams a second, until somebody ends it.
SEND = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    out.sendto(bytes(1000), (sys.argv[1], 6000))
    time.sleep(0.02)
"""


@contextmanager
def sending(testbed: Testbed, directory: Path) -> Iterator[None]:
    with ExitStack() as stack:
        for source, destination in {**PROMISED, **BEST_EFFORT}.items():
            argv = ["/usr/bin/python3", "-IS", "-c", SEND, testbed.pods[destination].address]
            out, errors = directory / f"{source}.out", directory / f"{source}.err"
            sender = testbed.networks[source].start(argv, stdout=out, stderr=errors)
            stack.callback(sender.kill)
        yield


def told(node: Place) -> Any:
    """What a node's agent tells."""
    return json.loads(node.run(["cat", f"{STATE}/node/fabric.json"]).stdout)


def classes(node: Place) -> set[str]:
    """The names of a node's classes on its uplink."""
    return set(re.findall(r"class htb (c0de:\w+) ", node.run(["tc", "class", "show", "dev", "eth0"]).stdout))


@pytest.mark.by_turns
@pytest.mark.usefixtures("untouched_host")
def test_promises_of_two_clusters_share_links_at_both_ends(tmp_path: Path) -> None:
    with brought_up(load(SCENARIOS / "contmec.yaml", OVERRIDES, scale=0.05)) as testbed:
        address = {name: str(testbed.addressing.address(name)) for name in WORKERS}
        first, second = (testbed.nodes[name] for name in WORKERS)
        promised = {
            (entry["network"], entry["pod"]): (entry["guarantee"], entry["ingress"])
            for node in (first, second)
            for entry in ledger(node)
            if entry["guarantee"] or entry["ingress"]
        }
        assert promised == {
            ("cluster-a", "default/a-1"): (50_000_000, 50_000_000),
            ("cluster-b", "default/b-1"): (200_000_000, None),
            ("cluster-a", "default/a-4"): (None, 50_000_000),
            ("cluster-b", "default/b-2"): (None, 200_000_000),
        }
        for node in (first, second):
            keys = node.run(["sh", "-c", f"cat {STATE}/*/fabric.key | fold -w 64 | sort -u | wc -l"]).stdout
            assert int(keys) == len(testbed.scenario.clusters)
        for client in testbed.clients:
            for name in WORKERS:
                allocatable = client.get("node", name)["status"]["allocatable"]
                assert int(allocatable[INGRESS_RESOURCE]) > 900_000_000
        with sending(testbed, tmp_path):
            until(lambda: told(first)["nodes"].keys() == {address["worker-02"]}, lambda: str(told(first)))
            until(lambda: told(second)["nodes"].keys() == {address["worker-01"]}, lambda: str(told(second)))
            until(lambda: address["worker-01"] in told(second)["granted"], lambda: str(told(second)))
            for node, other in ((first, "worker-02"), (second, "worker-01")):
                assert told(node)["nodes"][address[other]] in classes(node)
                assert told(node)["refused"]["key"] == 0
            assert testbed.check() == []
        assert [file.read_text() for file in tmp_path.glob("*.err")] == [""] * len(
            {**PROMISED, **BEST_EFFORT}
        )
        own = {one["class"] for one in ledger(first) if one["guarantee"]}
        assert len(own) == len(PROMISED)
        assert own <= classes(first)
