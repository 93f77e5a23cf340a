"""What this machine lacks for a testbed, and what to do about it.

Features are tried, in a sandbox, rather than guessed from versions: a kernel without loadable modules, a
container without permissions and a hardened distribution all look alike from outside.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import resources
from testbed.access.local import ENVIRONMENT
from testbed.access.place import Feature, lacks
from testbed.kubernetes import cell
from testbed.links.trunks import NETEM, RELAY
from testbed.overlays.backends import ipip
from testbed.overlays.pod_network import PodNetwork
from testbed.overlays.registry import of_cluster
from testbed.providers.netns.sandbox import Sandbox, SandboxError
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault
from testbed.supplies import binaries, images, packages

OPTIONAL_TOOLS = {
    "tcpdump": ("tcpdump", "./invokew capture"),
    "ping": ("iputils-ping", "./invokew exec POD ping"),
    "ethtool": ("ethtool", "the offloads in environment.json"),
}
KUBERNETES_PROGRAMS = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "openssl": "openssl",
}
LOOPBACK_PACKAGE = "containernetworking-plugins"


# The table of neighbours is one for the machine, its sandboxes and all their pods. The plugin says how many
# entries a node full of pods may take (concorde.node.shares, WANTED).
NEIGHBOURS = 22_000


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``remedy`` says what to do if it is not fine."""

    subject: str
    fine: bool
    remedy: str = ""
    needed: bool = True


FEATURES = (
    Feature("veth pairs", ("ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1"), "CONFIG_VETH"),
    Feature("bridges", ("ip", "link", "add", "dbr", "type", "bridge"), "CONFIG_BRIDGE"),
    Feature(
        "VXLAN",
        ("ip", "link", "add", "dvx", "type", "vxlan", "id", "9", "dstport", "8472", "local", "127.0.0.1"),
        "CONFIG_VXLAN",
    ),
    Feature("HTB", ("tc", "qdisc", "add", "dev", "d0", "root", "handle", "1:", "htb"), "CONFIG_NET_SCH_HTB"),
    Feature(
        "nftables with NAT",
        ("nft", "-f", "-"),
        "CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_MASQ, CONFIG_NFT_FIB_IPV4",
        "table ip d { chain a { type nat hook prerouting priority dstnat; "
        "fib daddr type local tcp dport 1 dnat to 10.0.0.1:1; };\n"
        "chain b { type nat hook postrouting priority srcnat; masquerade; }; }\n",
    ),
    Feature(
        "TCP congestion control cubic",
        ("grep", "-w", "cubic", "/proc/sys/net/ipv4/tcp_available_congestion_control"),
        "CONFIG_TCP_CONG_CUBIC (modprobe tcp_cubic)",
    ),
    Feature(
        "TBF (underlay.rate)",
        ("tc", "qdisc", "add", "dev", "d1", "root", "tbf", "rate", "1gbit", "burst", "1mb", "limit", "1mb"),
        "CONFIG_NET_SCH_TBF",
        needed=False,
    ),
    Feature("ifb (underlay.rate)", ("ip", "link", "add", "difb", "type", "ifb"), "CONFIG_IFB", needed=False),
    Feature(
        "redirection (underlay.rate)",
        ("tc", "-batch", "-"),
        "CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_U32, CONFIG_NET_ACT_MIRRED",
        "qdisc add dev d0 handle ffff: ingress\n"
        "filter add dev d0 parent ffff: protocol all u32 match u32 0 0 "
        "action mirred egress redirect dev d1\n",
        needed=False,
    ),
    *(means.feature for means in (NETEM, RELAY) if means.feature),
    ipip.FEATURE,
)

# Why an ordinary user may not have namespaces: the setting, the value that forbids it, the cure.
PERMISSIONS = (
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "Ubuntu's AppArmor keeps user namespaces from programs without a profile: run as root, or "
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are for root only: run as root, or sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "user namespaces are switched off: run as root, or sysctl -w user.max_user_namespaces=10000",
    ),
)


