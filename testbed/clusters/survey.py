"""Which nodes a scenario's nodes are in clusters that exist, and whether these are as the scenario says.

Looked at before anything is made. ``survey`` is a pure function of what the APIs answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.clusters import kubeconfigs
from testbed.enforcements.enforcement import RESOURCES, Enforcement
from testbed.kubernetes.client import is_ready
from testbed.kubernetes.control_plane import CONFIGURATION, DIRECTORY, LIST
from testbed.scenario import Scenario
from testbed.scenario.faults import Fault


@dataclass(frozen=True)
class Machine:
    """A node as one cluster's API tells of it."""

    name: str
    hostname: str  # its label, by which pods select it
    address: str
    boot_id: str  # the same in every cluster that it is a node of
    publishes: frozenset[str]  # which resources of ours the scheduler knows of it
    unusable: str  # why no pod of a scenario can run there, in words
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False)  # for the recording

    @classmethod
    def read(cls, node: Mapping[str, Any]) -> Machine:
        """Return what an API's node says."""
        metadata, status = node["metadata"], node["status"]
        addresses = {entry["type"]: entry["address"] for entry in status.get("addresses", [])}
        return cls(
            name=metadata["name"],
            hostname=metadata.get("labels", {}).get("kubernetes.io/hostname", metadata["name"]),
            address=addresses.get("InternalIP", ""),
            boot_id=status["nodeInfo"]["bootID"],
            publishes=frozenset(
                one for one in RESOURCES if status.get("allocatable", {}).get(one, "0") != "0"
            ),
            unusable=_unusable(node),
            facts={
                "name": metadata["name"],
                "addresses": addresses,
                "pod_cidr": node["spec"].get("podCIDR"),
                "info": status["nodeInfo"],
            },
        )


@dataclass(frozen=True)
class Answers:
    """What a cluster's API answered."""

    nodes: Sequence[Mapping[str, Any]]
    configuration: Mapping[str, str]  # of the installer; empty where there is none
    uid: str = ""  # of the namespace kube-system, by which clusters are told apart; empty: not known


@dataclass(frozen=True)
class Ground:
    """Where a scenario will run: each of its nodes that has pods or containers, in each cluster it is of."""

    machines: Mapping[tuple[str, str], Machine]  # by cluster and the scenario's node
    directories: Mapping[str, str]  # by cluster: where the plugin is on its nodes
    networks: Mapping[str, Mapping[str, Any]]  # by cluster: the installer's network configuration list

    def machine(self, node: str) -> tuple[str, Machine]:
        """Return the first cluster that one of the scenario's nodes is of, and the machine."""
        return next((c, machine) for (c, name), machine in self.machines.items() if name == node)


def survey(
    scenario: Scenario, enforcement: Enforcement, answers: Mapping[str, Answers]
) -> tuple[Ground, list[Fault]]:
    """Return where a scenario will run, and all that speaks against it."""
    faults = list(_same(answers))
    if scenario.shaping is not None:
        faults.append(Fault(("shaping",), "HTB at other places is for the testbed's own nodes"))
    networks = {}
    for cluster, answer in answers.items():
        network = _network(answer)
        networks[cluster] = network
        faults += _configured(scenario, enforcement, cluster, network)
    machines = {c: {m.name: m for m in map(Machine.read, a.nodes)} for c, a in answers.items()}
    found, more = _places(scenario, machines)
    directories = {cluster: answer.configuration.get(DIRECTORY, "") for cluster, answer in answers.items()}
    return Ground(found, directories, networks), faults + more


def _same(answers: Mapping[str, Answers]) -> Iterator[Fault]:
    """One cluster cannot be two: a kubeconfig leads where its current context does, unless one is named."""
    known: dict[str, str] = {}
    for cluster, answer in answers.items():
        if answer.uid and answer.uid in known:
            yield Fault(
                ("clusters", cluster),
                f"its kubeconfig leads to the same cluster as that of {known[answer.uid]!r}; "
                f"name a context: --kubeconfig {cluster}=FILE@CONTEXT",
            )
        known.setdefault(answer.uid, cluster)


def needed(scenario: Scenario) -> dict[str, list[str]]:
    """Return, for each node with pods or containers, the clusters it must be a node of."""
    found: dict[str, list[str]] = {}
    for name in scenario.nodes:
        own = [pod.cluster for pod in scenario.pods.values() if pod.node == name]
        if not own and any(container.node == name for container in scenario.containers.values()):
            own = [c for c, cluster in scenario.clusters.items() if name in cluster.workers][:1]
            own = own or [c for c, cluster in scenario.clusters.items() if name == cluster.master]
        if own:
            found[name] = [cluster for cluster in scenario.clusters if cluster in own]
    return found


