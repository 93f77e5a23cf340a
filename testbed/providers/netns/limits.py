"""What this machine's kernel allows, and what a scenario's namespaces need: looked at before any is made.

What the kernel does not tell is taken for enough.
"""

from __future__ import annotations

import os
import re
import resource
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from testbed.links import trunks
from testbed.scenario import Scenario, connections, services

# BR_MAX_PORTS in net/bridge/br_private.h is 1,024, and port number 0 means none.
BRIDGE_PORTS = 1023
CGROUPS = "/sys/fs/cgroup"
# Beside the nodes' first processes: what brings them up, 16 commands at a time (in_parallel), each with the
# way there, a plugin and its tools.
PASSING_PROCESSES = 256
# Of this process: its own, and those of 16 commands at a time; then one for each transfer's sender, and for
# each server of a service.
PASSING_FILES = 256
# Since then permanent neighbours, as a pod network's are, do not count (Linux, commit 58956317c8de). The
# limit is one for all namespaces together.
PERMANENT_UNCOUNTED = (5, 0)
# Measured on Linux 6.18 with 2 processors; the kernel keeps some of it for each processor.
NAMESPACE_MB = 0.6  # a network namespace with its interfaces, and a node's first process
RELAY_MB = 12  # of a trunk that takes time, beside the packets that it holds
PROXY_MB = 14  # of a cluster's services on a node
DEVICE_MB = 18  # of a device's servers
ENTRY_MB = 0.0016  # route, neighbour and forwarding entry of one node on another


@dataclass(frozen=True)
class Readings:
    """What the kernel allows, and what of it is left; None where it does not tell, or has no limit."""

    release: tuple[int, int]  # of Linux
    neighbours: int | None = None
    net_namespaces: int | None = None
    mount_namespaces: int | None = None
    processes: int | None = None
    files: int | None = None
    memory: int | None = None  # MB


@dataclass(frozen=True)
class Limit:
    """Something of which a scenario may need more than there is."""

    what: str
    there: int | None  # None: no end of it is known
    needed: int
    setting: str  # where the limit is set

    def __str__(self) -> str:
        return f"{self.what}: the scenario needs {self.needed:,}, there are {self.there:,} ({self.setting})"


def demand(scenario: Scenario) -> None:
    """Raise LookupError if this machine has not room for a scenario: with each limit, and what is needed."""
    if found := exceeded(scenario, read()):
        raise LookupError("--provider netns: this machine is too small\n" + "\n".join(map(str, found)))


def exceeded(scenario: Scenario, readings: Readings) -> list[Limit]:
    """Return the limits that a scenario goes beyond."""
    found = [*_namespaces(scenario, readings), *_bridges(scenario), _neighbours(scenario, readings)]
    return [limit for limit in found if limit.there is not None and limit.needed > limit.there]


def _namespaces(scenario: Scenario, readings: Readings) -> Iterator[Limit]:
    nodes = len(scenario.nodes)
    devices = len(scenario.devices)
    pods = len(scenario.pods) + len(connections.pods(scenario))
    networks = 1 + nodes + devices + pods + len(scenario.containers)
    delayed = [zone for zone in scenario.zones.values() if zone.delay]
    memory = networks * NAMESPACE_MB + _entries(scenario) * ENTRY_MB
    memory += sum(2 * trunks.held(zone) / 1e6 + RELAY_MB for zone in delayed)
    proxies = sum(len(scenario.clusters[cluster].nodes) for cluster in services.clusters(scenario))
    memory += proxies * PROXY_MB + devices * DEVICE_MB
    yield Limit("network namespaces", readings.net_namespaces, networks, "sysctl user.max_net_namespaces")
    yield Limit(
        "mount namespaces", readings.mount_namespaces, 1 + nodes + devices, "sysctl user.max_mnt_namespaces"
    )
    yield Limit(
        "processes", readings.processes,
        1 + nodes + 2 * (len(delayed) + proxies + _relays(scenario)) + _serving(scenario) + PASSING_PROCESSES,
        "sysctl kernel.pid_max and kernel.threads-max, pids.max of the cgroup, ulimit -u",
    )  # fmt: skip
    told = [
        pod
        for one in scenario.requests
        if one.destination in scenario.services
        for pod in scenario.receivers_of(one)
    ]
    files = PASSING_FILES + len(scenario.transfers) + len(told)
    yield Limit("open files", readings.files, files, "ulimit -n")
    yield Limit("MB of memory", readings.memory, ceil(memory), "what is free, or the cgroup's limit")


