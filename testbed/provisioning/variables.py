"""What the playbooks are told about a scenario: an Ansible inventory, in which everything is said once.

A pure function. What is decided here, and not in a playbook, is decided by the same code as in a testbed of
namespaces: subnets, ports, flannel's entries, the plugin's configuration, nodes as an API gets them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from testbed.enforcements import registry
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import manifests
from testbed.kubernetes.addresses import in_turn, of_two_families, without_block
from testbed.kubernetes.control_plane import (
    CELLS,
    CNI,
    CONFIGURATION,
    DIRECTORY,
    HOME,
    LIST,
    SETTINGS,
    endpoint,
    network_directory,
    patches,
)
from testbed.kubernetes.flanneld import render_network as render_flannel_network
from testbed.kubernetes.manifests import name_of
from testbed.kubernetes.worker import FIXED_PLACES, render_containerd, render_network
from testbed.kubernetes.worker import SETTINGS as KUBELET_SETTINGS
from testbed.overlays.registry import of_cluster
from testbed.providers.ssh.inventory import Machine
from testbed.provisioning import addresses, kubeadm, services
from testbed.scenario import Scenario, ScenarioError, blocks, enforcements
from testbed.scenario.addressing import Addressing
from testbed.scenario.descriptions import OURS
from testbed.scenario.faults import Fault
from testbed.scenario.services import clusters
from testbed.supplies.bundle import Archive, Bundle
from testbed.supplies.versions import Version

Variables = dict[str, Any]

# kubeadm and the control plane have places of their own besides those that a kubelet has.
OWN = (*FIXED_PLACES, "/etc/kubernetes", "/var/lib/etcd")
# What has to be there, by the program that shows it, with Debian's package.
PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "nft": "nftables",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "socat": "socat",
    "ethtool": "ethtool",
    "iperf3": "iperf3",
    "nsenter": "util-linux",
    "mount": "mount",
    "modprobe": "kmod",
}


def inventory(scenario: Scenario, machines: Mapping[str, Machine], bundle: Bundle) -> Variables:
    """Return an inventory with a host for each node of a scenario whose addresses and uplinks are known.

    Raises ScenarioError for what these playbooks cannot make, LookupError for what the bundle lacks.
    """
    if faults := unfit(scenario, bundle.version):
        raise ScenarioError(f"scenario {scenario.name}", faults)
    addressing = Addressing(scenario)
    enforcement = registry.of(addressing)
    found = bare_inventory({name: machines[name] for name in scenario.nodes})
    for name, host in found["all"]["hosts"].items():
        host |= _host(addressing, enforcement, name, bundle)
    found["all"]["vars"] |= {
        "kubelet_environment": kubeadm.PATIENT,
        "bundle": str(bundle.directory),
        "packages": PACKAGES,
        "flanneld": bundle.has_flanneld,
    }
    return found


def bare_inventory(machines: Mapping[str, Machine]) -> Variables:
    """Return an inventory that says how to get to machines, and where things are there."""
    return {
        "all": {
            "hosts": {name: connection(machine) for name, machine in machines.items()},
            "vars": {"home": HOME, "settings": SETTINGS, "cells_directory": CELLS},
        }
    }


def unfit(scenario: Scenario, version: Version) -> list[Fault]:
    """Return what of a scenario cannot be made of machines with a version of Kubernetes."""
    addressing = Addressing(scenario)
    faults = list(registry.of(addressing).missing(here=False))
    if not version.keeps_two_families:
        faults += of_two_families(scenario)
    if enforcements.description_of(scenario).plugins not in (None, OURS):
        message = "the playbooks bring machines the reference plugins and Concorde, and no others"
        faults.append(Fault(("enforcement", "plugins"), message))
    masters: dict[str, str] = {}
    for name, cluster in scenario.clusters.items():
        if (first := masters.setdefault(cluster.master, name)) != name:
            message = f"{cluster.master} is the master of cluster {first!r} already; a machine is that of one"
            faults.append(Fault(("clusters", name, "master"), message))
        if cluster.master in cluster.workers:
            message = f"{cluster.master} is a worker of its own cluster, which kubeadm does not make it"
            faults.append(Fault(("clusters", name, "master"), message))
        for node in addressing.blocks(name).refused:
            message = f"a machine has its block of cluster {name!r} when it is made, and cannot wait for one"
            faults.append(Fault(("nodes", node, "expect"), message))
        network = of_cluster(addressing, name)
        made = network.devices(cluster.master), network.daemons(cluster.master)
        if made != ([addressing.vtep(name)], []):  # which is what they know how to make and to remove
            message = f"the playbooks join machines by flannel's vxlan, not by {cluster.backend}"
            faults.append(Fault(("clusters", name, "backend"), message))
    return faults


def connection(machine: Machine) -> Variables:
    """Return how Ansible gets to a machine: as everything else here does, host keys checked."""
    options = ["-F none", "-o StrictHostKeyChecking=yes"]
    if machine.known_hosts is not None:
        options.append(f"-o UserKnownHostsFile={machine.known_hosts}")
    found: Variables = {
        "ansible_host": machine.host,
        "ansible_port": machine.port,
        "ansible_user": machine.user,
        "ansible_ssh_common_args": " ".join(options),
        # Said once more: ansible-runner says no, and Mitogen says before our options what it takes from here.
        "ansible_host_key_checking": True,
        "mitogen_ssh_compression": False,
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    if machine.key is not None:
        found["ansible_ssh_private_key_file"] = str(machine.key)
    if machine.password is not None:
        found["ansible_password"] = machine.password
    return found


def _host(addressing: Addressing, enforcement: Enforcement, node: str, bundle: Bundle) -> Variables:
    clusters = addressing.clusters_of(node)
    networks = [of_cluster(addressing, cluster) for cluster in clusters]
    images = dict.fromkeys(
        one.file for cluster in clusters for one in _images(addressing.scenario, cluster, node, bundle)
    )
    files = [*bundle.below("bin"), *bundle.below("cni"), *images]
    return {
        "files": files,
        "sums": "".join(f"{bundle.sums[file]}  {file}\n" for file in files),
        "cells": [_cell(addressing, enforcement, cluster, node, bundle) for cluster in clusters],
        "flannel_links": "".join(one.links(node) for one in networks),
        "flannel_forwarding": "".join(one.forwarding(node) for one in networks),
        "uplink": addressing.uplink(node),
    }


def _cell(
    addressing: Addressing, enforcement: Enforcement, cluster: str, node: str, bundle: Bundle
) -> Variables:
    scenario = addressing.scenario
    is_master = scenario.clusters[cluster].master == node
    address = addressing.address(node)
    found: Variables = {
        "cluster": cluster,
        "node": name_of(node),
        "master": scenario.clusters[cluster].master,
        "is_master": is_master,
        "address": str(address),
        "bridge": addressing.bridge(cluster),
        "network": addressing.network_name(cluster),
        "wishes": json.dumps(_wishes(cluster)),
        "containerd": render_containerd(CNI, network_directory(cluster), "/usr/sbin/runc"),
        "images": [
            {"name": one.name, "file": one.file, "digest": one.digest}
            for one in _images(scenario, cluster, node, bundle)
        ],
        "plugin": _network_list(enforcement, cluster, node),
        "agent": enforcement.description.agent,
        "kubeadm": _kubeadm(addressing, cluster, node, bundle),
        "vtep": addressing.vtep(cluster),
        "subnet_file": addressing.subnet_file(cluster),
        "subnet": "".join(of_cluster(addressing, cluster).files(node).values()),
        "flannel": render_flannel_network(addressing, cluster),
    }
    return found | _master(addressing, enforcement, cluster, node, bundle) if is_master else found


def _images(scenario: Scenario, cluster: str, node: str, bundle: Bundle) -> list[Archive]:
    """Return the images that a cluster's part of a machine needs."""
    wanted = scenario.clusters[cluster]
    for_services = services.images(bundle) if cluster in clusters(scenario) else []
    if wanted.master != node:
        return [*bundle.for_pods, *for_services]
    for_addresses = [bundle.for_addresses] if wanted.pod_cidrs is not None else []
    return [*bundle.for_pods, *for_services, *bundle.for_control_planes, *for_addresses]


