"""Nodes as virtual machines that Vagrant makes from the ``Vagrantfile``; everything else is provider ``ssh``.

The machines outlive a run: ``up`` makes those that are missing and starts those that are off, so an
interrupted one goes on where it stopped, and ``down`` of a run takes away what that run has made on them.
They end by ``./invokew down --provider vagrant``, with ``--destroy`` for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from testbed.access.clocks import Clock
from testbed.access.local import Local
from testbed.access.place import Node, Place
from testbed.links.trunks import Running
from testbed.providers.ssh.provider import SshProvider
from testbed.providers.vagrant import requirements
from testbed.providers.vagrant.machines import usable
from testbed.scenario import Scenario
from testbed.scenario.found import Found


class VagrantProvider:
    """Brings a scenario's nodes up on machines of its own; see testbed.providers.Provider."""

    def __init__(self, scenario: Scenario, provisioned: bool = False) -> None:
        self._machines = usable(scenario)
        self._provisioned = provisioned
        self._scenario = scenario
        self._ssh: SshProvider | None = None

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The machines, by the nodes' names."""
        return self._ssh.nodes if self._ssh else {}

    @property
    def hops(self) -> Sequence[Place]:
        """Nothing: the bridge between the machines is the hypervisor's."""
        return []

    @property
    def trunks(self) -> Sequence[Running]:
        """None: the links are not ours."""
        return ()

    @property
    def hosts(self) -> Sequence[Place]:
        """This machine, unless the hypervisor is another one's: they see only what it gives them."""
        return [Local()] if requirements.is_local() else []

    def clocks(self) -> Mapping[str, Clock]:
        """Compare each machine's clock with ours, now."""
        return self._ssh.clocks() if self._ssh else {}

    def up(self) -> Found:
        """Bring up the machines that are not, and log in."""
        self._machines.up()
        self._ssh = SshProvider(self._scenario, self._machines.inventory(), self._provisioned)
        return self._ssh.up()

    def settle(self, networks: Sequence[Place]) -> None:
        """Leave the machines as they are."""

    def down(self) -> None:
        """Take away what the run has made on the machines; they stay."""
        if self._ssh:
            self._ssh.down()
