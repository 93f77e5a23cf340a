"""Pods that end without a word and are made again with the same names, on a node with others that live.

A `Run` does what runtimes do to a few pods, in any order, and looks after each step whether a pod that lives
and was not meant has changed in the kernel.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.links import without_carrier
from tests.system.plugin.conftest import Document, Node, network
from tests.system.plugin.runtimes import CACHE, keep
from tests.system.plugin.uplinks import on_uplink

SLOTS = 3
GATEWAY = "169.254.1.1"
HOST_MAC = "ee:ee:ee:ee:ee:ee"  # as Calico gives it to all
PLUMBING = {"cniVersion": "1.0.0", "type": "other", "name": "cluster-a"}


class Pod:
    """One life of a pod in a slot: the slot's names, a container of its own."""

    def __init__(self, slot: int, life: int, fixed: bool, same_path: bool, promise: str) -> None:
        self.slot = slot
        self.container = f"pod-{slot}-{life}"
        self.netns = f"slot-{slot}" if same_path else self.container
        self.host = f"cali{slot:08x}" if fixed else ""
        self.address = f"10.7.{slot}.{2 + life % 200}"
        self.mac = f"02:07:00:00:{slot:02x}:{life % 256:02x}"
        self.promise = promise
        self.result: Document = {}


class Run:
    """A node, its pods that live, and those whose DEL is still to come."""

    def __init__(self, node: Node, enforcement: str, fixed: bool, number: int) -> None:
        self.node, self.enforcement, self.fixed = node, enforcement, fixed
        self.chance = random.Random(number)
        self.lives = 0
        self.living: dict[int, Pod] = {}
        self.made: dict[int, Pod] = {}  # what another plugin has made an interface for, before us
        self.dead: list[Pod] = []
        self.story: list[str] = []
        self.counted: Counter[str] = Counter()
        self.last: dict[str, Any] = {}

    def configuration(self, pod: Pod) -> Document:
        """What the plugin is given for a pod."""
        make = on_uplink if self.enforcement == "node" else network
        given: Document = make(enforcement=self.enforcement)
        annotations = {"concorde.contmec.dev/egress-guarantee": pod.promise} if pod.promise else {}
        given["runtimeConfig"] = {"io.kubernetes.cri.pod-annotations": annotations}
        if self.fixed:
            given |= {"subnet": None, "cniVersion": "1.0.0", "prevResult": self.previous(pod)}
        return given

    def previous(self, pod: Pod) -> Document:
        """The result of the plugin before, with an interface in it that is no end of anything."""
        ends = [{"name": pod.host}, {"name": "bwpnobody"}]
        self.chance.shuffle(ends)
        inside = {"name": "eth0", "mac": pod.mac, "sandbox": f"/run/netns/{pod.netns}"}
        at = self.chance.randrange(3)
        interfaces = [*ends[:at], inside, *ends[at:]]
        return {
            "cniVersion": "1.0.0",
            "interfaces": interfaces,
            "ips": [{"interface": at, "address": f"{pod.address}/32"}],
        }

    def begin(self) -> None:
        """What it is all about, before anything else: a pod is gone, made again, and then comes the DEL."""
        for act in (self.add, self.kill, self.make, self.late, self.add, self.late):
            self.take(act, 0)

    def step(self) -> None:
        """Do one thing."""
        acts = [self.add, self.add, self.kill, self.kill, self.late, self.late, self.end, self.others]
        acts += [self.check, self.reconcile, self.collect, self.rebuild] + [self.make] * self.fixed
        act = self.chance.choice(acts)
        self.take(act, self.chance.randrange(SLOTS))

    def take(self, act: Callable[[int], bool], slot: int) -> None:
        """Do it, and look at the pods that it was not about."""
        before = self.last
        if not act(slot):
            return
        self.counted[act.__name__] += 1
        self.last = self.look()
        for container, seen in self.last.items():
            if container in before:
                assert seen == before[container], "\n".join(self.story)

    def say(self, words: str) -> None:
        self.story.append(words)

    def make(self, slot: int) -> bool:
        """Another plugin makes an interface; our ADD is still to come."""
        if slot in self.living or slot in self.made:
            return False
        promise = self.chance.choice(["", "", "10M"])
        pod = Pod(slot, self.lives, self.fixed, self.chance.random() < 0.7, promise)
        self.lives += 1
        self.say(f"make {pod.container} in {pod.netns}")
        # The kernel takes the namespace's links away some time after its file is gone.
        self.node.run("sh", "-c", f"while ip link show dev {pod.host or 'none'} 2>/dev/null; do :; done")
        self.node.add_pod_namespace(pod.netns)
        self.made[slot] = pod
        if self.fixed:
            self.node.run("ip", "-batch", "-", stdin=plumbed(pod))
            self.node.in_pod(pod.netns, "ip", "-batch", "-", stdin=plumbed_within(pod))
        return True

    def add(self, slot: int) -> bool:
        """A pod comes."""
        if slot in self.living or (slot not in self.made and not self.make(slot)):
            return False
        pod = self.made.pop(slot)
        self.say(f"ADD {pod.container}")
        pod.result = self.call("ADD", pod)
        assert "code" not in pod.result, (pod.result, "\n".join(self.story))
        self.living[slot] = pod
        before = PLUMBING if self.fixed else None
        keep(self.node, pod.container, self.configuration(pod), pod.result, before=before)
        return True

    def kill(self, slot: int) -> bool:
        """A pod is gone, and nobody has called DEL."""
        if slot not in self.living:
            return False
        pod = self.living.pop(slot)
        self.say(f"gone: {pod.container}")
        self.node.run("ip", "netns", "delete", pod.netns)
        self.dead.append(pod)
        return True

    def late(self, _: int) -> bool:
        """The DEL of one that is gone comes, perhaps once more, perhaps with its path."""
        if not self.dead:
            return False
        pod = self.chance.choice(self.dead)
        path = self.chance.choice(["", f"/run/netns/{pod.netns}"])
        self.say(f"late DEL {pod.container} with {path!r}")
        assert self.call("DEL", pod, path) == {}, "\n".join(self.story)
        if self.chance.random() < 0.5 and self.counted["late"]:
            self.dead.remove(pod)
            self.forget(pod)
        return True

    def end(self, slot: int) -> bool:
        """A pod ends as it should."""
        if slot not in self.living:
            return False
        pod = self.living.pop(slot)
        self.say(f"DEL {pod.container}")
        assert self.call("DEL", pod) == {}
        self.node.run("ip", "netns", "delete", pod.netns)
        self.forget(pod)
        return True

    def others(self, _: int) -> bool:
        """Another plugin's interfaces come or go."""
        name = self.chance.choice(["bwpnobody", "veth0000", "cali-none"])
        kind = {"bwpnobody": "ifb", "veth0000": "veth", "cali-none": "bridge"}[name]
        self.say(f"{name} comes or goes")
        self.node.run("sh", "-c", f"ip link delete {name} 2>/dev/null || ip link add {name} type {kind}")
        return True

    def check(self, _: int) -> bool:
        """All that live are as ADD left them."""
        for pod in self.living.values():
            answer = self.node.call(
                "CHECK", pod.container, self.configuration(pod) | {"prevResult": pod.result}, netns=where(pod)
            )
            assert answer == {}, (pod.container, answer, "\n".join(self.story))
        return bool(self.living)

    def reconcile(self, _: int) -> bool:
        """Nothing that anybody would notice is to be repaired."""
        self.say("reconcile")
        said = self.node.run(self.node.plugin, "reconcile")
        assert "repaired" not in said, (said, "\n".join(self.story))
        return True

    def collect(self, _: int) -> bool:
        """GC with those that the runtime knows."""
        self.say("GC")
        known = [*self.living.values(), *self.dead, *self.made.values()]
        valid = [{"containerID": pod.container, "ifname": "eth0"} for pod in known]
        given = {**network(), "cni.dev/valid-attachments": valid}
        assert self.node.call("GC", "", given) == {}
        return True

    def rebuild(self, _: int) -> bool:
        """Whatever is left in runtimes' caches of those that are gone."""
        if self.chance.random() < 0.5:
            return False
        self.say("rebuild")
        self.node.run("mkdir", "-p", CACHE)
        self.node.run(self.node.plugin, "rebuild", "--cache", CACHE)
        return True

    def call(self, verb: str, pod: Pod, path: str | None = None) -> Document:
        return self.node.call(
            verb, pod.container, self.configuration(pod), netns=where(pod) if path is None else path
        )

    def forget(self, pod: Pod) -> None:
        self.node.run("rm", "-f", f"{CACHE}/cluster-a-{pod.container}-eth0")

    def look(self) -> dict[str, Any]:
        """All that the kernel has of each pod that lives: both ends, addresses, classes, guard."""
        links = {
            link["ifname"]: link for link in self.node.show("ip", "-j", "-d", "link") if "ifname" in link
        }
        ruleset = self.node.show("nft", "-j", "list", "ruleset")["nftables"]
        classes = self.classes()
        found = {pod.container: self.seen(pod, links, ruleset, classes) for pod in self.living.values()}
        early = [pod for pod in self.made.values() if pod.host]
        return found | {f"{pod.container}, before ADD": self.ends(pod, links[pod.host]) for pod in early}

    def seen(self, pod: Pod, links: Document, ruleset: list[Document], classes: dict[str, list[str]]) -> Any:
        end = links[pod.host or pod.result["interfaces"][1]["name"]]
        return {
            **self.ends(pod, end),
            "classes": classes.get(pod.container),
            "guard": elements(ruleset, end["ifname"], pod.result["ips"][0]["address"].partition("/")[0]),
        }

    def ends(self, pod: Pod, end: Document) -> Document:
        port = end.get("linkinfo", {}).get("info_slave_data", {})
        its = {key: port.get(key) for key in ("learning", "flood", "group_fwd_mask", "multicast_router")}
        flags = {"UP", "LOWER_UP"} & set(end["flags"])
        return {
            "within": without_carrier(self.node.in_pod(pod.netns, "sh", "-c", WITHIN)),
            "end": (end["ifindex"], end.get("master"), end["address"], sorted(flags), its),
        }

    def classes(self) -> dict[str, list[str]]:
        """The classes of the tree by container, as they stand."""
        if self.enforcement != "node":
            return {}
        told = json.loads(self.node.run(self.node.plugin, "ledger", "--json"))
        shown = self.node.run("tc", "class", "show", "dev", "eth0").splitlines()
        return {
            entry["container"]: [
                line.partition(" burst")[0]
                for line in shown
                if {entry["class"], entry["bestEffort"]} & {*line.split()}
            ]
            for entry in told["attachments"]
        }