def _master(
    addressing: Addressing, enforcement: Enforcement, cluster: str, node: str, bundle: Bundle
) -> Variables:
    """Return what a cluster's master is told besides."""
    scenario, own = addressing.scenario, str(addressing.pod_subnet(cluster, node))
    given = scenario.clusters[cluster].pod_cidrs is not None
    spec = {} if given else {"podCIDR": own, "podCIDRs": [own]}
    served = cluster in clusters(scenario)
    return {
        "as_node": json.dumps({"metadata": {"labels": blocks.labels_of(scenario, node)}, "spec": spec}),
        "addresses": addresses.tell(addressing, cluster, bundle.for_addresses) if given else {},
        "services": services.tell(addressing, cluster, bundle) if served else {},
        "kubeadm_option": kubeadm.option(bundle.version, cluster),
        "patches_directory": patches(cluster),
        "patches": kubeadm.render_patches(),
        "nodes": _nodes(addressing, enforcement, cluster),
        "configuration": _configuration(scenario, enforcement, cluster),
        "publications": _publications(scenario, enforcement, cluster, bundle),
    }


def _wishes(cluster: str) -> Variables:
    """Return what the first process of a cell is told; see testbed.kubernetes.cell."""
    return {
        "cgroup": f"system.slice/cell@{cluster}.service/root",
        "directory": f"{CELLS}/{cluster}",
        "own": OWN,
        "settings": KUBELET_SETTINGS,
    }


