"""A cluster's part of a worker: its cell, and in it containerd and kubelet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

from testbed import resources
from testbed.access.components import Component
from testbed.access.place import InNamespace, Node, Within
from testbed.access.remote import RemotePod
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import cell, proxies
from testbed.kubernetes.control_plane import DISK_LIMITS, ControlPlane, Subject, directory_of
from testbed.kubernetes.manifests import name_of
from testbed.runtime import names
from testbed.runtime.cni import RESULTS, NetworkList
from testbed.scenario import Scenario
from testbed.scenario.addressing import HEALTH_PORT, KUBELET_PORT, Addressing
from testbed.supplies.binaries import Binaries
from testbed.supplies.images import PAUSE, Image
from testbed.supplies.versions import Version

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
NETWORKS = "cni/net.d"  # within a containerd's directory
READY_SECONDS = 300.0
DOWN_SECONDS = 8.0
ENTER = Path(__file__).with_name("enter-cell")
GONE = 'while ls "$1" 2>/dev/null | grep -q -e "$2-eth0$"; do sleep 0.05; done'
BESIDE = "beside-kubernetes"  # containerd's namespace for containers that are not Kubernetes'
KUBELETS = "k8s.io"  # of the containers that a kubelet asks for
# What kubelet and containerd have at fixed places, and what libcni keeps of each attachment.
FIXED_PLACES = (
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
    "/run/containerd",
)
# Stands between containerd and runc, and lets what is started in a container compete for the processors with
# all others one by one; see testbed.kubernetes.cell. With cgroups of version 2 it does nothing. What a
# command has forked before it is moved is moved the next time, so it is done three times.
RUNC = """#!/bin/sh
/usr/sbin/runc "$@" || exit
everybody=$(dirname "$0")/processors/cgroup.procs
[ -e "$everybody" ] || exit 0
while [ $# -gt 0 ]; do
    if [ "$1" = --pid-file ]; then
        pid=$(cat "$2")
        group=/sys/fs/cgroup/cpu$(sed -n "s/^[0-9]*:[^:]*\\<cpu\\>[^:]*://p" "/proc/$pid/cgroup")
        for again in 1 2 3; do
            while read -r one; do echo "$one" >"$everybody"; done <"$group/cgroup.procs"
        done
    fi
    shift
done 2>/dev/null
exit 0
"""
# Settings of the whole machine that a kubelet writes if they are different (its setupKernelTunables).
SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}


@dataclass(frozen=True)
class Cell(Within):
    """A node within a node: its network, and files and cgroups of its own; see testbed.kubernetes.cell."""

    node: Node
    directory: str
    pid: int  # of its first process, as the node sees it

    @classmethod
    def make(cls, node: Node, directory: str) -> Cell:
        """Make a cell on a node, with all its files below ``directory``. Raises CommandError."""
        node.run(["mkdir", "-p", directory])
        wishes = {
            "cgroup": f"{node.cgroup}/{directory.rpartition('/')[2]}",
            "directory": directory,
            "own": FIXED_PLACES,
            "settings": SETTINGS,
        }
        made = node.run(["/usr/bin/python3", "-I", "-S", str(cell.__file__)], stdin=json.dumps(wishes))
        return cls(node.name, node, directory, int(made.stdout))

    @property
    def cgroup(self) -> str:
        """Its root, as it sees it."""
        return ""

    @property
    def entrance(self) -> list[str]:
        """How commands get from the node into the cell."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--cgroup", "--"]

    @property
    def within(self) -> Cell:
        """The same place for what belongs to it, and so has to be in its cgroups."""
        return _InCgroups(self.name, self.node, self.directory, self.pid)


class _InCgroups(Cell):
    @property
    def entrance(self) -> list[str]:
        return [str(ENTER), str(self.pid)]