WITHIN = (
    "ip -o -4 addr show dev eth0; ip -o link show dev eth0; tc qdisc show dev eth0; tc class show dev eth0"
)


def elements(ruleset: list[Document], end: str, address: str) -> list[str]:
    """The elements of our tables that name a port or an address."""
    found = []
    for entry in ruleset:
        one = entry.get("set") or entry.get("map") or {}
        for element in one.get("elem", ()):
            whole = element["elem"]["val"] if "elem" in element else element
            text = json.dumps(whole)
            if "hops" not in one["name"] and (f'"{end}"' in text or f'"{address}"' in text):
                found.append(f"{one['family']} {one['name']} {text}")
    return sorted(found)


def where(pod: Pod) -> str:
    return f"/run/netns/{pod.netns}"


def plumbed(pod: Pod) -> str:
    """The node's half, as Calico makes it."""
    return (
        f"link add {pod.host} address {HOST_MAC} mtu 1450 type veth"
        f" peer name eth0 address {pod.mac} mtu 1450 netns {pod.netns}\n"
        f"link set {pod.host} up\n"
        f"route add {pod.address}/32 dev {pod.host}\n"
    )


def plumbed_within(pod: Pod) -> str:
    """The pod's half."""
    return (
        f"addr add {pod.address}/32 dev eth0\n"
        "link set eth0 up\n"
        f"route add {GATEWAY}/32 dev eth0\n"
        f"route add default via {GATEWAY}\n"
    )
