"""A node whose two clusters know no rest, run as a program there: random calls, at once and killed.

Reads a JSON object from standard input: plugin, seed, steps, how many calls run at once, and the longest a
killed one lives (seconds). Between the rounds it looks at ledger and kernel, and prints what it counted.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

GUARANTEE = "concorde.contmec.dev/egress-guarantee"
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
CAPACITY, RESERVE = 1_000_000_000, 20_000_000
POD_NAMES = [f"{cluster}-{number}" for number in range(12) for cluster in "ab"]
BASE = {0x1, 0xFFFD, 0xFFFE}
REFUSALS = {105, 103}


class Churn:
    """The driver."""

    def __init__(self, work: dict[str, Any]) -> None:
        self.work = work
        self.chance = random.Random(work["seed"])
        self.results: dict[str, tuple[str, dict[str, Any]]] = {}  # of pods surely attached: guarantee, result
        self.doubtful: set[str] = set()  # a killed call leaves a pod so, until a DEL has succeeded
        self.counted: dict[str, int] = {}

    def run(self) -> None:
        """Do all steps in rounds, then put everything right and compare."""
        done = 0
        while done < self.work["steps"]:
            done += self.round()
            self.look(exact=False)
        for cluster in "ab":
            self.gc(cluster)
        succeed(self.program("reconcile"))
        self.look(exact=True)
        again = self.program("reconcile")
        assert again.stdout == b"nothing to repair\n", again.stdout
        for pod, (guarantee, result) in self.results.items():
            answer = self.call("CHECK", pod, network(pod, guarantee, prevResult=result), None)
            assert answer == {}, answer
        self.counted["attached"] = len(self.results)

    def round(self) -> int:
        """Some calls at once, each on a pod of its own."""
        if self.chance.random() < 0.1:
            self.gc(self.chance.choice("ab"))
        pods = self.chance.sample(POD_NAMES, self.chance.randint(1, self.work["at_once"]))
        steps = [self.step(pod) for pod in pods]
        with ThreadPoolExecutor(len(steps) + 1) as pool:
            repair = pool.submit(self.program, "reconcile") if self.chance.random() < 0.2 else None
            for step, answer in zip(steps, pool.map(lambda step: self.call(*step), steps), strict=True):
                self.learn(step, answer)
        if repair is not None:
            succeed(repair.result())
        return len(steps)

    def step(self, pod: str) -> tuple[str, str, dict[str, Any], float | None]:
        """Draw what is done to a pod, and for how long."""
        patience = self.chance.uniform(0, self.work["longest"]) if self.chance.random() < 0.25 else None
        if pod in self.results:
            guarantee, result = self.results[pod]
            verb = self.chance.choice(["DEL", "DEL", "ADD", "CHECK"])
            return (
                verb,
                pod,
                network(pod, guarantee, prevResult=result) if verb == "CHECK" else network(pod, guarantee),
                patience,
            )
        verb = "DEL" if pod in self.doubtful or self.chance.random() < 0.1 else "ADD"
        guarantee = self.chance.choice(["", "10M", "60M", "120M", "250M"])
        return verb, pod, network(pod, guarantee), patience

    def learn(self, step: tuple[str, str, dict[str, Any], Any], answer: dict[str, Any] | None) -> None:
        """Note what a call's end says about its pod."""
        verb, pod, asked, _ = step
        outcome = "killed" if answer is None else f"error {answer['code']}" if "code" in answer else "done"
        self.counted[f"{verb} {outcome}"] = self.counted.get(f"{verb} {outcome}", 0) + 1
        if answer is None:
            if verb != "CHECK" and not (verb == "ADD" and pod in self.results):
                self.results.pop(pod, None)
                self.doubtful.add(pod)
            return
        if "code" in answer:
            # Another pod's class may be half made or gone at the moment of a kill; the pod's own may not.
            assert answer["code"] in REFUSALS or verb == "CHECK", (step, answer)
        elif verb == "ADD":
            guarantee = asked["runtimeConfig"][ANNOTATIONS].get(GUARANTEE, "")
            self.results[pod] = guarantee, answer
        elif verb == "DEL":
            self.results.pop(pod, None)
            self.doubtful.discard(pod)

    def gc(self, cluster: str) -> None:
        """The cluster's runtime names the pods it knows, those in doubt not among them."""
        valid = [{"containerID": pod, "ifname": "eth0"} for pod in self.results if pod[0] == cluster]
        document = {**network(f"{cluster}-0", ""), "cni.dev/valid-attachments": valid}
        answer = self.call("GC", "", document, None)
        assert answer == {}, answer
        self.doubtful = {pod for pod in self.doubtful if pod[0] != cluster}

    def look(self, exact: bool) -> None:
        """Promises never exceed the capacity; and, when all is put right, ledger and kernel are one."""
        ledger = json.loads(self.program("ledger", "--json").stdout)
        if ledger["tree"] is None:
            return
        promised = {a["class"]: a for a in ledger["attachments"] if a["class"]}
        assert sum(a["rate"] for a in promised.values()) <= CAPACITY - RESERVE
        shown = subprocess.run(["tc", "class", "show", "dev", "eth0"], capture_output=True, check=True)
        rates = {
            words[2]: words[words.index("rate") + 1]
            for words in map(str.split, shown.stdout.decode().splitlines())
        }
        # Of the kernel too, also while what a killed call left behind is still at work.
        assert sum(bits(rate) for name, rate in rates.items() if name != "c0de:1") <= CAPACITY, rates
        known = {a["container"] for a in ledger["attachments"]}
        assert known >= self.results.keys(), self.results.keys() - known
        if not exact:
            return
        assert known == self.results.keys(), known
        assert rates.keys() == promised.keys() | {f"c0de:{minor:x}" for minor in BASE}, rates
        listed = subprocess.run(
            ["nft", "-j", "list", "map", "ip", "concorde", "classes"], capture_output=True, check=True
        )
        (found,) = [entry["map"] for entry in json.loads(listed.stdout)["nftables"] if "map" in entry]
        elements = {handle: address for address, handle in found.get("elem", [])}
        assert elements == {name: a["address"] for name, a in promised.items()}, elements

    def program(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """The plugin as a program for people."""
        return subprocess.run([self.work["plugin"], *arguments], capture_output=True)

    def call(
        self, verb: str, pod: str, document: dict[str, Any], patience: float | None
    ) -> dict[str, Any] | None:
        """Call the plugin; None when it was killed as its patience (seconds) ran out."""
        environment = {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": pod or "none",
            "CNI_IFNAME": "eth0",
            "CNI_NETNS": f"/run/netns/{pod}",
            "PATH": os.environ["PATH"],
        }
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [self.work["plugin"]], stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        try:
            stdout, stderr = process.communicate(json.dumps(document).encode(), timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            if process.returncode < 0:
                return None
        assert stderr == b"", stderr
        answer: dict[str, Any] = json.loads(stdout or b"{}")
        return answer


def network(pod: str, guarantee: str, **keys: Any) -> dict[str, Any]:
    """The configuration of a pod's cluster."""
    cluster = pod[0]
    return {
        "cniVersion": "1.1.0",
        "name": f"cluster-{cluster}",
        "type": "concorde",
        "bridge": f"cni-{cluster}",
        "subnet": f"172.{16 if cluster == 'a' else 17}.1.0/24",
        "mtu": 1450,
        "enforcement": "node",
        "uplink": "eth0",
        "capacity": "1G",
        "runtimeConfig": {ANNOTATIONS: {GUARANTEE: guarantee} if guarantee else {}},
        **keys,
    }


def bits(rate: str) -> int:
    """A rate as tc prints it, in bits per second."""
    number = rate.rstrip("KMGbit")
    return int(number) * {"bit": 1, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}[rate[len(number) :]]


def succeed(done: subprocess.CompletedProcess[bytes]) -> None:
    """Stop if a program failed."""
    assert done.returncode == 0, done.stderr


def main() -> None:
    """Churn."""
    churn = Churn(json.load(sys.stdin))
    churn.run()
    json.dump(churn.counted, sys.stdout)


if __name__ == "__main__":
    main()
