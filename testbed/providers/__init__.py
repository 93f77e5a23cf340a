"""Where nodes come from; one package a provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from testbed.clocks import Clock
from testbed.nodes import Node, Place
from testbed.providers.netns import NetnsProvider
from testbed.scenario import Scenario


class Provider(Protocol):
    """Supplies the nodes of one scenario, joined by the underlay."""

    @property
    def scenario(self) -> Scenario:
        """The scenario, once they are up with the addresses and uplinks that the nodes really have."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that are up, by name."""

    def clocks(self) -> Mapping[str, Clock]:
        """Compare the nodes' clocks with ours, now; without those that have ours."""

    @property
    def between(self) -> Sequence[Place]:
        """What the nodes' packets pass through on the same machine, if it is the provider's own."""

    @property
    def beneath(self) -> Sequence[Place]:
        """What the nodes run on, if it is within reach and they do not see how busy it is."""

    def up(self) -> None:
        """Bring up the nodes and the underlay. Raises a RuntimeError that says what failed."""

    def down(self) -> None:
        """Remove everything this provider made, and nothing else."""


def _netns(scenario: Scenario, source: str) -> Provider:
    if source:
        raise LookupError(f"--provider netns:{source}: namespaces are made from nothing: --provider netns")
    return NetnsProvider(scenario)


def _ssh(scenario: Scenario, source: str, provisioned: bool = False) -> Provider:
    from testbed.providers.ssh import SshProvider  # paramiko takes its time

    return SshProvider(scenario, Path(source) if source else None, provisioned)


def _vagrant(scenario: Scenario, source: str, provisioned: bool = False) -> Provider:
    if source:
        raise LookupError(f"--provider vagrant:{source}: machines are the scenario's: --provider vagrant")
    from testbed.providers.vagrant import VagrantProvider

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