def _network(answer: Answers) -> Mapping[str, Any]:
    try:
        found = json.loads(answer.configuration.get(LIST, "{}"))
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _configured(
    scenario: Scenario, enforcement: Enforcement, cluster: str, network: Mapping[str, Any]
) -> Iterator[Fault]:
    """The cluster's nodes keep guarantees as their configuration says, not as the scenario does."""
    entries = [plugin for plugin in network.get("plugins", []) if plugin.get("type") == "concorde"]
    where = f"ConfigMap {CONFIGURATION} in namespace {CONFIGURATION} of cluster {cluster!r}"
    if not entries:
        if enforcement.installed:
            yield Fault(
                ("enforcement",),
                f"{scenario.kept_by} needs the plugin on the nodes, and there is no {where}: "
                "install it (docs/howto/existing-clusters.md)",
            )
        return
    asked = (("enforcement", scenario.kept_by, "pod"), ("count", scenario.count, "layer2"))
    for key, wanted, default in asked:
        has = entries[0].get(key, default)
        if has != wanted:
            yield Fault((key,), f"{wanted}, but {where} says {has}; run with --set {key}={has}, or change it")


def _places(
    scenario: Scenario, machines: Mapping[str, Mapping[str, Machine]]
) -> tuple[dict[tuple[str, str], Machine], list[Fault]]:
    found: dict[tuple[str, str], Machine] = {}
    faults: list[Fault] = []
    wanted = needed(scenario)
    names = _named(scenario, wanted, machines)
    for node, clusters in wanted.items():
        if node not in names:
            names |= _next_free(node, clusters, machines, set(names.values()))
        if node not in names:
            known = "; ".join(f"{c}: {', '.join(machines[c]) or 'none'}" for c in clusters)
            message = "no node is left for it that pods can run on"
            if len(clusters) > 1:
                message += f" and that clusters {' and '.join(clusters)} share"
            faults.append(Fault(("nodes", node), f"{message} (nodes: {known})"))
            continue
        faults += _wrong(scenario, node, names[node], clusters, machines)
        for cluster in clusters:
            if names[node] in machines[cluster]:
                found[cluster, node] = machines[cluster][names[node]]
    for name in set(names.values()):
        several = [node for node in names if names[node] == name]
        if len(several) > 1:
            faults.append(Fault(("nodes", several[1], "name"), f"{name} is {several[0]!r} already"))
    return found, faults


def _named(
    scenario: Scenario, wanted: Mapping[str, list[str]], machines: Mapping[str, Mapping[str, Machine]]
) -> dict[str, str]:
    """Return the real names of nodes that state one, or whose own is one."""
    found = {}
    for node, clusters in wanted.items():
        stated = scenario.nodes[node].name
        if stated is not None:
            found[node] = stated
        elif all(node.lower() in machines[cluster] for cluster in clusters):
            found[node] = node.lower()
    return found


def _next_free(
    node: str, clusters: Sequence[str], machines: Mapping[str, Mapping[str, Machine]], taken: set[str]
) -> dict[str, str]:
    """Return the name of a usable node of all these clusters, the first by name, if there is one."""
    for name in sorted(machines[clusters[0]]):
        everywhere = [machines[cluster].get(name) for cluster in clusters]
        if name not in taken and all(machine and not machine.unusable for machine in everywhere):
            return {node: name}
    return {}


def _wrong(
    scenario: Scenario,
    node: str,
    name: str,
    clusters: Sequence[str],
    machines: Mapping[str, Mapping[str, Machine]],
) -> Iterator[Fault]:
    at = ("nodes", node, "name") if scenario.nodes[node].name else ("nodes", node)
    same = set()
    for cluster in clusters:
        machine = machines[cluster].get(name)
        if machine is None:
            known = ", ".join(machines[cluster]) or "none"
            yield Fault(at, f"cluster {cluster!r} has no node {name!r} (nodes: {known})")
            continue
        if machine.unusable:
            yield Fault(at, f"node {name!r} of cluster {cluster!r} {machine.unusable}")
        same.add(machine.boot_id)
    if len(same) > 1:
        yield Fault(at, f"{name!r} is one machine in cluster {clusters[0]!r} and another in {clusters[1]!r}")


def _unusable(node: Mapping[str, Any]) -> str:
    if not is_ready(node):
        return "is not ready"
    if node["spec"].get("unschedulable"):
        return "is cordoned"
    taints = [t["key"] for t in node["spec"].get("taints", []) if t["effect"] in ("NoSchedule", "NoExecute")]
    return f"has the taint {taints[0]}" if taints else ""


def facts(scenario: Scenario, ground: Ground) -> dict[str, Any]:
    """Return what is known of the clusters, for the recording."""
    return {
        cluster: {
            "configuration": ground.networks[cluster],
            "nodes": {node: dict(m.facts) for (of, node), m in ground.machines.items() if of == cluster},
        }
        for cluster in scenario.clusters
    }


def ask(client: kubeconfigs.Outside) -> Answers:
    """Return what a cluster's API says of its nodes, and of how they keep guarantees."""
    found = client.find("configmap", CONFIGURATION, f"--namespace={CONFIGURATION}")
    # Some may not read it; then nothing is known.
    asked = client.run("get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}", check=False)
    uid = asked.stdout.strip() if asked.status == 0 else ""
    return Answers(client.get("nodes")["items"], found.get("data") or {}, uid)
