from __future__ import annotations

import json

import pytest

from bench.observations import queues
from bench.observations.queues import Counts
from testbed.access.place import CommandError, Result
from tests.doubles import RecordingNode

# What tc of iproute2 6.1 says of an HTB with a default class, of one without, and of other interfaces.
QDISCS = [
    {"kind": "noqueue", "handle": "0:", "dev": "lo", "root": True, "options": {}, "drops": 0},
    {"kind": "htb", "handle": "1:", "dev": "eth1", "options": {"default": "0x10"}, "drops": 7},
    {"kind": "htb", "handle": "2:", "dev": "eth2", "options": {"default": "0"}, "drops": 0},
    {"kind": "tbf", "handle": "8001:", "dev": "eth3", "options": {"rate": 1}, "drops": 2},
]
CLASSES = """device eth1
class htb 1:10 parent 1:1 leaf 8002: prio 0 rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b\x20
 Sent 1234 bytes 5 pkt (dropped 0, overlimits 0 requeues 0)\x20
 backlog 0b 0p requeues 0

class htb 1:1 root rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b\x20
 Sent 99999 bytes 50 pkt (dropped 0, overlimits 0 requeues 0)\x20

device eth2
class htb 2:1 root rate 1Gbit ceil 1Gbit burst 1375b cburst 1375b\x20
 Sent 777 bytes 5 pkt (dropped 0, overlimits 0 requeues 0)\x20
"""
SAID = json.dumps(QDISCS) + "\n" + CLASSES


def test_drops_of_each_queue_and_bytes_of_default_classes() -> None:
    assert queues.read("worker-01", SAID) == Counts(
        {"worker-01 eth1 htb 1:": 7, "worker-01 eth2 htb 2:": 0, "worker-01 eth3 tbf 8001:": 2},
        {"worker-01 eth1 htb 1:": 1234},
    )


@pytest.mark.parametrize("said", ["", "tc: not found\n", "[{}]\n", '{"a": 1}\n', SAID.split("\n")[0]])
def test_what_is_not_said_is_not_counted(said: str) -> None:
    assert queues.read("worker-01", said).by_default == {}


def test_a_place_that_cannot_be_reached_has_no_queues() -> None:
    class Gone(RecordingNode):
        def run(self, *_arguments: object, **_options: object) -> Result:
            raise CommandError("gone", ["sh"], 255, "no route")

    there = RecordingNode("there", lambda _: Result(0, SAID, ""))
    assert set(queues.count([Gone("gone"), there]).by_default) == {"there eth1 htb 1:"}


def test_only_queues_that_there_were_all_the_time_are_compared() -> None:
    before, after = Counts({"a": 1, "gone": 5}, {"a": 10}), Counts({"a": 4, "new": 9}, {"a": 30})
    assert after.since(before) == Counts({"a": 3}, {"a": 20})
