"""What of a way to a device its proxy pod costs, and what the translation; flows and exchanges, by turns.

`translate` carries less than a pod has which its gateway routes (``direct``). Here the same hop is made
without any translation, too: ``plain`` leads from the same pod into a proxy pod with two interfaces, which
does nothing but forward, and on to another address of the device. Nothing of that is rewritten, or seen by a
table in the pod. ``pod`` is translated there, but asked by its own address; ``translate`` is asked by its
service. ``steered`` is the same while one half of the processors goes on from where packets come into the
pod, and the other half from where they leave it (receive packet steering). With ``--bare`` there are no
tables on the gateway, either: plain and direct alone. All have a turn in each round, in another order: one
flow of TCP as fast as it goes, and new exchanges; or, with ``--exchanges``, these alone and for longer, so
that no processor is still busy with a flow of before. Shares are of one round: medians with 95 % intervals
(bootstrap). Needs root, two processors or more, and an idle machine.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from bench.analysis.statistics import draw, percentiles  # noqa: E402
from bench.studies import packets  # noqa: E402
from bench.studies.devices import measuring, ways  # noqa: E402
from bench.studies.ground import ground  # noqa: E402
from bench.studies.machine import look, neighbours, since, spent  # noqa: E402
from bench.studies.packets import End  # noqa: E402
from testbed.access.place import InNamespace, Node, Place  # noqa: E402
from testbed.links import segments  # noqa: E402
from testbed.scenario import connections  # noqa: E402
from testbed.scenario.addressing import UPLINK  # noqa: E402
from testbed.testbed import Testbed  # noqa: E402

ROUNDS, SECONDS, EXCHANGES_SECONDS, ALONE_SECONDS = 16, 2, 0.5, 2.0
OTHER = "172.30.16.121"  # of the device, by which `plain` leads
ENDS = (UPLINK, connections.INTERFACE)  # of a proxy pod
TABLE = "100"  # of routes
DIRECT, PLAIN, POD, TRANSLATE, STEERED = "direct", "plain", "pod", "translate", "steered"
SHARES = (
    *((one, DIRECT) for one in (PLAIN, POD, TRANSLATE, STEERED)),
    *((TRANSLATE, one) for one in (PLAIN, POD)),
)
# /sys shows the network in which it was mounted.
STEER = 'mount -t sysfs sysfs /sys && echo "$1" > "/sys/class/net/$0/queues/rx-0/rps_cpus"'


class Found(NamedTuple):
    """What was found of a way."""

    rate: float  # Gbit/s
    cost: float  # seconds of processors for a gigabyte
    exchange: float  # milliseconds, median of new exchanges by TCP


Turn = dict[str, Found]


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--rounds", type=int, default=ROUNDS, help="(%(default)s)")
    options.add_argument("--seed", type=int, default=0, help="of the orders (%(default)s)")
    options.add_argument("--bare", action="store_true", help="no tables on the gateway")
    options.add_argument("--exchanges", action="store_true", help="no flows")
    asked = options.parse_args()
    chance = random.Random(asked.seed)
    with ground(ways.scenario()) as testbed, measuring.opened(testbed):
        let_plain(testbed)
        leads = asked_by(testbed)
        if asked.bare:
            testbed.nodes[ways.GATEWAY].run(["nft", "flush", "ruleset"])
            leads = {name: leads[name] for name in (DIRECT, PLAIN)}
        if asked.exchanges:
            leads = {name: leads[name] for name in (DIRECT, PLAIN, TRANSLATE) if name in leads}
        orders = (chance.sample([*leads], len(leads)) for _ in range(asked.rounds))
        if asked.exchanges:
            show_exchanges([exchanges(testbed, leads, order) for order in orders])
            return
        rounds = [turn(testbed, leads, order) for order in orders]
    if counted := [one for one in rounds if one]:
        show(counted)


def asked_by(testbed: Testbed) -> dict[str, tuple[str, str]]:
    """Return the address that is asked, and the one where the device listens, by the name of the way."""
    return {
        DIRECT: (ways.ADDRESS, ways.ADDRESS),
        PLAIN: (OTHER, OTHER),
        POD: (proxy(testbed, ways.TRANSLATE).address, ways.ADDRESS),
        TRANSLATE: (measuring.service(testbed, ways.TRANSLATE), ways.ADDRESS),
        STEERED: (measuring.service(testbed, ways.TRANSLATE), ways.ADDRESS),
    }


def proxy(testbed: Testbed, connection: str) -> InNamespace:
    """Return a connection's proxy pod."""
    found = testbed.networks[f"{connections.service_of(connection)}-1"]
    assert isinstance(found, InNamespace)
    return found


