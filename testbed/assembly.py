"""Which parts there are, and a testbed of them: the only module that knows every part.

``register_provider`` makes another known, with the orchestrators that run pods on its nodes. Enforcements and
pod networks have registries of their own (testbed.enforcements.registry, testbed.overlays.registry).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edge.devices.kinds import RELAY
from testbed import doctor
from testbed.clusters.kubeconfigs import joined
from testbed.enforcements import registry as enforcements
from testbed.enforcements.enforcement import Enforcement
from testbed.orchestrators import Orchestrator
from testbed.orchestrators.cni import CniOrchestrator
from testbed.overlays import registry as overlays
from testbed.providers import Provider
from testbed.providers.netns.persistence import SandboxPersistence
from testbed.providers.netns.provider import NetnsProvider
from testbed.providers.persistence import Persistence
from testbed.registry import Registry
from testbed.runtime import proxies
from testbed.scenario import Scenario, ScenarioError
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault
from testbed.scenario.words import Part
from testbed.supplies import binaries, packages
from testbed.testbed import Orchestrate, Testbed

if TYPE_CHECKING:
    from testbed.providers.ssh.inventory import Machine

EXISTING = "existing"  # clusters that are there already, networks and all


@dataclass(frozen=True)
class OrchestratorKind:
    """What runs pods, by name on the command line."""

    # As ``Orchestrate``, and of the orchestrator's settings, if it has any.
    make: Callable[..., Orchestrator]
    demand: Callable[[], None] = lambda: None  # raises LookupError with what this machine lacks for it
    finds_clusters: bool = False  # whether it uses clusters that are on the nodes already
    has_agents: bool = False  # whether it runs anything on nodes, for their pods' networks, that is its own
    connects: bool = False  # whether it has proxy pods, of connections to devices
    quick: bool = False  # whether it is there in no time, so that it may be brought up for each repetition
    # What of a scenario it cannot run, looked at before anything is made.
    refuse: Callable[[Addressing], Iterable[Fault]] = lambda _: ()
    settings: Part | None = None  # its own, where a scenario says nothing


@dataclass(frozen=True)
class ProviderKind:
    """Where nodes come from, by name on the command line; and what can run pods there."""

    # Of what is to be addressed, what was given as its source, as in ssh:inventory.yaml, and whether clusters
    # are on the nodes already; then the provider's settings, if it has any.
    make: Callable[..., Provider]
    orchestrators: Mapping[str, OrchestratorKind]
    persistence: Callable[[], Persistence] | None = None  # what keeps testbeds there, if they can stay up
    makes_links: bool = False  # whether the links between nodes are as a scenario says, each by itself
    # What there is to log in to, if nodes are machines, given a source and a scenario.
    machines: Callable[[str, Scenario | None], Mapping[str, Machine]] | None = None
    settings: Part | None = None  # its own, where a scenario says nothing


def _cni(addressing: Addressing, enforcement: Enforcement, provider: Provider) -> Orchestrator:
    return CniOrchestrator(addressing, enforcement, provider.nodes)


def _own(addressing: Addressing, enforcement: Enforcement, provider: Provider) -> Orchestrator:
    from testbed.orchestrators.own import KubernetesOrchestrator  # imported by whom it concerns

    return KubernetesOrchestrator(addressing, enforcement, provider.nodes)


def _on_machines(addressing: Addressing, enforcement: Enforcement, provider: Provider) -> Orchestrator:
    from testbed.orchestrators.clusters import PodsOnMachines

    return PodsOnMachines(addressing, enforcement, provider.nodes)


def _on_clusters(addressing: Addressing, enforcement: Enforcement, provider: Provider) -> Orchestrator:
    from testbed.orchestrators.clusters import Pods
    from testbed.providers.helpers import HelpersProvider

    assert isinstance(provider, HelpersProvider)
    return Pods(addressing, enforcement, provider, provider.ground, provider.clients, provider.image)


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


def _existing(addressing: Addressing, source: str, _clusters_exist: bool) -> Provider:
    from testbed.providers.helpers import on_clusters

    return on_clusters(addressing, source)


def _pods_persistence() -> Persistence:
    from testbed.providers.helpers import PodsPersistence

    return PodsPersistence()


def _ssh_persistence() -> Persistence:
    from testbed.providers.ssh.persistence import MachinesPersistence

    return MachinesPersistence()


def _vagrant_persistence() -> Persistence:
    from testbed.providers.vagrant.provider import VagrantPersistence

    return VagrantPersistence()


def _ssh_machines(source: str, scenario: Scenario | None) -> Mapping[str, Machine]:
    from testbed.providers.ssh import inventory

    return inventory.chosen(Path(source) if source else None, scenario)


def _vagrant_machines(_source: str, scenario: Scenario | None) -> Mapping[str, Machine]:
    from testbed.providers.ssh import inventory
    from testbed.providers.vagrant.provider import VagrantPersistence

    return inventory.chosen(VagrantPersistence().at("", scenario, None).made.inventory(), scenario)


def _missing_for_machines() -> Iterable[str]:
    from testbed.providers.vagrant import requirements as machines

    return machines.missing()


def _refused_by_api(addressing: Addressing) -> Iterable[Fault]:
    """Return which services an API does not take."""
    from testbed.kubernetes import services

    return services.refused(addressing)


def _refused_by_cni(addressing: Addressing) -> Iterable[Fault]:
    """Return the backends that this machine cannot run, and the plugins and relays that it does not have."""
    lacking = enforcements.of(addressing).missing(here=True)
    return [*doctor.refused(addressing), *lacking, *relays_missing(addressing)]


def relays_missing(addressing: Addressing) -> Iterable[Fault]:
    """Yield the connections whose relays this machine has no program for."""
    for name, one in addressing.scenario.connections.items():
        if one.mode == RELAY:
            for words in packages.missing(proxies.PACKAGE):
                yield Fault(("connections", name, "mode"), f"relay: {words}; or mode: translate")


def _refused_by_own(addressing: Addressing) -> Iterable[Fault]:
    """Return what a flanneld does not know, if one was given; else what this machine cannot run."""
    from testbed.kubernetes import flanneld
    from testbed.kubernetes.addresses import of_two_families

    unknown = list(flanneld.refused(addressing))
    fitting = unknown if unknown and binaries.find().flanneld else _refused_by_cni(addressing)
    return [*fitting, *of_two_families(addressing.scenario), *_refused_by_api(addressing)]


def _refused_by_machines(addressing: Addressing) -> Iterable[Fault]:
    """Yield what is missing, and what needs daemons: nothing would end these on machines."""
    for name, cluster in addressing.scenario.clusters.items():
        network = overlays.of_cluster(addressing, name)
        if any(network.daemons(node) for node in network.nodes):
            words = f"{cluster.backend} has daemons on the nodes, which only --provider netns runs"
            yield Fault(("clusters", name, "backend"), words)
    yield from enforcements.of(addressing).missing(here=False)


# What a testbed can do without, and what says what is missing for it.
OPTIONAL: Mapping[str, Callable[[], Iterable[str]]] = {
    "BIRD (backend bgp)": lambda: packages.missing("bird2"),
    "dnsmasq (names of services)": lambda: packages.missing("dnsmasq-base"),
    "etcd (backend vxlan-miss)": lambda: packages.missing("etcd-server"),
    "socat (connections with mode: relay)": lambda: packages.missing(proxies.PACKAGE),
    "real Kubernetes (--orchestrator kubernetes)": doctor.missing_for_kubernetes,
    "virtual machines (--provider vagrant)": _missing_for_machines,
}

CNI = OrchestratorKind(_cni, connects=True, quick=True, refuse=_refused_by_cni)
CNI_THERE = OrchestratorKind(_cni, connects=True, quick=True, refuse=_refused_by_machines)
OWN = OrchestratorKind(_own, doctor.demand_kubernetes, has_agents=True, connects=True, refuse=_refused_by_own)
ON_MACHINES = OrchestratorKind(_on_machines, finds_clusters=True, refuse=_refused_by_api)
ON_CLUSTERS = OrchestratorKind(_on_clusters, finds_clusters=True, refuse=_refused_by_api)

PROVIDERS = Registry[ProviderKind]("provider", word="provider")
# By the names that some provider has for them; of several of a name, the first, whose settings are all one's.
ORCHESTRATORS = Registry[OrchestratorKind]("orchestrator", word="orchestrator")
_SHIPPED = {
    "netns": ProviderKind(_netns, {"cni": CNI, "kubernetes": OWN}, SandboxPersistence, makes_links=True),
    "ssh": ProviderKind(
        _ssh, {"cni": CNI_THERE, "kubernetes": ON_MACHINES}, _ssh_persistence, machines=_ssh_machines
    ),
    "vagrant": ProviderKind(
        _vagrant,
        {"cni": CNI_THERE, "kubernetes": ON_MACHINES},
        _vagrant_persistence,
        machines=_vagrant_machines,
    ),
    # Its clusters run the pods, whatever is said of orchestrators.
    EXISTING: ProviderKind(_existing, {"cni": ON_CLUSTERS, "kubernetes": ON_CLUSTERS}, _pods_persistence),
}


def register_provider(name: str, kind: ProviderKind) -> None:
    """Make a provider known to the command line, and what only it can run pods with.

    Raises ValueError for a name that is taken.
    """
    PROVIDERS.register(name, kind)
    for word, runner in kind.orchestrators.items():
        ORCHESTRATORS.setdefault(word, runner)


for _name, _shipped in _SHIPPED.items():
    register_provider(_name, _shipped)


def on_clusters(kubeconfigs: Iterable[str]) -> tuple[str, str]:
    """Return the provider, with its source, and the orchestrator of clusters that kubeconfigs lead to."""
    return f"{EXISTING}:{joined(kubeconfigs)}", "kubernetes"


def demand(provider: str, orchestrator: str) -> OrchestratorKind:
    """Return what runs pods on a provider's nodes.

    Raises LookupError for an unknown part, or one this machine cannot run.
    """
    kind = orchestrator_kind(provider, orchestrator)
    kind.demand()
    return kind


def orchestrator_kind(provider: str, orchestrator: str) -> OrchestratorKind:
    """Return the same, whether or not this machine can run it. Raises LookupError for an unknown part."""
    known = _kind(provider).orchestrators
    if orchestrator not in known:
        raise LookupError(f"no orchestrator {orchestrator!r} (orchestrators: {', '.join(known)})")
    return known[orchestrator]


def persistence(provider: str) -> Persistence | None:
    """Return what keeps testbeds of a provider, if they can stay up. Raises LookupError."""
    make = _kind(provider).persistence
    return make() if make else None


def persistences() -> dict[str, Persistence]:
    """Return all that keep testbeds, by their provider's name."""
    return {name: kind.persistence() for name, kind in PROVIDERS.items() if kind.persistence}


