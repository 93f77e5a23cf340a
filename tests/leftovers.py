"""What a testbed would leave on the host, if it left anything; for tests to look before, and after.

Others use the machine at the same time, and make namespaces, links and mounts of their own. So only what
looks like ours is looked at: what has a name that ours would have, is mounted where ours is, or is told by
its cgroup or its command line. Somebody else's Kubernetes that begins to run meanwhile has the same PLACES,
and cannot be told from ours by them.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from concorde import names

from testbed.kubernetes.worker import FIXED_PLACES, SETTINGS
from testbed.links import underlay
from testbed.providers.netns import sandbox
from testbed.scenario import load
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
LINK = re.compile(rf"{underlay.SWITCH}|port\d+(-in)?|vethc\d+|flannel\.\d+|cni-(?!podman).+")
# What containerd calls the namespaces of Kubernetes' pods.
POD_NAMESPACE = re.compile(r"cni-[0-9a-f-]{36}")
# Where all that is a cluster's own lies, its command lines say.
CLUSTERS = "/run/kubernetes"
# What kubelet, containerd and flannel have at fixed places. A cell's is its own.
PLACES = (*FIXED_PLACES, CLUSTERS, "/run/flannel", "/run/testbed")
# A sandbox and its cells mount these for themselves, and nodes have a /run of their own.
MOUNTED = ("/proc", "/run", "/sys/fs/cgroup", "/var/lib", "/var/log")
PROGRAMS = ("etcd", "kube-", "kubelet", "containerd", "catatonit", "flanneld")
CGROUP = re.compile(r"concorde-testbed-(?P<pid>\d+)-\d+")
OUTERMOST = (
    "kubepods",
    "k8s.io",
)  # cgroups that a kubelet and a containerd make below what they take for the root


State = dict[str, set[str]]


def network_state(prefix: Sequence[str] = ()) -> State:
    """Return the links, named namespaces and mounts; ``prefix`` takes a command to where they are."""
    namespaces = {item["name"] for item in _shown(prefix, "netns") if _is_namespace(item["name"])}
    return {
        "links": {link["ifname"] for link in _shown(prefix, "link") if _is_link(link["ifname"])},
        "namespaces": namespaces,
        "mounts": set(_mounts(_output(prefix, "cat", "/proc/self/mountinfo"), namespaces)),
    }


def host_state() -> State:
    """Return all that real Kubernetes might leave here."""
    return {
        **network_state(),
        "cgroups": set(_cgroups()),
        "settings": set(_settings()),
        "processes": set(_processes()),
        "places": {place for place in PLACES if Path(place).exists()},
    }


def added(before: State, now: State) -> State:
    """Return what is there now and was not before."""
    return {kind: new for kind, found in now.items() if (new := found - before[kind])}


def _output(prefix: Sequence[str], *command: str) -> str:
    return subprocess.run([*prefix, *command], capture_output=True, check=True, text=True).stdout


def _shown(prefix: Sequence[str], what: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(_output(prefix, "ip", "-j", what) or "[]")
    return found


def _is_link(name: str) -> bool:
    return LINK.fullmatch(name) is not None or names.is_host_veth(name)


def _is_namespace(name: str) -> bool:
    return name in _named() or POD_NAMESPACE.fullmatch(name) is not None


@functools.cache
def _named() -> frozenset[str]:
    """Return the names of all pods, containers and nodes."""
    scenarios = [load(file) for file in SCENARIOS.rglob("*.yaml") if file.parent.name != "networks"]
    return frozenset(name for one in scenarios for name in (*one.pods, *one.containers, *one.nodes))


def _mounts(mountinfo: str, namespaces: set[str]) -> Iterator[str]:
    """Yield the mounts of ours, each with its own number: several may be at one place."""
    below = (*PLACES, "/proc/sys", *(f"/run/netns/{name}" for name in namespaces))
    for line in mountinfo.splitlines():
        number, _, _, _, point, *_ = line.split()
        if point in MOUNTED or any(f"{point}/".startswith(f"{place}/") for place in below):
            yield f"{number} {point}"


def _cgroups() -> Iterator[str]:
    """Yield cgroups of testbeds that are up no more, and what a kubelet has made outside of its own."""
    for point in sandbox.mount_points(Path("/proc/self/mounts").read_text(encoding="utf-8")):
        for directory in Path(point).iterdir():
            match = CGROUP.fullmatch(directory.name)
            dead = match and sandbox.name_of(int(match["pid"])) != directory.name
            if dead or directory.name in OUTERMOST:
                yield str(directory)


def _settings() -> Iterator[str]:
    """Yield the settings that are as a kubelet would like to have them."""
    for name, value in SETTINGS.items():
        file = Path("/proc/sys", name)
        if file.exists() and file.read_text(encoding="utf-8").strip() == str(value):
            yield name


def _processes() -> Iterator[str]:
    """Yield the command lines of our components and containers that are in no sandbox."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(directory / "ns" / "pid") != os.readlink("/proc/self/ns/pid"):  # noqa: PTH115
                continue
            words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
            groups = (directory / "cgroup").read_text(encoding="utf-8")
        except OSError:
            continue
        ours = CGROUP.search(groups) or any(CLUSTERS in word for word in words)
        if ours and os.path.basename(words[0]).startswith(PROGRAMS):  # noqa: PTH119 (of no path here)
            yield " ".join(words)
