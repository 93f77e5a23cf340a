"""Which parts there are, and a testbed of them: the only module that knows every part.

``register_provider`` and ``register_orchestrator`` make others known. Enforcements and pod networks have
registries of their own (testbed.enforcements.registry, testbed.networks.registry).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.access.place import Node
from testbed.enforcements import registry as enforcements
from testbed.enforcements.enforcement import Enforcement
from testbed.kubernetes import requirements
from testbed.networks import registry as networks
from testbed.orchestrators import Orchestrator
from testbed.orchestrators.cni import CniOrchestrator
from testbed.providers import Provider
from testbed.providers.netns.provider import NetnsProvider
from testbed.scenario import Scenario, ScenarioError
from testbed.scenario.addressing import Addressing
from testbed.testbed import Parts, Testbed

EXISTING = "existing"  # clusters that are there already, networks and all
IMAGE = "CONCORDE_BENCH_IMAGE"  # an environment variable: the pods' image there, if not the testbed's own

Orchestrate = Callable[[Addressing, Enforcement, Mapping[str, Node]], Orchestrator]


@dataclass(frozen=True)
class OrchestratorKind:
    """What runs pods, by name on the command line."""

    make: Orchestrate
    demand: Callable[[], None] = lambda: None  # raises LookupError with what this machine lacks for it
    finds_clusters: bool = False  # whether it uses clusters that are on the nodes already


@dataclass(frozen=True)
class ProviderKind:
    """Where nodes come from, by name on the command line; and what can run pods there."""

    # Of what is to be addressed, what was given as its source, as in ssh:inventory.yaml, and whether clusters
    # are on the nodes already.
    make: Callable[[Addressing, str, bool], Provider]
    orchestrators: Mapping[str, OrchestratorKind]


def _cni(addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> Orchestrator:
    return CniOrchestrator(addressing, enforcement, nodes)


def _own(addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> Orchestrator:
    from testbed.orchestrators.own import KubernetesOrchestrator  # imported by whom it concerns

    return KubernetesOrchestrator(addressing, enforcement, nodes)


def _on_machines(addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> Orchestrator:
    from testbed.orchestrators.clusters.on_machines import PodsOnMachines

    return PodsOnMachines(addressing, enforcement, nodes)


def _netns(addressing: Addressing, source: str, _clusters_exist: bool) -> Provider:
    if source:
        raise LookupError(f"--provider netns:{source}: namespaces are made from nothing: --provider netns")
    return NetnsProvider(addressing)


def _ssh(addressing: Addressing, source: str, clusters_exist: bool) -> Provider:
    from testbed.providers.ssh.provider import SshProvider  # paramiko takes its time

    return SshProvider(addressing.scenario, Path(source) if source else None, clusters_exist)


def _vagrant(addressing: Addressing, source: str, clusters_exist: bool) -> Provider:
    if source:
        raise LookupError(f"--provider vagrant:{source}: machines are the scenario's: --provider vagrant")
    from testbed.providers.vagrant.provider import VagrantProvider

    return VagrantProvider(addressing.scenario, clusters_exist)


def _missing_for_machines() -> Iterable[str]:
    from testbed.providers.vagrant import requirements as machines

    return machines.missing()


# What a testbed can do without, and what says what is missing for it.
OPTIONAL: Mapping[str, Callable[[], Iterable[str]]] = {
    "real Kubernetes (--orchestrator kubernetes)": requirements.missing,
    "virtual machines (--provider vagrant)": _missing_for_machines,
}

CNI = OrchestratorKind(_cni)
OWN = OrchestratorKind(_own, requirements.demand)
ON_MACHINES = OrchestratorKind(_on_machines, finds_clusters=True)

_providers: dict[str, ProviderKind] = {
    "netns": ProviderKind(_netns, {"cni": CNI, "kubernetes": OWN}),
    "ssh": ProviderKind(_ssh, {"cni": CNI, "kubernetes": ON_MACHINES}),
    "vagrant": ProviderKind(_vagrant, {"cni": CNI, "kubernetes": ON_MACHINES}),
}


def register_provider(name: str, kind: ProviderKind) -> None:
    """Make a provider known to the command line. Raises ValueError for a name that is taken."""
    if name in _providers or name == EXISTING:
        raise ValueError(f"there is a provider {name!r} already")
    _providers[name] = kind


def demand(provider: str, orchestrator: str) -> OrchestratorKind:
    """Return what runs pods on a provider's nodes.

    Raises LookupError for an unknown part, or one this machine cannot run.
    """
    name = provider.partition(":")[0]
    if name not in _providers:
        raise LookupError(f"no provider {name!r} (providers: {', '.join([*_providers, EXISTING])})")
    known = _providers[name].orchestrators
    if orchestrator not in known:
        raise LookupError(f"no orchestrator {orchestrator!r} (orchestrators: {', '.join(known)})")
    known[orchestrator].demand()
    return known[orchestrator]


def assemble(scenario: Scenario, provider: str, orchestrator: str) -> Testbed:
    """Return a testbed of these parts, not yet up; ``provider`` may have a source, as in ``ssh:FILE``.

    Raises LookupError for an unknown part, or one this machine cannot run; for clusters that exist also
    ScenarioError, for all that speaks against a run there.
    """
    name, _, source = provider.partition(":")
    addressing = Addressing(scenario)
    if name == EXISTING:
        return _on_clusters(addressing, source)
    runner = demand(provider, orchestrator)
    nodes = _providers[name].make(addressing, source, runner.finds_clusters)
    return put_together(addressing, nodes, runner.make)


def put_together(addressing: Addressing, provider: Provider, orchestrate: Orchestrate) -> Testbed:
    """Return a testbed on the nodes of a provider, with the enforcement and networks of its scenario."""
    return Testbed(addressing, provider, Parts(enforcements.of, orchestrate, networks.of_cluster))


def _on_clusters(addressing: Addressing, given: str) -> Testbed:
    """Look at the clusters that kubeconfigs lead to, and return a testbed that is going to use them."""
    from testbed.clusters import kubeconfigs
    from testbed.clusters.survey import ask, survey
    from testbed.orchestrators.clusters.pods import Pods
    from testbed.providers.helpers.provider import HelpersProvider
    from testbed.supplies.images import TRAFFIC

    scenario = addressing.scenario
    clients = kubeconfigs.clients(scenario, given)
    answers = {name: ask(client) for name, client in clients.items()}
    ground, faults = survey(scenario, enforcements.of(addressing), answers)
    if faults:
        raise ScenarioError(f"scenario {scenario.name}", faults)
    image = os.environ.get(IMAGE, TRAFFIC)
    nodes = HelpersProvider(scenario, ground, clients, image)

    def orchestrate(found: Addressing, enforcement: Enforcement, _: Mapping[str, Node]) -> Orchestrator:
        return Pods(found, enforcement, nodes, ground, clients, image)

    return put_together(addressing, nodes, orchestrate)