class Containerd:
    """A containerd in a cell, with the images it will need."""

    def __init__(self, node: Node, directory: str, owner: str) -> None:
        self.node = node
        self.directory = directory
        self._owner = owner
        self._runc = f"{directory}/runc"
        self.cell: Cell | None = None
        self.component: Component | None = None

    def up(
        self,
        network: NetworkList | None,
        images: Sequence[Image],
        namespace: str,
        plugins: Sequence[Path] = (),
    ) -> None:
        """Make the cell, start containerd, import images. Raises CommandError or ComponentError.

        ``plugins`` are directories of CNI plugins that the network has beside the reference plugins.
        """
        self.cell = Cell.make(self.node, self.directory)
        file = self._configure(self.cell, network, plugins)
        self.component = Component(
            f"containerd of {self._owner}",
            self.cell.within,
            f"{self.directory}/containerd",
            ["containerd", "-c", file],
        )
        self.component.start()
        self.component.wait_until_it_answers(CONTAINERD_SOCKET, READY_SECONDS)
        self.import_images(images, namespace)

    def _configure(self, cell: Cell, network: NetworkList | None, plugins: Sequence[Path]) -> str:
        """Write what containerd finds in its cell; return its configuration's path."""
        programs, networks = f"{self.directory}/cni/bin", f"{self.directory}/{NETWORKS}"
        cell.run(["mkdir", "-p", programs, networks])
        directories = [*map(Path, resources.REFERENCE_PLUGINS), *plugins]
        links = [str(file) for one in directories for file in one.glob("*")]
        cell.run(["ln", "-sf", *links, programs])
        if network is not None:
            cell.run(["tee", f"{networks}/{_file_name(network)}"], stdin=render_network(network))
        file = f"{self.directory}/containerd.toml"
        cell.run(["tee", file], stdin=render_containerd(programs, networks, self._runc))
        cell.run(["tee", self._runc], stdin=RUNC)
        cell.run(["chmod", "+x", self._runc])
        return file

    def import_images(self, images: Sequence[Image], namespace: str) -> None:
        """Make images known in one of containerd's namespaces."""
        assert self.cell is not None
        for image in images:  # two at once would disturb each other: their archives' indexes have one name
            self.cell.run(["ctr", f"--namespace={namespace}", "images", "import", str(image.archive)])

    def run_container(self, image: str, network: InNamespace) -> RemotePod:
        """Start a container beside Kubernetes, in a network that is there already. Raises CommandError."""
        assert self.cell is not None
        into = f"network:{network.namespace}"
        rights = ["--cap-add", "CAP_NET_ADMIN"]  # as in testbed.kubernetes.manifests
        self.cell.run(
            [
                "ctr",
                f"--namespace={BESIDE}",
                "run",
                "--detach",
                "--runc-binary",
                self._runc,
                "--with-ns",
                into,
                *rights,
                image,
                network.name,
            ]
        )
        client = way_into(BESIDE, network.name)
        return RemotePod(
            network.name, self.cell, client, network.address, network.host_interface, network.published
        )