def _network_list(enforcement: Enforcement, cluster: str, node: str) -> str:
    return render_network(enforcement.network_list(cluster, node))


def _kubeadm(addressing: Addressing, cluster: str, node: str, bundle: Bundle) -> str:
    address = addressing.address(node)
    beside = addressing.kubelet_offset(cluster, node)
    server, port = endpoint(addressing, cluster)
    if addressing.scenario.clusters[cluster].master == node:
        services = addressing.service_range(cluster)
        return kubeadm.render_init(bundle.version, cluster, name_of(node), address, port, beside, services)
    return kubeadm.render_join(bundle.version, f"{server}:{port}", name_of(node), address, beside)


def _nodes(addressing: Addressing, enforcement: Enforcement, cluster: str) -> list[Variables]:
    """Return the workers as their kubelets shall find them, in groups of which one comes after another."""
    own = addressing.scenario.clusters[cluster]
    made = {name: manifests.node(addressing, enforcement, cluster, name) for name in own.workers}
    groups = [list(made)]
    if own.pod_cidrs is not None:
        groups = in_turn(groups[0])
        made = {name: without_block(node) for name, node in made.items()}
    return [
        {
            "names": [name_of(name) for name in names],
            "manifests": json.dumps(
                manifests.list_of([manifests.account(), *(made[name] for name in names)])
            ),
        }
        for names in groups
    ]


def _publications(
    scenario: Scenario, enforcement: Enforcement, cluster: str, bundle: Bundle
) -> list[dict[str, str]]:
    """Return the bandwidth of workers that is to be published again, for their kubelets take it out."""
    return [
        {"cluster": cluster, "node": name_of(name), "patch": json.dumps(status)}
        for name in scenario.clusters[cluster].workers
        if (status := manifests.publication(enforcement, cluster, name, bundle.version))
    ]


def _configuration(scenario: Scenario, enforcement: Enforcement, cluster: str) -> str:
    """Return the ConfigMap that says how the nodes keep guarantees; bench compares it with its scenario."""
    worker = scenario.clusters[cluster].workers[0]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONFIGURATION}}
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIGURATION, "namespace": CONFIGURATION},
        "data": {LIST: _network_list(enforcement, cluster, worker), DIRECTORY: CNI},
    }
    return json.dumps(manifests.list_of([namespace, configuration]))
