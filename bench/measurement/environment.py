"""What a reviewer must know of the machine and the testbed: host, kernel, processors, tools, kernel state.

The list follows flent's (``flent/metadata.py``): what turned out to explain odd results. Whatever cannot be
read is recorded as such, never left out in silence.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.access import batch
from testbed.access.clocks import Clock
from testbed.access.place import CommandError, Place, Result, in_parallel
from testbed.networks import containers
from testbed.resources import HOME
from testbed.scenario import addressing
from testbed.testbed import Testbed

TOOLS = {
    "ip": ["ip", "-V"],
    "tc": ["tc", "-V"],
    "nft": ["nft", "--version"],
    "iperf3": ["iperf3", "--version"],
    "ethtool": ["ethtool", "--version"],
    "nsenter": ["nsenter", "--version"],
    "python": ["/usr/bin/python3", "--version"],
}
SYSCTLS = (
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/netdev_max_backlog",
    "net/core/default_qdisc",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_notsent_lowat",
    "net/ipv4/tcp_recovery",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_timestamps",
)
LOOKS_AT_NODE = {
    "nft": ["nft", "-j", "list", "ruleset"],
    "system": ["uname", "-srvm"],
    "processors": ["grep", "model name", "/proc/cpuinfo"],
}
Environment = dict[str, Any]


def describe(testbed: Testbed, clocks: Mapping[str, Clock]) -> Environment:
    """Return everything about host, tools, nodes and pods as data for ``environment.json``."""
    scenario = testbed.scenario
    places = [*testbed.pods, *testbed.containers]
    # A pod's network is looked at from its node, where that is possible: kubectl exec takes its time.
    inside = {name: testbed.networks.get(name, testbed.place(name)) for name in places}
    nodes = dict(
        zip(
            testbed.nodes,
            in_parallel(lambda name: _node(testbed, name), testbed.nodes),
            strict=True,
        )
    )
    pods = dict(
        zip(
            places,
            in_parallel(lambda place: _pod(_look(place, _looks_at_pod())), inside.values()),
            strict=True,
        )
    )
    return {
        "host": _host(),
        "tools": _tools(next(iter(testbed.nodes.values()))),
        "harness": _harness(),
        "addresses": {name: testbed.place(name).address for name in places},
        "mtu": {"underlay": scenario.underlay.mtu, "pod": addressing.pod_mtu(scenario)},
        "container_bridge": containers.BRIDGE,
        "overlay": testbed.overlay,
        "clusters": testbed.facts,
        "clocks": {name: asdict(clock) for name, clock in clocks.items()},
        "nodes": nodes,
        "pods": pods,
    }


def _host() -> Environment:
    processors = [
        line.partition(":")[2].strip()
        for line in _read("/proc/cpuinfo").splitlines()
        if line.startswith("model name")
    ]
    return {
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "machine": platform.machine(),
        "distribution": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "processors": processors or ["unknown"],
        "processors_usable": len(os.sched_getaffinity(0)),
        "frequency_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": os.getloadavg(),
        "root": os.geteuid() == 0,
    }


def _harness() -> Environment:
    packages = ("matplotlib", "numpy", "pandas", "pyarrow", "pydantic")
    return {
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": sys.version.split()[0],
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(HOME), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _tools(node: Place) -> Environment:
    return {name: _text(said).partition("\n")[0].strip() for name, said in _look(node, TOOLS).items()}


def _node(testbed: Testbed, name: str) -> Environment:
    node, uplink = testbed.nodes[name], addressing.uplink(testbed.scenario, name)
    said = _look(node, _looks_at_pod(uplink) | LOOKS_AT_NODE)
    return {
        **_pod(said),
        "nft": _data(said["nft"]),
        "system": _text(said["system"]),
        "processors": _text(said["processors"]).splitlines(),
    }


def _looks_at_pod(interface: str = "eth0") -> dict[str, list[str]]:
    """Return the commands that show a network namespace, by what they show."""
    return {
        "links": ["ip", "-d", "-j", "-s", "address", "show"],
        "routes": ["ip", "-j", "route", "show"],
        "qdiscs": ["tc", "-j", "-s", "qdisc", "show"],
        # iproute2 before 6.3 prints classes as text even when asked for JSON.
        "classes": ["tc", "-s", "-d", "class", "show", "dev", interface],
        "sysctls": ["head", "-v", "-n", "1", *(f"/proc/sys/{name}" for name in SYSCTLS)],
        "offloads": ["ethtool", "--show-features", interface],
    }


def _pod(said: Mapping[str, Result]) -> Environment:
    return {
        "links": _data(said["links"]),
        "routes": _data(said["routes"]),
        "qdiscs": _data(said["qdiscs"]),
        "classes": _text(said["classes"]).splitlines(),
        "sysctls": _sysctls(_text(said["sysctls"])),
        "offloads": _text(said["offloads"]).splitlines(),
    }


def _sysctls(text: str) -> Environment:
    values: Environment = {}
    for block in text.split("==> ")[1:]:
        path, _, value = block.partition(" <==\n")
        values[path.removeprefix("/proc/sys/").replace("/", ".")] = value.strip()
    return values


def _look(place: Place, commands: Mapping[str, list[str]]) -> dict[str, Result]:
    try:
        results = batch.look(place, list(commands.values()))
    except CommandError as error:
        results = [Result(1, "", str(error))] * len(commands)
    return dict(zip(commands, results, strict=True))


def _data(said: Result) -> Any:
    if said.status != 0:
        return f"not readable: {said.stderr.strip()}"
    try:
        return said.json()
    except ValueError as error:
        return f"not readable: {error}"


def _text(said: Result) -> str:
    return said.stdout.strip() or f"not readable: {said.stderr.strip()}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        return f"not readable: {error.strerror}"