class Worker:
    """One cluster's containerd and kubelet on one worker."""

    def __init__(
        self,
        addressing: Addressing,
        enforcement: Enforcement,
        cluster: str,
        node: Node,
        programs: Binaries,
    ) -> None:
        self.cluster = cluster
        self.containerd = Containerd(node, directory_of(cluster), f"cluster {cluster}")
        self._addressing, self._enforcement = addressing, enforcement
        self._node = node
        self._programs = programs
        self._directory = directory_of(cluster)
        self._kubelet: Component | None = None

    @property
    def cell(self) -> Cell:
        """Where its processes are."""
        assert self.containerd.cell is not None, "it is not up"
        return self.containerd.cell

    @property
    def components(self) -> list[Component]:
        """What must be running."""
        return [one for one in (self.containerd.component, self._kubelet) if one is not None]

    def prepare(self, images: Sequence[Image]) -> None:
        """Do all that needs no API server. Where blocks are given there is no network yet; see joining."""
        own = self._addressing.scenario.clusters[self.cluster]
        network = None
        if own.pod_cidrs is None:
            network = proxies.network_list(self._enforcement, self.cluster, self._node.name)
        self.containerd.up(network, images, KUBELETS, proxies.plugins(self._enforcement))

    def join(self, control_plane: ControlPlane) -> None:
        """Start the kubelet; its node is known to the API already."""
        name = name_of(self._node.name)
        address = str(self._addressing.address(self._node.name))
        subject = Subject(f"system:node:{name}", ["system:nodes"], [address, name])
        identity = control_plane.authority.identify(subject)
        version = self._programs.version
        beside = self._addressing.kubelet_offset(self.cluster, self._node.name)
        processors = int(self._node.run(["getconf", "_NPROCESSORS_ONLN"]).stdout)
        own = reserved_processors(self._addressing.scenario, self._node.name, processors)
        own |= names.kubelet_settings(self._addressing, self.cluster)
        files = {
            "kubelet.pem": identity,
            "authority.crt": control_plane.authority.certificate,
            "kubelet.conf": control_plane.kubeconfig_of(identity),
            "kubelet.json": render_kubelet(version, self._directory, address, beside, own),
        }
        for file, text in files.items():
            self.cell.run(["tee", f"{self._directory}/{file}"], stdin=text)
        self._kubelet = Component(
            f"kubelet of cluster {self.cluster}",
            self.cell.within,
            f"{self._directory}/kubelet",
            [
                str(self._programs.path("kubelet")),
                *kubelet_arguments(version, self._directory, name, address),
            ],
            # It would look for a cloud around it.
            env={"AWS_EC2_METADATA_DISABLED": "true"},
        )
        self._kubelet.start()

    def restart(self) -> None:
        """Restart containerd and the kubelet, and wait until both answer. Raises ComponentError."""
        assert self.containerd.component is not None, "it is not up"
        assert self._kubelet is not None, "it has not joined"
        self.containerd.component.restart()
        self.containerd.component.wait_until_it_answers(CONTAINERD_SOCKET, READY_SECONDS)
        self._kubelet.restart()
        port = HEALTH_PORT + self._addressing.kubelet_offset(self.cluster, self._node.name)
        self._kubelet.wait_until_it_answers(f"http://127.0.0.1:{port}/healthz", READY_SECONDS)


def way_into(namespace: str, container: str) -> list[str]:
    """Return the command line that leads from a cell into a container of a namespace of its containerd."""
    # Whatever runs in a container besides must have a name; the client's process id is one.
    named = f'exec ctr --namespace={namespace} tasks exec --exec-id "$$" "$@"'
    return ["sh", "-c", named, "sh", container]


def wait_until_detached(node: Node, cluster: str, container: str = "") -> bool:
    """Wait until the plugin has been called for a removed pod, or for all. Tell whether it was in time.

    ``container``: the identity of the pod's sandbox.
    """
    results = f"{directory_of(cluster)}/{cell.OWN}{RESULTS}"
    wait = ["timeout", f"{DOWN_SECONDS:g}", "sh", "-c", GONE, "sh", results, container and f"-{container}"]
    return node.run(wait, check=False).status == 0


def network_file(cluster: str, network: NetworkList) -> str:
    """Return the path, on a worker, of the file in which its cluster's containerd finds a network."""
    return f"{directory_of(cluster)}/{NETWORKS}/{_file_name(network)}"


def _file_name(network: NetworkList) -> str:
    return f"{network.name}.conflist"


def render_network(network: NetworkList) -> str:
    """Return a network configuration list as a runtime finds it in its ``conf_dir``."""
    return json.dumps(
        {
            "cniVersion": network.cni_version,
            "name": network.name,
            "disableCheck": network.disable_check,
            "plugins": list(network.plugins),
        },
        indent=1,
    )