def let_plain(testbed: Testbed) -> None:
    """Let the proxy pod of `relay` forward, and lead what goes to the device's other address through it."""
    own, near, pod = testbed.nodes[ways.GATEWAY], testbed.networks[ways.NEAR], proxy(testbed, ways.RELAY)
    ends = {one["ifname"]: one for one in pod.run(["ip", "-j", "address"]).json()}
    sides = sides_of(own, pod)
    bridge = sides[1].bridge
    back = ends[connections.INTERFACE]["addr_info"][0]["local"]
    testbed.provider.devices[ways.DEVICE].place.run(["ip", "address", "add", f"{OTHER}/24", "dev", UPLINK])
    near.run(["ip", "route", "add", OTHER, "via", pod.address])
    for name in ENDS:
        pod.run(["tee", f"/proc/sys/net/ipv4/conf/{name}/forwarding"], stdin="1")
    pod.run(["nft", "flush", "ruleset"])
    own.run(["tee", f"/proc/sys/net/ipv4/conf/{bridge}/rp_filter"], stdin="2")
    own.run(["ip", "rule", "add", "from", OTHER, "to", near.address, "iif", "eth1", "lookup", TABLE])
    own.run(["ip", "route", "add", near.address, "via", back, "dev", bridge, "table", TABLE])
    both = ((near.address, OTHER), (OTHER, near.address))
    opened = [
        f"insert rule {chain} ip saddr {source} ip daddr {destination} accept\n"
        for chain in (*measuring.CLOSED, f"inet {segments.TABLE} postrouting")
        for source, destination in both
    ]
    # The guard lets packets to and from a pod's own address pass, and no others.
    for side, address in zip(sides, (OTHER, near.address), strict=True):
        opened += [
            f"add element bridge concorde frames {{ {side.port} . {side.mac} . {address} }}\n",
            f"add element ip concorde ways {{ {side.bridge} . {address} }}\n",
        ]
    own.run(["nft", "-f", "-"], stdin="".join(opened))


class Side(NamedTuple):
    """Where an interface of a pod is at its node."""

    port: str
    bridge: str
    mac: str  # of the pod's end


def sides_of(own: Node, pod: Place) -> list[Side]:
    """Return where both interfaces of a proxy pod are."""
    inside = {one["ifname"]: one for one in pod.run(["ip", "-j", "link"]).json()}
    outside = {one["ifindex"]: one for one in own.run(["ip", "-j", "link"]).json()}
    ports = ((inside[name], outside[inside[name]["link_index"]]) for name in ENDS)
    return [Side(port["ifname"], port["master"], end["address"]) for end, port in ports]


def steer(testbed: Testbed, on: bool) -> None:
    """Let two halves of the processors share what the proxy pod of `translate` passes on, or nobody."""
    own, pod, count = testbed.nodes[ways.GATEWAY], proxy(testbed, ways.TRANSLATE), os.cpu_count() or 1
    out = sides_of(own, pod)[1].port
    for place, interface, first in ((pod, ENDS[0], 0), (own, out, 1)):
        mask = sum(1 << one for one in range(first, count, 2)) if on else 0
        place.run(["unshare", "--mount", "sh", "-c", STEER, interface, f"{mask:x}"])


def turn(testbed: Testbed, leads: dict[str, tuple[str, str]], order: Sequence[str]) -> Turn:
    """Return what a flow of each way carried and cost; nothing when others were at work meanwhile."""
    found: Turn = {}
    near, device = testbed.networks[ways.NEAR], testbed.provider.devices[ways.DEVICE].place
    port = ways.PORTS[ways.STREAM]
    for name in order:
        steer(testbed, name == STEERED)
        asked, listening = leads[name]
        median = exchange(testbed, asked, EXCHANGES_SECONDS)
        before = look()
        brought = packets.throughput(near, End(device, listening, port, (asked, port)), SECONDS)
        beside = since(before, look())
        for words in neighbours(beside):
            print(f"not counted: {name}: {words}", flush=True)
            return {}
        busy = spent(*beside.readings).busy_s
        found[name] = Found(brought.bits_per_second / 1e9, busy / brought.bytes * 1e9, median)
    print(", ".join(f"{name} {one.rate:.2f}" for name, one in found.items()), flush=True)
    return found


def exchange(testbed: Testbed, asked: str, seconds: float) -> float:
    """Return the median of new exchanges by TCP, in milliseconds."""
    by_tcp, _ = testbed.scenario.requests
    near = testbed.networks[ways.NEAR]
    return (measuring.exchanged(testbed, by_tcp, near, asked, seconds).took.p50_s or math.nan) * 1000


def exchanges(testbed: Testbed, leads: dict[str, tuple[str, str]], order: Sequence[str]) -> dict[str, float]:
    """Return the median of each way's exchanges, without flows."""
    found = {}
    for name in order:
        steer(testbed, name == STEERED)
        found[name] = exchange(testbed, leads[name][0], ALONE_SECONDS)
    return found


def show_exchanges(rounds: Sequence[dict[str, float]]) -> None:
    """Print medians of ways, and of the shares of one in another."""
    print(f"{len(rounds)} rounds, {ALONE_SECONDS:g} s each: medians; shares with 95 % intervals")
    for name in rounds[0]:
        print(f"{name:10} {np.median([one[name] for one in rounds]):6.3f} ms")
    for name, of in SHARES:
        if name in rounds[0] and of in rounds[0]:
            print(f"{name} / {of}: {between(np.array([one[name] / one[of] for one in rounds]))}")


def show(rounds: Sequence[Turn]) -> None:
    """Print medians of ways, and of the shares of one in another."""
    print(f"{len(rounds)} rounds, {SECONDS} s each: medians; shares with 95 % intervals of their medians")
    for name in rounds[0]:
        rate, cost, exchange = np.median([one[name] for one in rounds], axis=0)
        print(f"{name:10} {rate:6.2f} Gbit/s {cost:6.2f} s/GB {exchange:6.3f} ms")
    for name, of in SHARES:
        if name in rounds[0] and of in rounds[0]:
            shares = np.array([one[name] for one in rounds]) / np.array([one[of] for one in rounds])
            told = zip(("rate", "processors a byte", "exchange"), shares.T, strict=True)
            print(f"{name} / {of}: " + ", ".join(f"{what} {between(values)}" for what, values in told))


def between(found: np.ndarray) -> str:
    """Return a median with its interval."""
    low, high = percentiles(np.median(found[draw(len(found), 1)], axis=1))
    return f"{np.median(found):.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