def machines(provider: str, scenario: Scenario | None) -> Mapping[str, Machine]:
    """Return a provider's machines by their nodes' names. Raises LookupError if it has none."""
    find = _kind(provider).machines
    if find is None:
        having = ", ".join(name for name, kind in PROVIDERS.items() if kind.machines)
        raise LookupError(f"--provider: {provider!r} has no machines (providers with machines: {having})")
    return find(provider.partition(":")[2], scenario)


def assemble(scenario: Scenario, provider: str, orchestrator: str, without: Collection[str] = ()) -> Testbed:
    """Return a testbed of these parts, not yet up; ``provider`` may have a source, as in ``ssh:FILE``.

    ``without`` are pods that shall come later, if at all; whether there is room for them is seen then.

    Raises LookupError for an unknown part, or one this machine cannot run; for clusters that exist also
    ScenarioError, for all that speaks against a run there.
    """
    addressing = Addressing(scenario)
    runner = demand(provider, orchestrator)
    accept(addressing, runner, without)
    demand_links(provider, scenario)
    orchestrate = orchestrated(orchestrator, runner, scenario)
    name, _, source = provider.partition(":")
    handed = PROVIDERS.handed(name, scenario.settings)
    nodes = _kind(provider).make(addressing, source, runner.finds_clusters, *handed)
    return Testbed(addressing, nodes, orchestrate)


