"""Lets happen to one node's overlay what may, at random, and sees that the kernel's entries come right again.

Run in a network namespace of its own, with wishes as JSON on standard input. etcd and the resolver run
beside it; all other nodes are entries of the store, behind addresses where nobody is. After some events there
is quiet; soon the kernel then holds what the store justifies, and no more. What happened is
printed as JSON: how many events of each kind, the longest time until all was right, and what was wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

Json = dict[str, Any]

OWN, HERE, PORT = "10.1.1.0/24", "192.168.1.1", 4001
OWN_MAC = "0e:00:00:00:00:01"
SUBNETS = "/coreos.com/network/subnets/"
NODES = range(2, 26)  # of the other nodes' subnets: 10.1.NUMBER.0/24
PODS = range(1, 4)  # of each, that packets are sent to; few, for a host has 1,024 neighbours (gc_thresh3)
MACS = [f"0e:00:00:00:01:{number:02x}" for number in range(40)]
ADDRESSES = [f"192.168.1.{number}" for number in range(100, 108)]
UNKNOWN = [f"10.1.{net}.{pod}" for net in (200, 201, 202) for pod in range(1, 6)]
JUNK = [
    "",
    "{",
    "[]",
    "null",
    '{"PublicIP":"192.168.1.100"}',
    '{"PublicIP":5,"BackendType":"vxlan"}',
    "é" * 99,
]
UNHEARD = "the kernel said more than could be heard"
PATIENCE_SECONDS = 60.0  # others may use the processors, so how long it takes is told and not judged here
SOON = 0.01


class WrongError(Exception):
    """The kernel does not hold what the store justifies."""


class World:
    """One node, its resolver, its etcd, and chance."""

    def __init__(self, wishes: Json) -> None:
        self.wishes = wishes
        self.l2, self.l3 = wishes["l2"], wishes["l3"]
        self.chance = random.Random(wishes["seed"])
        self.directory = Path(wishes["directory"])
        self.counted: Counter[str] = Counter()
        self.slowest = 0.0
        self.unheard = 0
        self.story: list[str] = []
        self.packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.packets.setblocking(False)
        self.store_is_up = True
        self.resolver: subprocess.Popen[bytes] | None = None
        self.etcd = self.start_etcd()
        self.start_resolver()

    def start_etcd(self) -> subprocess.Popen[bytes]:
        url, peer = f"http://{HERE}:{PORT}", "http://127.0.0.1:4002"
        with (self.directory / "etcd.log").open("ab") as log:
            started = subprocess.Popen(
                [self.wishes["etcd"], f"--data-dir={self.directory}/etcd", f"--listen-client-urls={url}",
                 f"--advertise-client-urls={url}", f"--listen-peer-urls={peer}", "--unsafe-no-fsync",
                 f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
                 "--heartbeat-interval=10", "--election-timeout=100", "--log-level=error"],
                stdout=log, stderr=log,
            )  # fmt: skip
        self.until(self.store_answers, PATIENCE_SECONDS, "etcd answers")
        return started

    def store_answers(self) -> bool:
        with contextlib.suppress(OSError):
            return (
                "kvs" in self.ask("kv/range", {"key": coded("\0"), "range_end": coded("\0"), "limit": "1"})
                or True
            )
        return False

    def start_resolver(self) -> None:
        settings = {
            "device": "flannel.1", "network": "10.1.0.0/16", "subnet": OWN, "address": HERE,
            "l2": self.l2, "l3": self.l3, "store": f"http://{HERE}:{PORT}", "buffer": self.wishes["buffer"],
            "lifetime": 60, "refresh": self.wishes["refresh"],
        }  # fmt: skip
        file = self.directory / "resolver.json"
        file.write_text(json.dumps(settings), encoding="utf-8")
        with (self.directory / "resolver.log").open("ab") as log:
            command = ["/usr/bin/python3", "-IS", self.wishes["edge"], "resolver", str(file)]
            self.resolver = subprocess.Popen(command, stdout=log, stderr=log)

    def said(self) -> str:
        """What resolvers have said."""
        return (self.directory / "resolver.log").read_text(encoding="utf-8")

    def ask(self, path: str, body: Json) -> Json:
        connection = HTTPConnection(HERE, PORT, timeout=PATIENCE_SECONDS)
        try:
            connection.request("POST", f"/v3/{path}", json.dumps(body))
            answer: Json = json.loads(connection.getresponse().read())
            return answer
        finally:
            connection.close()

    # What may happen. Of the store only while it is up.

    def subnet_added_or_changed(self) -> None:
        number = self.chance.choice(NODES)
        value = {
            "PublicIP": self.chance.choice(ADDRESSES),
            "BackendType": "vxlan",
            "BackendData": {"VtepMAC": self.chance.choice(MACS)},
        }
        self.story.append(f"10.1.{number}.0: {value}")
        self.ask("kv/put", {"key": key(number), "value": coded(json.dumps(value))})

    def mac_changed(self) -> None:
        """A node is back with another MAC; its address and subnet stay."""
        known = self.stored()
        if known:
            number = self.chance.choice(sorted(known))
            value = {
                "PublicIP": known[number][1],
                "BackendType": "vxlan",
                "BackendData": {"VtepMAC": self.chance.choice(MACS)},
            }
            self.ask("kv/put", {"key": key(number), "value": coded(json.dumps(value))})

    def lease_over(self) -> None:
        """A subnet is bound to one of etcd's leases, which ends."""
        number = self.chance.choice(NODES)
        granted = self.ask("lease/grant", {"TTL": "60"})["ID"]
        value = {"PublicIP": ADDRESSES[0], "BackendType": "vxlan", "BackendData": {"VtepMAC": MACS[0]}}
        bound = {"key": key(number), "value": coded(json.dumps(value)), "lease": granted}
        self.ask("kv/put", bound)
        self.send(f"10.1.{number}.{self.chance.choice(PODS)}")
        self.ask("lease/revoke", {"ID": granted})

    def own_lease_over(self) -> None:
        self.ask("kv/deleterange", {"key": coded(f"{SUBNETS}10.1.1.0-24")})

    def part_of_own_written(self) -> None:
        """Somebody has leased a part of the node's own subnet; its pods stay here."""
        part = self.chance.choice(("10.1.1.0-25", "10.1.1.128-25", "10.1.1.7-32"))
        value = {"PublicIP": ADDRESSES[1], "BackendType": "vxlan", "BackendData": {"VtepMAC": MACS[1]}}
        self.ask("kv/put", {"key": coded(f"{SUBNETS}{part}"), "value": coded(json.dumps(value))})

    def junk_written(self) -> None:
        value = coded(self.chance.choice(JUNK))
        self.ask("kv/put", {"key": key(self.chance.choice(NODES)), "value": value})

    def history_compacted(self) -> None:
        revision = self.ask("kv/range", {"key": key(1)})["header"]["revision"]
        self.ask("kv/compaction", {"revision": revision})

    def known_missed(self) -> None:
        self.send(f"10.1.{self.chance.choice(NODES)}.{self.chance.choice(PODS)}")

    def unknown_missed(self) -> None:
        self.send(self.chance.choice(UNKNOWN))

    def neighbours_flushed(self) -> None:
        # Its status does not matter: the resolver may have removed one of them first.
        subprocess.run(["ip", "neigh", "flush", "dev", "flannel.1"], check=False, capture_output=True)

    def resolver_killed(self) -> None:
        if self.resolver is not None:
            self.resolver.kill()
            self.resolver.wait()
            self.resolver = None

    def deafened(self) -> None:
        """More misses than the resolver has room for, while it hears nothing."""
        if self.resolver is None:
            return
        self.resolver.send_signal(signal.SIGSTOP)
        os.waitpid(self.resolver.pid, os.WUNTRACED)
        before, said = drops(), self.said().count(UNHEARD)
        for number in NODES:
            for pod in PODS:
                self.send(f"10.1.{number}.{pod}")
        lost = drops() > before
        self.resolver.send_signal(signal.SIGCONT)
        if lost:  # which it finds out, unless it is killed before
            self.unheard += 1
            self.until(lambda: self.said().count(UNHEARD) > said, PATIENCE_SECONDS, UNHEARD)

    def store_stopped(self) -> None:
        if self.store_is_up:
            self.etcd.kill()
            self.etcd.wait()
            self.store_is_up = False

    def send(self, address: str) -> None:
        with contextlib.suppress(OSError):
            self.packets.sendto(b"hello", (address, 9))

    # Quiet, and what is right then.

    def quiet(self) -> None:
        """Let all run that was stopped, and see that the entries come right. Raises WrongError."""
        if not self.store_is_up:
            self.etcd = self.start_etcd()
            self.store_is_up = True
        if self.resolver is None:
            self.start_resolver()
        begun = time.monotonic()
        while True:
            wrong = self.differences()
            late = time.monotonic() - begun
            if not wrong:
                self.slowest = max(self.slowest, late)
                return
            if late > PATIENCE_SECONDS:
                raise WrongError("; ".join(wrong))
            time.sleep(SOON)

    def differences(self) -> list[str]:
        """Return in what the kernel differs from what the store justifies, after packets to some pods."""
        known = self.stored()
        if OWN_MAC not in self.own():
            return ["the own lease is not in the store"]
        behind = dict(known.values())  # the last written counts
        asked = self.chance.sample(sorted(known), min(4, len(known)))
        for number in asked:
            self.send(f"10.1.{number}.1")
        time.sleep(0.002)
        return [
            *self.wrong_forwarding(known, behind, asked),
            *self.wrong_neighbours(known, asked),
            *self.wrong_routes(known),
        ]

    def wrong_forwarding(self, known: Known, behind: dict[str, str], asked: list[int]) -> list[str]:
        shown = {one["mac"]: one["dst"] for one in run("bridge", "-j", "fdb", "show", "dev", "flannel.1")}
        needed = set(behind) if self.l2 == "ahead" else {known[number][0] for number in asked}
        wrong = [f"{mac} behind {to}" for mac, to in shown.items() if behind.get(mac) != to]
        return wrong + [f"no entry of {mac}" for mac in needed - shown.keys()]

    def wrong_neighbours(self, known: Known, asked: list[int]) -> list[str]:
        shown = {
            one["dst"]: one["lladdr"]
            for one in run("ip", "-j", "-4", "neigh", "show", "dev", "flannel.1")
            if "lladdr" in one
        }
        if self.l3 == "ahead":
            right = {f"10.1.{number}.0": mac for number, (mac, _) in known.items()}
            return [f"neighbours {shown}, not {right}"] if shown != right else []
        macs = {number: mac for number, (mac, _) in known.items()}
        wrong = [f"{at} at {mac}" for at, mac in shown.items() if macs.get(int(at.split(".")[2])) != mac]
        return wrong + [f"nobody at 10.1.{number}.1" for number in asked if f"10.1.{number}.1" not in shown]

    def wrong_routes(self, known: Known) -> list[str]:
        shown = {
            one["dst"]: one.get("gateway") for one in run("ip", "-j", "route", "show", "dev", "flannel.1")
        }
        right: dict[str, str | None] = {"10.1.0.0/16": None}
        if self.l3 == "ahead":
            right = {f"10.1.{number}.0/24": f"10.1.{number}.0" for number in known}
        return [f"routes {shown}, not {right}"] if shown != right else []

    def stored(self) -> Known:
        """Return MAC and address of each other node whose lease is one, the last written last."""
        found = {}
        for name, text in self.listed().items():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                value = json.loads(text)
                mac = value["BackendData"]["VtepMAC"]
                if not name.startswith("10.1.1."):
                    found[int(name.split(".")[2])] = (mac, value["PublicIP"])
        return found

    def own(self) -> str:
        return self.listed().get("10.1.1.0-24", "")

    def listed(self) -> dict[str, str]:
        end = coded(SUBNETS[:-1] + "0")
        order = {"sort_order": "ASCEND", "sort_target": "MOD"}
        pairs = self.ask("kv/range", {"key": coded(SUBNETS), "range_end": end, **order}).get("kvs", [])
        return {decoded(one["key"])[len(SUBNETS) :]: decoded(one.get("value", "")) for one in pairs}

    def until(self, condition: Callable[[], bool], seconds: float, words: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise WrongError(f"not within {seconds:g} s: {words}")
            time.sleep(SOON)

    def run(self, events: int) -> None:
        kinds: list[tuple[int, Callable[[], None]]] = [
            (250, self.subnet_added_or_changed), (60, self.mac_changed), (60, self.lease_over),
            (10, self.own_lease_over), (10, self.part_of_own_written), (20, self.junk_written),
            (10, self.history_compacted),
            (380, self.known_missed), (140, self.unknown_missed), (20, self.neighbours_flushed),
            (8, self.resolver_killed), (12, self.deafened), (5, self.store_stopped),
        ]  # fmt: skip
        of_the_store = {one.__name__ for _, one in kinds[:7]}
        left = events
        while left > 0:
            self.story = []
            for _ in range(min(left, self.chance.randrange(1, 40))):
                (event,) = self.chance.choices([one for _, one in kinds], [weight for weight, _ in kinds])
                if event.__name__ in of_the_store and not self.store_is_up:
                    event = self.known_missed
                self.story.append(event.__name__)
                self.counted[event.__name__] += 1
                event()
                left -= 1
            self.quiet()

    def end(self) -> None:
        for one in (self.resolver, self.etcd):
            if one is not None:
                one.kill()
                one.wait()


Known = dict[int, tuple[str, str]]


def key(number: int) -> str:
    return coded(f"{SUBNETS}10.1.{number}.0-24")


def coded(text: str) -> str:
    return b64encode(text.encode()).decode()


def decoded(text: str) -> str:
    return b64decode(text).decode()


def run(*command: str) -> list[Json]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [one for one in json.loads(done.stdout or "[]") if one]


def drops() -> int:
    """Return what the kernel has said to who listens to groups here, and there was no room for."""
    rows = [line.split() for line in Path("/proc/net/netlink").read_text(encoding="ascii").splitlines()[1:]]
    return sum(int(row[8]) for row in rows if int(row[3], 16))


def main() -> None:
    wishes = json.load(sys.stdin)
    world = World(wishes)
    wrong = ""
    try:
        world.quiet()
        world.slowest = 0.0
        world.run(wishes["events"])
    except Exception as error:  # whatever went wrong is to be told
        wrong = f"{error!r} after {world.story}"
    alive = world.resolver is not None and world.resolver.poll() is None
    log = world.said()
    world.end()
    told = {
        "counted": world.counted, "slowest_s": world.slowest, "wrong": wrong, "alive": alive,
        "unheard": world.unheard, "log": log,
    }  # fmt: skip
    os.write(1, json.dumps(told).encode())


if __name__ == "__main__":
    main()