def examine(optional: Mapping[str, Callable[[], Iterable[str]]]) -> Iterator[Finding]:
    """Yield what was found, one thing after another; looks at kernel features only if a sandbox starts.

    ``optional`` parts each yield, in words, what is missing for them.
    """
    yield from _tools()
    yield from _neighbours()
    yield Finding(
        f"Python {sys.version_info.major}.{sys.version_info.minor}",
        sys.version_info >= (3, 11),
        "Python 3.11 or newer is needed: Debian 12, Ubuntu 24.04 or newer",
    )
    try:
        box = Sandbox.start("doctor.probe")
    except (SandboxError, OSError) as error:
        yield Finding("a sandbox: network, mount and process namespaces", False, _permission(str(error)))
        return
    try:
        yield Finding("a sandbox: network, mount and process namespaces", True)
        for feature in FEATURES:
            lacking = lacks(box.switch, feature)
            yield Finding(feature.name, not lacking, lacking, feature.needed)
    finally:
        box.stop()
    for subject, missing in optional.items():
        lacking = "; ".join(missing())
        yield Finding(subject, not lacking, lacking, needed=False)


def refused(addressing: Addressing) -> Iterator[Fault]:
    """Yield the backends of a scenario that this machine cannot run, with what is missing."""
    for name, cluster in addressing.scenario.clusters.items():
        network = of_cluster(addressing, name)
        for text in (*_unprovided(network, network.nodes), *_impossible(network)):
            yield Fault(("clusters", name, "backend"), f"{cluster.backend}: {text}")


def _unprovided(network: PodNetwork, nodes: Iterable[str]) -> Iterable[str]:
    wanted = {
        (daemon.package, daemon.argv[0]): None
        for node in nodes
        for daemon in network.daemons(node)
        if daemon.package
    }
    for package, program in wanted:
        try:
            packages.find(package, program)
        except LookupError as error:
            yield str(error)


def _impossible(network: PodNetwork) -> Iterable[str]:
    features = network.features()
    if not features:
        return
    try:
        box = Sandbox.start("features.probe")
    except (SandboxError, OSError) as error:
        yield str(error)
        return
    try:
        for feature in features:
            if text := lacks(box.switch, feature):
                yield text
    finally:
        box.stop()


def demand_kubernetes() -> None:
    """Raise LookupError with all that is missing for real Kubernetes, and what to do about it."""
    if found := list(missing_for_kubernetes()):
        raise LookupError("--orchestrator kubernetes: " + "\n".join(found))


def missing_for_kubernetes() -> Iterator[str]:
    """Yield, in words, what real Kubernetes needs of this machine and has not."""
    if os.geteuid() != 0:
        yield (
            "needs root: containerd and kubelet make cgroups and overlay mounts; run it with sudo, "
            "or use --orchestrator cni"
        )
        return
    absent = {package for name, package in KUBERNETES_PROGRAMS.items() if not _found(name)}
    absent |= {package for name, package in images.TOOLS.items() if not _found(name)}
    if not any(Path(directory, "loopback").exists() for directory in resources.REFERENCE_PLUGINS):
        absent.add(LOOPBACK_PACKAGE)
    if absent:
        yield f"packages are missing: apt-get install {' '.join(sorted(absent))}"
    if not cell.hierarchies(Path("/proc/self/mounts").read_text(encoding="utf-8")):
        yield f"no cgroups are mounted at {cell.CGROUPS}"
    if not Path("/dev/kmsg").exists():
        yield "there is no /dev/kmsg, which a kubelet reads; a container must be given it"
    try:
        binaries.find()
    except (LookupError, RuntimeError) as error:
        yield str(error)


def _found(program: str) -> bool:
    return shutil.which(program, path=ENVIRONMENT["PATH"]) is not None


def _tools() -> Iterator[Finding]:
    for tool, package in packages.SANDBOX.items():
        yield Finding(f"program {tool}", _found(tool), f"apt-get install {package}")
    for tool, (package, use) in OPTIONAL_TOOLS.items():
        yield Finding(f"program {tool} ({use})", _found(tool), f"apt-get install {package}", needed=False)


def _neighbours(root: Path = Path("/proc/sys/net")) -> Iterator[Finding]:
    """Look at the limits of the machine itself; another network namespace shows none."""
    for version in ("ipv4", "ipv6"):
        try:
            room = int((root / version / "neigh/default/gc_thresh3").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        setting = f"net.{version}.neigh.default.gc_thresh3"
        remedy = f"it is {room}: sysctl -w {setting}={NEIGHBOURS}, and the same in /etc/sysctl.d"
        subject = f"room for the neighbours of a node full of pods ({setting})"
        yield Finding(subject, room >= NEIGHBOURS, remedy, needed=False)


def _permission(text: str) -> str:
    for setting, forbidding, cure in PERMISSIONS:
        try:
            value = Path("/proc/sys", setting).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if value == forbidding:
            return f"{cure} ({text})"
    return f"run as root; in a container, with the options that 'Without the repository' gives ({text})"
