"""Which parts there are, and a testbed of them: the only module that knows every part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from testbed.access.place import Node
from testbed.kubernetes import requirements
from testbed.orchestrators import Orchestrator
from testbed.orchestrators.cni import CniOrchestrator
from testbed.orchestrators.own import KubernetesOrchestrator
from testbed.providers import Provider
from testbed.providers.netns.provider import NetnsProvider
from testbed.scenario import Scenario
from testbed.testbed import Testbed

# What an orchestrator needs of this machine; raises LookupError with what is missing.
DEMANDS: Mapping[str, Callable[[], None]] = {"kubernetes": requirements.demand}

ORCHESTRATORS: Mapping[str, Callable[[Scenario, Mapping[str, Node]], Orchestrator]] = {
    "cni": CniOrchestrator,
    "kubernetes": KubernetesOrchestrator,
}


def _netns(scenario: Scenario, source: str) -> Provider:
    if source:
        raise LookupError(f"--provider netns:{source}: namespaces are made from nothing: --provider netns")
    return NetnsProvider(scenario)


def _ssh(scenario: Scenario, source: str, provisioned: bool = False) -> Provider:
    from testbed.providers.ssh.provider import SshProvider  # paramiko takes its time

    return SshProvider(scenario, Path(source) if source else None, provisioned)


def _vagrant(scenario: Scenario, source: str, provisioned: bool = False) -> Provider:
    if source:
        raise LookupError(f"--provider vagrant:{source}: machines are the scenario's: --provider vagrant")
    from testbed.providers.vagrant.provider import VagrantProvider

    return VagrantProvider(scenario, provisioned)


# What makes a provider from a scenario and what was given as its source, as in ssh:inventory.yaml.
PROVIDERS: Mapping[str, Callable[[Scenario, str], Provider]] = {
    "netns": _netns,
    "ssh": _ssh,
    "vagrant": _vagrant,
}

# The same for machines that are clusters already, by testbed.provisioning.
PROVISIONED: Mapping[str, Callable[[Scenario, str], Provider]] = {
    "ssh": partial(_ssh, provisioned=True),
    "vagrant": partial(_vagrant, provisioned=True),
}

EXISTING = "existing"  # clusters that are there already, networks and all


def demand(orchestrator: str) -> None:
    """Raise LookupError for an orchestrator there is not, or that this machine has not what it takes for."""
    if orchestrator not in ORCHESTRATORS:
        known = ", ".join(ORCHESTRATORS)
        raise LookupError(f"no orchestrator {orchestrator!r} (orchestrators: {known})")
    if orchestrator in DEMANDS:
        DEMANDS[orchestrator]()


def assemble(scenario: Scenario, provider: str, orchestrator: str) -> Testbed:
    """Return a testbed of these parts, not yet up; ``provider`` may have a source, as in ``ssh:FILE``.

    Raises LookupError for a part there is not, or that this machine has not what it takes for.
    """
    name, _, source = provider.partition(":")
    if name == EXISTING:
        from testbed.orchestrators.clusters.orchestrator import ExistingTestbed  # it is one of these

        return ExistingTestbed(scenario, source)
    if name not in PROVIDERS:
        raise LookupError(f"no provider {name!r} (providers: {', '.join([*PROVIDERS, EXISTING])})")
    if name in PROVISIONED and orchestrator == "kubernetes":
        from testbed.orchestrators.clusters.on_machines import MachinesTestbed  # and so is this

        return MachinesTestbed(scenario, PROVISIONED[name](scenario, source))
    demand(orchestrator)
    return Testbed(scenario, PROVIDERS[name](scenario, source), ORCHESTRATORS[orchestrator])