def accept(addressing: Addressing, runner: OrchestratorKind, without: Collection[str] = ()) -> None:
    """Raise ScenarioError for what of a scenario cannot be run there; ``without`` is as for ``assemble``."""
    admit(addressing, without)
    if faults := [*_unconnected(addressing, runner), *runner.refuse(addressing)]:
        raise ScenarioError(f"scenario {addressing.scenario.name}", faults)


def _unconnected(addressing: Addressing, runner: OrchestratorKind) -> Iterable[Fault]:
    if addressing.scenario.connections and not runner.connects:
        able = (
            f"--provider {provider} --orchestrator {name}"
            for provider, kind in PROVIDERS.items()
            for name, one in kind.orchestrators.items()
            if kind.makes_links and one.connects  # whoever makes none has no segments
        )
        remedy = ", ".join([*able, "or leave them out"])
        words = f"what runs the pods has no proxies to devices: take {remedy}"
        yield Fault(("connections",), words)


def admit(addressing: Addressing, without: Collection[str] = ()) -> None:
    """Raise ScenarioError for promises that there is no room for, wherever the scenario is run."""
    coming = [pod for pod in addressing.pods if pod not in without]
    if faults := list(enforcements.of(addressing).refused(coming)):
        raise ScenarioError(f"scenario {addressing.scenario.name}", faults)


def orchestrated(name: str, runner: OrchestratorKind, scenario: Scenario) -> Orchestrate:
    """Return what makes an orchestrator, as a scenario's settings say."""
    handed = ORCHESTRATORS.handed(name, scenario.settings) if runner.settings else ()
    return lambda addressing, enforcement, nodes: runner.make(addressing, enforcement, nodes, *handed)


def demand_links(provider: str, scenario: Scenario) -> None:
    """Raise LookupError, with the field, for links that nodes of a provider do not get, nor have."""
    if not _kind(provider).makes_links and (field := own_links(scenario)):
        raise LookupError(
            f"{field}: nodes of --provider {provider.partition(':')[0]} have links already, which a scenario "
            "cannot change; leave it out, or take --provider netns"
        )


def own_links(scenario: Scenario) -> str | None:
    """Return the field by which links differ from each other, so that somebody must make them so; or None."""
    if scenario.zones:
        return "zones"
    if scenario.segments:
        return "segments"
    own = (f"nodes.{name}.rate" for name, node in scenario.nodes.items() if node.rate is not None)
    return next(own, None)


def _kind(provider: str) -> ProviderKind:
    """Return a provider's kind; it may have a source. Raises LookupError for an unknown one."""
    name = provider.partition(":")[0]
    return PROVIDERS.named(name)