def _serving(scenario: Scenario) -> int:
    """Return the processes of devices, and their threads: the first, who looks on, a server for each port."""
    ports = (
        len(list(one.ports)) for device in scenario.devices.values() for one in device.components.values()
    )
    return 3 * len(scenario.devices) + sum(ports)


def _relays(scenario: Scenario) -> int:
    """Return how many programs relay in proxy pods where nobody is connected yet."""
    own = connections.of_pods(scenario).values()
    return sum(len(list(connections.socats(scenario, name, ""))) for name in own)


def _bridges(scenario: Scenario) -> Iterator[Limit]:
    """Yield the ports of the fullest switch, and of the fullest bridge on a node."""
    pods = {**scenario.pods, **connections.pods(scenario)}
    ports = Counter(f"cluster {pod.cluster}'s on {pod.node}" for pod in pods.values())
    ports.update(f"the containers' on {one.node}" for one in scenario.containers.values())
    switches = Counter(f"the switch of zone {node.zone}" for node in scenario.nodes.values() if node.zone)
    switches.update(switches.keys())  # a trunk each
    for name, segment in scenario.segments.items():
        switches[f"the switch of segment {name}"] = len(segment.nodes)
    switches.update(f"the switch of segment {one.segment}" for one in scenario.devices.values())
    switches["the switch"] = len(scenario.zones or scenario.nodes)
    for name, needed in (*switches.most_common(1), *ports.most_common(1)):
        yield Limit(f"ports of a bridge, {name}", BRIDGE_PORTS, needed, "the kernel's BR_MAX_PORTS")


def _neighbours(scenario: Scenario, readings: Readings) -> Limit:
    counted = 0 if readings.release >= PERMANENT_UNCOUNTED else _entries(scenario)
    return Limit(
        "permanent neighbours", readings.neighbours, counted, "sysctl net.ipv4.neigh.default.gc_thresh3"
    )


def _entries(scenario: Scenario) -> int:
    """Return how many entries of each kind all nodes have together: a pod network is a full mesh."""
    sizes = (len(cluster.nodes) for cluster in scenario.clusters.values())
    return sum(size * (size - 1) for size in sizes)


def read() -> Readings:
    """Return what this machine's kernel tells."""
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    return Readings(
        release=(int(major), int(minor)),
        neighbours=_number("/proc/sys/net/ipv4/neigh/default/gc_thresh3"),
        net_namespaces=_number("/proc/sys/user/max_net_namespaces"),
        mount_namespaces=_number("/proc/sys/user/max_mnt_namespaces"),
        processes=_free_processes(),
        files=_finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        memory=_free_memory(),
    )


def _free_processes() -> int | None:
    running = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[2])
    most = [_number("/proc/sys/kernel/pid_max"), _number("/proc/sys/kernel/threads-max")]
    left = [number - running for number in most if number is not None]
    if os.geteuid() != 0:  # root may have any number (CAP_SYS_RESOURCE)
        own = _finite(resource.getrlimit(resource.RLIMIT_NPROC)[0])
        left += [own] if own is not None else []
    for cgroup in _cgroups():
        limit, used = _number(f"{cgroup}/pids.max"), _number(f"{cgroup}/pids.current")
        if limit is not None and used is not None:
            left.append(limit - used)
    return min(left, default=None)


def _free_memory() -> int | None:
    """Return what is available, or a cgroup's limit if that is less: it may get back what it has cached."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    for cgroup in _cgroups():
        limits = (_number(f"{cgroup}/{name}") for name in ("memory.max", "memory.limit_in_bytes"))
        found += [limit for limit in limits if limit is not None]
    return min(found) // 10**6 if found else None


def _cgroups() -> Iterator[str]:
    """Yield the cgroups, of either version, in which this process is, and those above."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, hierarchy, path = line.split(":", 2)
        point = Path(CGROUPS, hierarchy)
        own = point / path.lstrip("/")
        yield from (str(directory) for directory in (own, *own.parents) if directory.is_relative_to(point))


def _number(path: str) -> int | None:
    """Return the number in a file; None if there is none, as for no limit."""
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _finite(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit
