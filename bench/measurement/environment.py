"""What a reviewer must know of the machine and the testbed: host, kernel, processors, tools, kernel state.

The list follows flent's (``flent/metadata.py``): what turned out to explain odd results. Whatever cannot be
read is recorded as such, never left out in silence.
"""

from __future__ import annotations

import hashlib
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
from testbed.access.place import Place, Result
from testbed.resources import CHECKOUT, HOME, REFERENCE_PLUGINS, REQUIREMENTS, version
from testbed.runtime import containers
from testbed.scenario.addressing import Addressing
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
# What of a node is Debian's, and says no version of its own or not one that can be asked for alike.
PACKAGES = ("containerd", "runc", "etcd-server", "containernetworking-plugins")
ASK_PACKAGES = ["dpkg-query", "--show", "--showformat=${Package} ${Version}\\n", *PACKAGES]
# Some say it where errors go.
VERSION = ["sh", "-c", 'exec "$0" --version 2>&1']
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
# The SHA-256 of each of these files that there is.
DIGESTS = 'for file; do [ -f "$file" ] && sha256sum "$file"; done; true'
LOOKS_AT_NODE = {
    "nft": ["nft", "-j", "list", "ruleset"],
    "system": ["uname", "-srvm"],
    "processors": ["grep", "model name", "/proc/cpuinfo"],
}
LOOKS_BETWEEN = {
    "links": ["ip", "-d", "-j", "-s", "link", "show"],
    "qdiscs": ["tc", "-j", "-s", "qdisc", "show"],
}
Environment = dict[str, Any]


def describe(testbed: Testbed) -> Environment:
    """Return everything about host, tools, nodes and pods as data for ``environment.json``."""
    addressing = testbed.addressing
    pods = {name: testbed.network(name) for name in (*testbed.pods, *testbed.containers)}
    looks = {f"pod {name}": (place, _looks_at_pod()) for name, place in pods.items()}
    looks |= {
        f"node {name}": (node, _looks_at_pod(addressing.uplink(name)) | LOOKS_AT_NODE)
        for name, node in testbed.nodes.items()
    }
    looks |= {f"between {hop.name}": (hop, LOOKS_BETWEEN) for hop in testbed.provider.hops}
    asked = {name: [*VERSION, str(path)] for name, path in testbed.programs.items()}
    looks["tools"] = (next(iter(testbed.nodes.values())), TOOLS | asked | {"packages": ASK_PACKAGES})
    looks["plugins"] = _looks_at_plugins(testbed)
    said = batch.look_around(looks)
    packages = said["tools"].pop("packages")
    return {
        **surroundings(),
        "tools": {name: _text(shown).partition("\n")[0].strip() for name, shown in said["tools"].items()},
        "packages": dict(line.split(" ", 1) for line in packages.stdout.splitlines()),
        "plugins": _digests(testbed, said["plugins"]["digests"].stdout),
        "addresses": {name: testbed.place(name).address for name in pods},
        "mtu": {
            "underlay": addressing.scenario.underlay.mtu,
            "pod": min(map(addressing.pod_mtu, addressing.scenario.clusters)),
        },
        "backends": {name: _backend(addressing, name) for name in addressing.scenario.clusters},
        "services": _services(testbed),
        "container_bridge": containers.BRIDGE,
        "overlay": testbed.overlay,
        "clusters": testbed.facts,
        "clocks": {name: asdict(clock) for name, clock in testbed.clocks().items()},
        "between": {
            hop.name: {name: _data(shown) for name, shown in said[f"between {hop.name}"].items()}
            for hop in testbed.provider.hops
        },
        "nodes": {name: _node(said[f"node {name}"]) for name in testbed.nodes},
        "pods": {name: _pod(said[f"pod {name}"]) for name in pods},
        "shaping": dict(testbed.enforcement.counters(testbed)),
    }


def _looks_at_plugins(testbed: Testbed) -> tuple[Place, dict[str, list[str]]]:
    """Return what asks a node for the digests of those that it had before."""
    node = testbed.nodes[next(iter(testbed.addressing.scenario.clusters.values())).workers[0]]
    files = [f"{directory}/{name}" for name in testbed.plugins for directory in REFERENCE_PLUGINS]
    return node, {"digests": ["sh", "-c", DIGESTS, "sh", *files]}


def _digests(testbed: Testbed, said: str) -> Environment:
    """Return the SHA-256 of each plugin by its name: of those that nodes are brought, and that they had."""
    found = {line.rpartition("/")[2]: line.partition(" ")[0] for line in reversed(said.splitlines())}
    brought = testbed.enforcement.programs
    if brought is not None:
        files = {name: brought / name for name in testbed.plugins}
        found |= {
            name: hashlib.sha256(file.read_bytes()).hexdigest()
            for name, file in files.items()
            if file.is_file()
        }
    return found


def _backend(addressing: Addressing, cluster: str) -> Environment:
    """Return what joins a cluster's nodes, and what that leaves its pods, bytes."""
    network = addressing.network(cluster)
    return {
        "backend": network.name,
        "overhead": addressing.overhead(cluster),
        "pod_mtu": addressing.pod_mtu(cluster),
    }


def _services(testbed: Testbed) -> Environment:
    """Return where each service is, and on which nodes each of the programs that serve them runs."""
    programs: dict[str, list[str]] = {}
    for one in testbed.serving:
        programs.setdefault(one.name, []).append(one.place.name)
    scenario, addressing = testbed.scenario, testbed.addressing
    found = {name: f"{addressing.service(name)}:{one.port}" for name, one in scenario.services.items()}
    return {"addresses": found, "programs": programs}


def surroundings() -> Environment:
    """Return what is known of host and harness without a testbed."""
    return {"host": _host(), "harness": _harness()}


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
        "hypervisor": _hypervisor(),
        "frequency_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_average": os.getloadavg(),
        "root": os.geteuid() == 0,
    }


def _hypervisor() -> str:
    """Return what the machine is virtual by, as lscpu names it; ``none`` for a real one."""
    try:
        done = subprocess.run(
            ["lscpu"], capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
        )
    except OSError as error:
        return f"not readable: {error.strerror}"
    named = (line.partition(":") for line in done.stdout.splitlines())
    vendor = next((value.strip() for key, _, value in named if key == "Hypervisor vendor"), "none")
    return vendor if done.returncode == 0 else f"not readable: {done.stderr.strip()}"


def _harness() -> Environment:
    packages = ("matplotlib", "numpy", "pandas", "pyarrow", "pydantic")
    return {
        "version": version(),
        # What is installed has no commit, though it may lie within somebody's repository.
        "commit": _git("rev-parse", "HEAD") if CHECKOUT else "unknown",
        "uncommitted_changes": CHECKOUT and bool(_git("status", "--porcelain", "--untracked-files=no")),
        "python": sys.version.split()[0],
        "requirements": _requirements(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }


def _requirements() -> str:
    """Return a digest of the lists of pinned packages."""
    lists = (f"{file.name}\n{_read(str(file))}" for file in sorted(REQUIREMENTS.glob("*.txt")))
    return hashlib.sha256("\n".join(lists).encode()).hexdigest()[:12]


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(HOME), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _node(said: Mapping[str, Result]) -> Environment:
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