def render_containerd(programs: str, networks: str, runc: str) -> str:
    """Return containerd's configuration: nothing but the CRI, overlayfs and runc."""
    return f"""version = 2
oom_score = 0
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp",
]
[debug]
  level = "warn"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  # Where root lacks CAP_SYS_RESOURCE, it may make no process less likely to be killed than itself.
  restrict_oom_score_adj = true
  disable_tcp_service = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{programs}"
    conf_dir = "{networks}"
    max_conf_num = 1
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
"""


def render_kubelet(
    version: Version, directory: str, address: str, offset: int, own: Mapping[str, Any]
) -> str:
    """Return a kubelet's configuration; ``offset`` keeps the ports of a worker's kubelets apart.

    ``own`` is what it is told of processors and of names.
    """
    configuration: dict[str, Any] = {
        **kubelet_settings(version),
        **own,
        "address": address,
        "port": KUBELET_PORT + offset,
        # It looks often whether its node's state has changed - a node is ready as soon as it is - but tells
        # the API only if it has. An API that takes a second to answer would not do with that.
        "nodeStatusUpdateFrequency": "1s",
        "nodeStatusReportFrequency": "5m",
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": HEALTH_PORT + offset,
        "tlsCertFile": f"{directory}/kubelet.pem",
        "tlsPrivateKeyFile": f"{directory}/kubelet.pem",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{directory}/authority.crt"},
        },
        "authorization": {"mode": "Webhook"},
    }
    return json.dumps(configuration, indent=1)


def reserved_processors(scenario: Scenario, node: str, processors: int) -> dict[str, Any]:
    """Return what of a kubelet's settings lets its node have processors as the scenario's nodes have.

    A kubelet finds all of its machine's, ``processors``, whichever node it is. Those that are reserved for
    others, though nobody has them, are not allocatable; so nodes have them in the scenario's proportion, as
    exactly as thousandths can be. One that says none, where others do, has none.
    """
    stated = {name: round((one.cpus or 0) * 1000) for name, one in scenario.nodes.items()}
    if not any(stated.values()):
        return {}
    common, whole = gcd(*stated.values()), processors * 1000
    share = stated[node] * whole // max(stated.values())
    parts = {name: one // common for name, one in stated.items()}
    if each := whole // max(parts.values()):
        share = parts[node] * each
    return {"systemReserved": {"cpu": f"{whole - share}m"}, "enforceNodeAllocatable": ["none"]}


def kubelet_settings(version: Version) -> dict[str, Any]:
    """Return what is the same for every kubelet that shares its machine with others."""
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "readOnlyPort": 0,
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "resolvConf": "",
        "enableControllerAttachDetach": False,
        # The host's disks and memory are not this node's to judge. Without a threshold, and without limits of
        # pods' disks, it does not look at them every ten seconds (eviction_manager.go, synchronize).
        "evictionHard": dict.fromkeys(
            ("memory.available", "nodefs.available", "imagefs.available", "nodefs.inodesFree"), "0%"
        ),
        "imageGCHighThresholdPercent": 100,
        "kubeAPIQPS": 50,
        "kubeAPIBurst": 100,
    }
    gates = {}
    if version.can_forgo_device_plugins:
        gates["DevicePlugins"] = False
    if version.limits_disks_by_gate:
        gates[DISK_LIMITS] = False
    else:
        settings["localStorageCapacityIsolation"] = False
    if gates:
        settings["featureGates"] = gates
    return settings


def kubelet_arguments(version: Version, directory: str, name: str, address: str) -> list[str]:
    """Return a kubelet's arguments."""
    arguments = [
        f"--config={directory}/kubelet.json",
        f"--kubeconfig={directory}/kubelet.conf",
        f"--hostname-override={name}",
        f"--node-ip={address}",
        f"--container-runtime-endpoint=unix://{CONTAINERD_SOCKET}",
        # Looking at the containers' use of the machine costs some of it.
        "--housekeeping-interval=30s",
    ]
    if version.assumes_docker:
        arguments.append("--container-runtime=remote")
    return arguments
