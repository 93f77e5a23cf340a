"""What kubeadm is told: the configuration files of a cluster's first node, and of those that join it.

JSON is YAML, so each document is JSON. What kubeadm would install besides (its *addons*) is left out: two
kube-proxies in one network namespace overwrite each other's rules, and a node of two clusters is one. Where a
scenario has services, proxies of ours serve them, and beside them is who answers their names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from testbed.access.local import SIGN_OF_LIFE
from testbed.kubernetes.control_plane import FREE, ROUTING, patches, scheduler_options
from testbed.kubernetes.worker import CONTAINERD_SOCKET, kubelet_settings
from testbed.scenario.addressing import HEALTH_PORT, KUBELET_PORT
from testbed.supplies.bundle import ETCD, SITE
from testbed.supplies.versions import Version

# Stand in the file of a node that joins for what only the cluster can say.
TOKEN, AUTHORITY = "@TOKEN@", "@AUTHORITY@"
# Where the kubelet would else look is not its cell's own.
VOLUME_PLUGINS = "/var/lib/kubelet/volume-plugins"
# There is one master. An election costs requests all the time, and who cannot renew his lease in ten seconds
# ends, which on a slow machine means that everything begins again.
ALONE = {"leader-elect": "false"}
# Nor does another etcd wait for its heartbeat; milliseconds, ten times etcd's own.
SELDOM = {"heartbeat-interval": "1000", "election-timeout": "10000"}
# By kubeadm the API server is asked every second whether it is ready, and all are asked every ten whether
# they live. Each question is a TLS handshake: 28 ms of an emulated processor. And who has not answered eight
# times, after 15 seconds each, is ended; but an API server that others keep from the processor is only slower
# for having to begin again. So there is time for the answer, and as often as it may take to come up.
PROBE_SECONDS = 60
PROBES = {
    "etcd": ("livenessProbe",),
    "kube-apiserver": ("livenessProbe", "readinessProbe"),
    "kube-controller-manager": ("livenessProbe",),
    "kube-scheduler": ("livenessProbe",),
}
# A node says every ten seconds that it lives, by default, and is taken for dead after 40. It asks again when
# it is not answered in that time; so with an API that is late all nodes ask ever more, and it is later still.
ALIVE_SECONDS = 60
LEASE_SECONDS = 4 * ALIVE_SECONDS  # of which a kubelet renews it four times (its ``renewIntervalFraction``)
GONE_SECONDS = 2 * LEASE_SECONDS
# For who breaks off all that it watches begins anew, which for a controller manager is sixty handshakes, and
# an API that was only late is later still.
PATIENT = {SIGN_OF_LIFE: "120"}
ASKING = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")  # an API server asks itself
# On an emulated machine a control plane takes minutes, and answers late when nodes join it.
UP_SECONDS = 1200
# All that kubeadm has patience for.
WAITS = (
    "controlPlaneComponentHealthCheck",
    "discovery",
    "etcdAPICall",
    "kubeletHealthCheck",
    "kubernetesAPICall",
    "tlsBootstrap",
)
PATIENCE = dict.fromkeys(WAITS, f"{UP_SECONDS}s")

Document = Mapping[str, Any]


def render_init(
    version: Version,
    cluster: str,
    node: str,
    address: IPv4Address,
    port: int,
    beside: int,
    services: IPv4Network,
) -> str:
    """Return the file for ``kubeadm init``; ``beside`` is added to those of the node's kubelet."""
    initial = {"patches": {"directory": patches(cluster)}} if version.has_patches_in_configuration else {}
    return _render(
        {
            **_document(version, "InitConfiguration"),
            **_timeouts(version),
            **initial,
            "nodeRegistration": _registration(version, node, address, beside),
            "localAPIEndpoint": {"advertiseAddress": str(address), "bindPort": port},
        },
        _cluster_configuration(version, cluster, services),
        {
            **kubelet_settings(version),
            "volumePluginDir": VOLUME_PLUGINS,
            "nodeStatusUpdateFrequency": f"{ALIVE_SECONDS}s",
            "nodeLeaseDurationSeconds": LEASE_SECONDS,
        },
    )


def _cluster_configuration(version: Version, cluster: str, services: IPv4Network) -> dict[str, Any]:
    etcd_repository, _, etcd_tag = ETCD.rpartition("/")[2].partition(":")
    assert etcd_repository == "etcd", "kubeadm adds the name"
    api_server: dict[str, Any] = {"extraArgs": _arguments(version, FREE | ROUTING)}
    if not version.has_timeouts_in_configuration:
        api_server["timeoutForControlPlane"] = f"{UP_SECONDS}s"
    controllers = {
        "allocate-node-cidrs": "false",  # the nodes come with their subnets
        "flex-volume-plugin-dir": VOLUME_PLUGINS,
        "node-monitor-grace-period": f"{GONE_SECONDS}s",
        **ALONE,
    }
    return {
        **_document(version, "ClusterConfiguration"),
        **_algorithm(version),
        "clusterName": f"cluster-{cluster}",
        "kubernetesVersion": f"v{version}",
        "imageRepository": SITE,
        "networking": {"serviceSubnet": str(services)},
        "apiServer": api_server,
        "controllerManager": {"extraArgs": _arguments(version, controllers)},
        "scheduler": {"extraArgs": _arguments(version, ALONE | scheduler_options(version))},
        "etcd": {"local": {"imageTag": etcd_tag, "extraArgs": _arguments(version, SELDOM)}},
    }


def option(version: Version, cluster: str) -> str:
    """Return what ``kubeadm init`` is told besides, where its configuration cannot say it; else nothing."""
    return "" if version.has_patches_in_configuration else f"--experimental-patches={patches(cluster)}"


def render_patches() -> dict[str, str]:
    """Return the patches of the control plane's pods, by the names of the files that kubeadm looks for."""
    return {
        f"{name}+strategic.json": _patch(name, {probe: _rhythm(probe) for probe in probes} | _patience(name))
        for name, probes in PROBES.items()
    }


def _rhythm(probe: str) -> dict[str, int]:
    asked = {"periodSeconds": PROBE_SECONDS, "timeoutSeconds": PROBE_SECONDS}
    return asked | ({"failureThreshold": UP_SECONDS // PROBE_SECONDS} if probe == "livenessProbe" else {})


def _patience(container: str) -> dict[str, Any]:
    if container not in ASKING:
        return {}
    return {"env": [{"name": name, "value": value} for name, value in PATIENT.items()]}


def _patch(container: str, changes: Document) -> str:
    return json.dumps({"spec": {"containers": [{"name": container, **changes}]}}) + "\n"


def render_join(version: Version, server: str, node: str, address: IPv4Address, beside: int) -> str:
    """Return the file for ``kubeadm join``, with ``TOKEN`` and ``AUTHORITY`` where these belong."""
    return _render(
        {
            **_document(version, "JoinConfiguration"),
            **_timeouts(version),
            "nodeRegistration": _registration(version, node, address, beside),
            "discovery": {
                "bootstrapToken": {
                    "apiServerEndpoint": server,
                    "token": TOKEN,
                    "caCertHashes": [AUTHORITY],
                }
            },
        }
    )


def _document(version: Version, kind: str) -> dict[str, str]:
    return {"apiVersion": f"kubeadm.k8s.io/{version.kubeadm_configuration}", "kind": kind}


def _algorithm(version: Version) -> dict[str, Any]:
    """Return that keys are of elliptic curves: by RSA a handshake takes ten times as much of a processor."""
    if version.names_algorithm_in_configuration:
        return {"encryptionAlgorithm": "ECDSA-P256"}
    return {"featureGates": {"PublicKeysECDSA": True}}


def _timeouts(version: Version) -> dict[str, Any]:
    return {"timeouts": PATIENCE} if version.has_timeouts_in_configuration else {}


def _registration(version: Version, node: str, address: IPv4Address, beside: int) -> dict[str, Any]:
    """Return how a kubelet becomes a node; what differs between the kubelets of a machine is said here."""
    arguments = {"node-ip": str(address)}
    if beside:
        arguments |= {
            "port": str(KUBELET_PORT + beside),
            "healthz-port": str(HEALTH_PORT + beside),
        }
    # Before 1.24 a runtime that is not Docker is known by its socket's path.
    scheme = "" if version.assumes_docker else "unix://"
    return {
        "name": node,
        "criSocket": f"{scheme}{CONTAINERD_SOCKET}",
        "kubeletExtraArgs": _arguments(version, arguments),
    }


def _arguments(version: Version, arguments: Mapping[str, str]) -> Any:
    if version.kubeadm_configuration == "v1beta4":
        return [{"name": name, "value": value} for name, value in arguments.items()]
    return dict(arguments)


def _render(*documents: Document) -> str:
    return "---\n".join(json.dumps(document, indent=1) + "\n" for document in documents)
