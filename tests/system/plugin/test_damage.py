"""Two clusters' runtimes at work on a node whose ledger is damaged at random, again and again.

At no time have two pods one address, every pod can end, and what is said is said in words. After `rebuild`,
GC and `reconcile` ledger, leases, classes, map and ports are what the runtimes know, with every promise.

CONCORDE_DAMAGES says how many damages there are.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import cases
from tests.paths import ROOT
from tests.system.plugin.churn_sight import on_uplink as taken
from tests.system.plugin.conftest import Document, Node
from tests.system.plugin.inside import Inside
from tests.system.plugin.runtimes import CACHE, attachment, entry, listed
from tests.system.plugin.uplinks import ledger, on_uplink

DAMAGES = cases.count("CONCORDE_DAMAGES", 6, 500)
STATE = "/run/concorde"
FILES = [f"{STATE}/node/ledger.sqlite"]
KINDS = ("bits", "bits", "truncation", "deletion", "replacement", "replacement", "mode", "owner")
PODS = {cluster: [f"{cluster}-{number}" for number in range(5)] for cluster in "ab"}
MOST_AT_ONCE = 3
# What a call may say when it is refused; 100, a bug, is not among it.
REFUSALS = {3, 5, 11, 50, 101, 103, 104, 106, 107, 108}


class Damaged:
    """A node, what its runtimes know, and the program inside that makes calls and damages."""

    def __init__(self, plugin: Path, chance: random.Random) -> None:
        self.chance = chance
        self.counted: Counter[str] = Counter()
        self.node = Node(plugin)
        self.node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
        self.node.add_pod_namespace(*PODS["a"], *PODS["b"])
        self.node.run("mkdir", CACHE)
        self.inside = Inside(self.node, "-m", "tests.system.plugin.damage", path=ROOT)
        self.attached: dict[str, tuple[Document, Document]] = {}  # configuration, and ADD's result

    def close(self) -> None:
        self.inside.close()
        self.node.close()

    def step(self, damages: int) -> None:
        """Some calls at once, and some damages meanwhile; every runtime does what it does then."""
        calls: list[tuple[str, str, Document]] = []
        for cluster, pods in PODS.items():
            if self.chance.random() < 0.1:
                calls.append(("GC", cluster, self.gc(cluster)))
            else:
                for pod in self.chance.sample(pods, self.chance.randint(1, MOST_AT_ONCE)):
                    calls.append(self.call(pod))
        answers = self.ask(calls, [self.damage() for _ in range(damages)])
        failed = []
        for (verb, pod, configuration), answer in zip(calls, answers, strict=True):
            self.learn(verb, pod, configuration, answer)
            if verb == "ADD" and "code" in answer:
                failed.append(("DEL", pod, configuration))  # as runtimes do
        for (verb, pod, configuration), answer in zip(failed, self.ask(failed, []), strict=True):
            self.learn(verb, pod, configuration, answer)
        self.no_address_is_there_twice()

    def call(self, pod: str) -> tuple[str, str, Document]:
        if pod in self.attached:
            configuration, result = self.attached[pod]
            verb = self.chance.choice(("DEL", "DEL", "CHECK"))
            return verb, pod, {**configuration, "prevResult": result}
        guarantee = self.chance.choice(("", "10M", "20M", "50M"))
        ceiling = self.chance.choice(("", "", "100M"))
        return "ADD", pod, on_uplink(guarantee, ceiling, pod[0])

    def gc(self, cluster: str) -> Document:
        valid = [{"containerID": pod, "ifname": "eth0"} for pod in self.attached if pod[0] == cluster]
        return {**on_uplink(cluster=cluster), "cni.dev/valid-attachments": valid}

    def damage(self) -> Document:
        kinds = KINDS[:-1] if self.node.in_user_namespace else KINDS
        kind = self.chance.choice(kinds)
        self.counted[kind] += 1
        after = self.chance.choice((0, self.chance.random() * 0.05))
        file = self.chance.choice(FILES)
        return {"after": after, "kind": kind, "file": file, "seed": self.chance.randrange(1 << 30)}

    def ask(self, calls: list[tuple[str, str, Document]], damages: list[Document]) -> list[Document]:
        commands = [
            {
                "argv": [str(self.node.plugin)],
                "environment": self.node.environment(verb, pod),
                "stdin": json.dumps(configuration),
                "killed": None,
            }
            for verb, pod, configuration in calls
        ]
        copied = FILES if self.chance.random() < 0.3 else []
        told = self.inside.ask({"commands": commands, "damages": damages, "copied": copied})
        for (verb, pod, _), answer in zip(calls, told, strict=True):
            assert answer["stderr"] == "", f"{verb} {pod}: {answer}"
        return [json.loads(answer["stdout"] or "{}") for answer in told]

    def learn(self, verb: str, pod: str, configuration: Document, answer: Document) -> None:
        """What a call's end tells its runtime."""
        code = answer.get("code")
        self.counted[f"{verb} {'done' if code is None else code}"] += 1
        if code is not None:
            assert verb not in ("DEL", "GC"), f"{verb} {pod}: {answer}"
            assert code in REFUSALS, answer
            assert in_words(answer["msg"]), answer
        elif verb == "ADD":
            self.attached[pod] = configuration, answer
            name, content = entry(pod, configuration, answer)
            self.node.run("sh", "-c", f'cat >{CACHE}/"$1"', "sh", name, stdin=content)
        elif verb == "DEL" and pod in self.attached:
            del self.attached[pod]
            network = listed(configuration)
            name = f"{network.name}-{attachment(pod, configuration).container_id}-eth0"
            self.node.run("rm", f"{CACHE}/{name}")

    def ports(self) -> dict[str, str]:
        """The hardware address, from which the pod's follows, of each of the bridges' ports."""
        links = self.node.show("ip", "-j", "link", "show", "type", "veth")
        return {link["ifname"]: link["address"] for link in links if link.get("master")}

    def no_address_is_there_twice(self) -> None:
        ports = self.ports()
        assert len(set(ports.values())) == len(ports), ports
        told = [result["ips"][0]["address"] for _, result in self.attached.values()]
        assert len(set(told)) == len(told), self.attached

    def mend(self) -> None:
        """What an operator does then; afterwards all is one."""
        status, words = self.program("rebuild", "--cache", CACHE)
        if status != 0 and STATE in words:  # the state directory itself, which is the operator's to set right
            self.node.run("chown", "0:0", STATE)
            status, words = self.program("rebuild", "--cache", CACHE)
        assert status == 0, words
        assert in_words(words), words
        print(words, end="")  # noqa: T201 - shown when it fails
        for cluster in PODS:
            assert self.node.call("GC", "", self.gc(cluster)) == {}
        assert self.program("reconcile")[0] == 0
        status, words = self.program("reconcile")
        assert words == "nothing to repair\n" or words.startswith("the ledger is empty"), words
        self.all_is_one()
        self.node.run("sh", "-c", f"find {STATE} -name '*.damaged-*' -prune -exec rm -r {{}} +")

    def program(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(self.node.argv(self.node.plugin, *arguments), capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def all_is_one(self) -> None:
        known = {
            pod: result["ips"][0]["address"].partition("/")[0] for pod, (_, result) in self.attached.items()
        }
        rows = {row["container"]: row for row in ledger(self.node)["attachments"]}
        assert {pod: row["address"] for pod, row in rows.items()} == known
        leases: dict[str, Any] = {}
        for cluster in PODS:
            if self.node.run("sh", "-c", f"ls {STATE} 2>/dev/null | grep -x cluster-{cluster} || true"):
                leases.update(self.node.leases(f"cluster-{cluster}"))
        assert {pod: ".".join(map(str, int(a).to_bytes(4, "big"))) for pod, a in leases.items()} == known
        ends = {result["interfaces"][1]["name"] for _, result in self.attached.values()}
        assert self.ports().keys() == ends
        promised = {}
        for pod, (configuration, _) in self.attached.items():
            annotations = configuration["runtimeConfig"]["io.kubernetes.cri.pod-annotations"]
            mbits = int(annotations.get("concorde.contmec.dev/egress-guarantee", "0M")[:-1])
            promised[pod] = taken(mbits) if mbits else 0
        assert {pod: row["rate"] for pod, row in rows.items()} == promised
        classes = set(
            re.findall(r"^class htb (c0de:\w+)", self.node.run("tc", "class", "show", "dev", "eth0"), re.M)
        )
        wanted = {name for row in rows.values() for name in (row["class"], row["bestEffort"]) if name}
        assert classes - {"c0de:1", "c0de:fffc", "c0de:fffd", "c0de:fffe"} == wanted
        if wanted:
            shown = self.node.show("nft", "-j", "list", "map", "ip", "concorde", "promises")["nftables"]
            elements = next(one["map"] for one in shown if "map" in one).get("elem", [])
            given = {row["address"]: row["class"] for row in rows.values() if row["class"]}
            assert {key["concat"][1]: name for key, name in elements} == given
        for pod, (configuration, result) in self.attached.items():
            assert self.node.call("CHECK", pod, {**configuration, "prevResult": result}) == {}


def in_words(text: str) -> bool:
    """Whether nothing in it is Python's."""
    return not re.search(r"[a-z]Error\b|Exception|Traceback|\[Errno|NoneType|sqlite3\.", text)


@pytest.mark.long
def test_whatever_is_damaged_no_promise_and_no_address_is_lost(plugin: Path) -> None:
    chance = random.Random(cases.seed())
    damaged = Damaged(plugin, chance)
    try:
        left = DAMAGES
        while left > 0:
            damaged.step(0)
            for _ in range(chance.randint(1, 2)):
                count = min(left, chance.randint(1, 3))
                damaged.step(count)
                left -= count
            damaged.mend()
    finally:
        damaged.close()
        print(sorted(damaged.counted.items()))  # noqa: T201 - shown when it fails, or with -s
    cases.about(damaged.counted, "ADD done", "DEL done")
