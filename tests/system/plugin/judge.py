"""What became of frames that a pod sent: who saw them, whose class counted them, what they changed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.studies.promise.attacks import CONTAINED
from bench.studies.promise.probes.programs import inject
from tests.system.plugin.frame_kinds import Position, allowed, link_local, people, pod_mac, required, summary
from tests.system.plugin.frames import Frames
from tests.system.plugin.overhear import Heard
from tests.system.plugin.overlapped import PORT, Overlapped
from tests.system.plugin.uplinks import HOST

OVERHEAR, INJECT = str(Path(__file__).with_name("overhear.py")), inject.__file__
ATTACKER = "A-2"
PLACES = {
    "A-1": ("/run/netns/A-1", "eth0"),
    "B-1": ("/run/netns/B-1", "eth0"),
    "A-3": ("/run/netns/A-3", "eth0"),
    "B-2": ("/run/netns/B-2", "eth0"),
    "bridge": ("/proc/1/ns/net", "cni-a"),  # what gets past the port and up to the node
    "wire": ("/run/netns/two", "eth0"),
}
GATEWAYS = ("172.16.1.1", "172.17.1.1", "172.16.2.1", "172.17.2.1")
NOISE = 3000  # bytes: ARP and the like
PATIENCE = 60  # seconds until a frame that must arrive is lost
IMPATIENCE = 0.5  # the same where a fault is sure and only its cause is looked for
BISECTIONS = 3  # how many batches with faults that name no frame are traced to one; each takes seconds
# Last in the input hook, whatever a guard does: UDP at a VTEP's port that no other node sent, and what a
# bridge's port, which has no address, gives the node itself.
TRAP = """
table inet judge {
    counter tunnelled { }
    counter aside { }
    chain input {
        type filter hook input priority 1000;
        udp dport { PORTS } ip saddr != OTHER counter name tunnelled
        iifname "veth*" counter name aside
    }
}
"""


@dataclass
class Judge:
    """Sends frames as the attacker and says what is wrong with what became of them."""

    pair: Overlapped
    position: Position
    last: Mapping[str, Frames]  # place -> a frame that must get there: after it, nothing more is awaited
    classes: Mapping[str, str] = field(default_factory=dict)  # class in which nothing may be -> whose it is

    def __enter__(self) -> Judge:
        """Begin to listen."""
        self.refused: set[int] = set()  # serials of what the attacker's own kernel did not send
        for side, other in (("one", "two"), ("two", "one")):
            ports = ", ".join(map(str, PORT.values()))
            trap = TRAP.replace("PORTS", ports).replace("OTHER", HOST[other])
            self.pair.on(side, "nft", "-f", "-", stdin=trap)
        self.places = {name: place for name, place in PLACES.items() if name in self.last}
        arguments = [f"{name},{namespace},{link}" for name, (namespace, link) in self.places.items()]
        self.listener = subprocess.Popen(
            self.pair.node.argv("/usr/bin/python3", OVERHEAR, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.listener.stdout is not None
        assert self.listener.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        """Stop listening."""
        self.listener.communicate()

    def verdict(self, frames: Sequence[Frames], at_once: int) -> list[str]:
        """Send all, so many rows at once; what is wrong, each fault with a frame that is guilty of it."""
        found: list[str] = []
        bisections = BISECTIONS
        for start in range(0, len(frames), at_once):
            batch = frames[start : start + at_once]
            named, unnamed = self.faults(batch)
            found += named
            if unnamed and bisections:
                bisections -= 1
                found += self.traced(batch, unnamed)
            elif unnamed:
                found += unnamed
        return found

    def traced(self, batch: Sequence[Frames], unnamed: list[str]) -> list[str]:
        """A frame that alone does what a batch did, if there is one."""
        while len(batch) > 1:
            half = len(batch) // 2
            for part in (batch[:half], batch[half:]):
                faults = self.faults(part, IMPATIENCE)[1]
                if faults:
                    batch, unnamed = part, faults
                    break
            else:
                return [f"{fault}, by several frames together" for fault in unnamed]
        (guilty,) = batch
        return [f"{fault}, by {guilty.serial} ({summary(guilty.row)})" for fault in unnamed]

    def faults(self, batch: Sequence[Frames], patience: float = PATIENCE) -> tuple[list[str], list[str]]:
        """What is wrong after these frames: of which the frame is known, and of which it is not."""
        before = self.pair.settled() if self.classes else {}
        heard = self.exchange(batch, patience)
        after = self.pair.settled() if self.classes else {}
        rows = {sent.serial: sent for sent in batch}
        named = list(dict.fromkeys([*self.strangers(heard, rows), *self.lost(heard, batch)]))
        unnamed = [
            f"{after[name] - before[name]} bytes are in the class of {whose}"
            for name, whose in self.classes.items()
            if after[name] - before[name] > (NOISE if whose == "nobody" else 0)
        ]
        return named, [
            *unnamed,
            *self.poisoned(),
            *self.moved(),
            *self.routes(),
            *self.routers(),
            *self.trapped(),
        ]

    def exchange(self, batch: Sequence[Frames], patience: float) -> list[Heard]:
        """Send, and hear what arrives anywhere."""
        assert self.listener.stdin is not None
        assert self.listener.stdout is not None
        awaited = {place: sent.serial for place, sent in self.last.items()}
        print(json.dumps({"last": awaited, "seconds": patience}), file=self.listener.stdin, flush=True)
        each = [(sent.serial, frame) for sent in [*batch, *self.last.values()] for frame in sent.frames]
        spec = json.dumps({"frames": [frame for _, frame in each]})
        told = json.loads(contained(self.pair, spec))
        self.refused |= {each[at][0] for at in told["refused"]}
        return [tuple(one) for one in json.loads(self.listener.stdout.readline())]

    def strangers(self, heard: list[Heard], rows: Mapping[int, Frames]) -> Iterator[str]:
        """Frames where they have no business."""
        for place, serial, begin in heard:
            row = rows[serial].row if serial is not None and serial in rows else None
            who = f"{serial} ({summary(row)})" if row else f"{serial}, or a part of it,"
            if place == "wire" and is_to_vtep(bytes.fromhex(begin)):
                yield f"{who} left the node for a VTEP's port"
            if row and place not in allowed(row, self.position):
                yield f"{who} was seen at {place}"

    def lost(self, heard: list[Heard], batch: Sequence[Frames]) -> Iterator[str]:
        """Frames that should have arrived."""
        seen = {(place, serial) for place, serial, _ in heard}
        for sent in batch:
            place = required(sent.row, self.position)
            if place and (place, sent.serial) not in seen and sent.serial not in self.refused:
                yield f"{sent.serial} ({summary(sent.row)}) never came to {place}"
        for place, sent in self.last.items():
            if (place, sent.serial) not in seen:
                yield f"an ordinary frame never came to {place} after {batch[0].serial} to {batch[-1].serial}"

    def poisoned(self) -> Iterator[str]:
        """Neighbour entries that say another's hardware address; they are deleted."""
        truth = {
            address: mac for mac, address in reversed(people(self.position).values())
        }  # pods come before switches
        truth |= {address: pod_mac(address) for address in GATEWAYS}
        truth |= {link_local(mac): mac for mac in [*truth.values()]}
        node, far = self.pair.node, self.pair.far
        for where, pod in ((node, ""), (node, "A-1"), (node, "B-1"), (far, ""), (far, "A-3"), (far, "B-2")):
            for entry in where.show("ip", "-j", "neigh", "show", pod=pod):
                on_link = pod or entry["dev"].startswith("cni-")
                if on_link and entry.get("lladdr", truth.get(entry["dst"])) != truth.get(entry["dst"]):
                    words = ("ip", "neigh", "del", entry["dst"], "dev", entry["dev"])
                    _ = where.in_pod(pod, *words) if pod else where.run(*words)
                    yield f"{pod or 'the node'} has {entry['dst']} at {entry['lladdr']}"

    def moved(self) -> Iterator[str]:
        """Forwarding entries of a bridge at a port that is not theirs; they are deleted."""
        ports = {people(self.position)[name][0]: self.pair.ports.get(pod) for name, pod in PODS.items()}
        for entry in self.pair.node.show("bridge", "-j", "fdb", "show"):
            mac, port = entry["mac"], entry["ifname"]
            learned = entry.get("master", "").startswith("cni-") and entry.get("state") != "permanent"
            if learned and ports.get(mac) != port:
                self.pair.node.run("bridge", "fdb", "del", mac, "dev", port, "master")
                yield f"the bridge has {mac} at {port}"

    def routes(self) -> Iterator[str]:
        """Routes that a router advertisement made; they are deleted. Another runtime's bridge is its own."""
        for pod in () if self.position == "container" else ("", "A-1"):
            show = ("ip", "-j", "-6", "route", "show", "proto", "ra")
            if self.pair.node.show(*show, pod=pod):
                flush = ("ip", "-6", "route", "flush", "proto", "ra")
                _ = self.pair.node.in_pod(pod, *flush) if pod else self.pair.node.run(*flush)
                yield f"{pod or 'the node'} has a router that was advertised"

    def routers(self) -> Iterator[str]:
        """Ports that a bridge takes for a multicast router's, and sends all groups' packets to; set right."""
        for shown in self.pair.node.show("bridge", "-j", "-d", "mdb", "show"):
            ours = [ports for bridge, ports in shown["router"].items() if bridge.startswith("cni-")]
            for port in (entry["port"] for ports in ours for entry in ports):
                for kind in "01":  # to none, and back to what it finds out
                    self.pair.node.run("bridge", "link", "set", "dev", port, "mcast_router", kind)
                yield f"the bridge takes {port} for a multicast router's"

    def trapped(self) -> Iterator[str]:
        """What reached a VTEP's port and no other node sent, or came to the node past its bridge."""
        for side in HOST:
            shown = json.loads(
                self.pair.on(side, *["nft", "-j", "reset", "counters", "table", "inet", "judge"])
            )
            for counter in (entry["counter"] for entry in shown["nftables"] if "counter" in entry):
                if counter["packets"]:
                    yield f"{counter['packets']} packets {TRAPPED[counter['name']]} node {side}"


TRAPPED = {"tunnelled": "reached a VTEP of", "aside": "came in by a port of the bridge itself of"}
PODS = {"own": ATTACKER, "neighbour": "A-1", "other cluster": "B-1"}


def is_to_vtep(frame: bytes) -> bool:
    """Whether a frame on the wire is UDP to a VTEP's port, and not from a node."""
    if frame[12:14] != b"\x08\x00" or frame[23] != 17 or int.from_bytes(frame[20:22], "big") & 0x1FFF:
        return False
    end = 14 + 4 * (frame[14] & 15)
    source = ".".join(map(str, frame[26:30]))
    return source not in HOST.values() and int.from_bytes(frame[end + 2 : end + 4], "big") in PORT.values()


def contained(pair: Overlapped, spec: str) -> str:
    """What the attacker's program says, run with CAP_NET_RAW and nothing else."""
    return pair.node.run(*attacking(), stdin=spec + "\n")


def attacking() -> list[str]:
    """How the attacker's program is run on the node."""
    return ["nsenter", f"--net=/run/netns/{ATTACKER}", *CONTAINED, "/usr/bin/python3", INJECT]
