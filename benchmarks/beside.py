"""What benchmarks of bringing testbeds up share: the clock, and Mininet, building as many hosts and links.

Mininet runs in a sandbox of its own, so that nothing of it stays. It needs Debian's mininet and bridge-utils.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.providers.netns.sandbox import Sandbox  # noqa: E402

PATIENCE_SECONDS = 1800

# Its arguments are how many bridges there shall be, and how many hosts, each with a link to one of them.
MININET = """
import json, sys, time
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
switches, hosts = int(sys.argv[1]), int(sys.argv[2])
free = lambda: next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemAvailable"))
begin, before = time.monotonic(), free()
net = Mininet(controller=None, switch=LinuxBridge, ipBase="10.0.0.0/8")
bridges = [net.addSwitch(f"s{number}") for number in range(switches)]
for number in range(hosts):
    address = f"10.0.{number // 250}.{number % 250 + 1}/8"
    net.addLink(net.addHost(f"h{number}", ip=address), bridges[number % switches])
net.start()
up, after = time.monotonic(), free()
built = [len(net.hosts), len(net.switches), len(net.links)]
net.stop()
print(json.dumps({"up": up - begin, "down": time.monotonic() - up, "kib": before - after, "built": built}))
"""


# The kernel dismantles network namespaces behind those who end them, all that have ended at a time
# (cleanup_net in net/core/net_namespace.c), and a veth pair goes early, with the first of its two. So when a
# second one is gone, made after the first was, all is that was ended before.
CLEARED = """
for turn in first second; do
    ip netns add end && ip link add $turn type veth peer name there netns end && ip netns delete end || exit
    while [ -e /proc/sys/net/ipv4/conf/$turn ]; do sleep 0.05; done
done
"""


class Measured(NamedTuple):
    """What it took to bring something up and down."""

    up: float  # seconds
    down: float  # seconds
    mebibytes: float  # that were no longer available when it was up


def build_plugin() -> None:
    """Build the plugin, so that no bring-up is the one that does."""
    subprocess.run(
        ["/usr/bin/python3", ROOT / "plugin" / "build.py", "--output", ROOT / "build" / "cni"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def clock(up: Callable[[], None], down: Callable[[], None]) -> Measured:
    """Measure bringing something up, and taking it down."""
    before, begin = available(), time.monotonic()
    up()
    there, after = time.monotonic(), available()
    down()
    return Measured(there - begin, time.monotonic() - there, before - after)


def mininet(switches: int, hosts: int) -> Measured | None:
    """Measure Mininet with so many Linux bridges, hosts and links; None where it is not installed."""
    box = Sandbox.start("mininet.bench")
    try:
        argv = ["/usr/bin/python3", "-", str(switches), str(hosts)]
        done = box.switch.run(argv, stdin=MININET, check=False, timeout=PATIENCE_SECONDS)
    finally:
        box.stop()
    if done.status != 0:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer["built"] == [hosts, switches, hosts], answer
    return Measured(answer["up"], answer["down"], answer["kib"] / 1024)


def clear_up() -> float:
    """Wait until the kernel has dismantled all network namespaces that have ended; return the seconds."""
    box = Sandbox.start("clear.bench")
    try:
        begin = time.monotonic()
        box.switch.run(["mkdir", "-p", "/run/netns"])
        box.switch.run(["sh", "-c", CLEARED])
        return time.monotonic() - begin
    finally:
        box.stop()


def available() -> float:
    """Return how much memory is available, MiB (proc(5), MemAvailable)."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable:"))
