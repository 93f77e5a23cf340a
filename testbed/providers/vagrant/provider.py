"""Nodes as virtual machines that Vagrant makes from the ``Vagrantfile``; everything else is provider ``ssh``.

The machines outlive a run: ``up`` makes those that are missing and starts those that are off, so an
interrupted one goes on where it stopped, and ``down`` of a run takes away what that run has made on them.
They end by ``./invokew down --provider vagrant``, with ``--destroy`` for good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from testbed.access.clocks import Clock
from testbed.access.local import Local
from testbed.providers import Provider
from testbed.providers.persistence import BringUp, Persistence, State
from testbed.providers.ssh.persistence import MachinesThere
from testbed.providers.vagrant import machines, requirements
from testbed.providers.vagrant.machines import Made, usable
from testbed.scenario import Scenario
from testbed.scenario.addressing import Found

if TYPE_CHECKING:
    from testbed.providers.ssh.provider import SshProvider


class VagrantProvider(Provider):
    """Brings a scenario's nodes up on machines of its own."""

    def __init__(self, scenario: Scenario, provisioned: bool = False) -> None:
        self._machines = usable(scenario)
        self._provisioned = provisioned
        self._scenario = scenario
        self._ssh: SshProvider | None = None
        # They see only what the hypervisor gives them.
        self.hosts = [Local()] if requirements.is_local() else []

    def clocks(self) -> Mapping[str, Clock]:
        """Compare each machine's clock with ours, now."""
        return self._ssh.clocks() if self._ssh else {}

    def up(self) -> Found:
        """Bring up the machines that are not, and log in."""
        from testbed.providers.ssh.provider import SshProvider  # paramiko takes its time

        self._machines.up()
        self._ssh = SshProvider(self._scenario, self._machines.inventory(), self._provisioned)
        found = self._ssh.up()
        self.nodes = self._ssh.nodes
        return found

    def down(self) -> None:
        """Take away what the run has made on the machines; they stay."""
        if self._ssh:
            self._ssh.down()


DEFAULT = "contmec"  # the scenario whose machines are meant if nothing is said


class VagrantPersistence(Persistence):
    """Keeps virtual machines."""

    def default_name(self, scenario: Scenario) -> str:
        """Return what they were called before, or else what their scenario is called."""
        return Made(scenario.name).name

    def up(
        self, scenario: Scenario, source: str, name: str, _bring_up: BringUp, progress: Callable[[str], None]
    ) -> PersistedMachines:
        """Make the machines that are missing, and start those that are off."""
        _no(source)
        other = _called(name)
        if other and other.scenario_name != scenario.name:
            raise LookupError(
                f"the machines of scenario {other.scenario_name} are called {name!r}: choose another --name"
            )
        made = machines.usable(scenario)
        made.up(progress)
        made.call(name)
        return PersistedMachines(made)

    def names(self) -> list[str]:
        """Return what machines are called of which there is an inventory, as there is while they are up."""
        return [made.name for made in machines.all_made() if made.is_listed()]

    def find(self, name: str) -> PersistedMachines | None:
        """Return machines by what they are called, if any of them answers."""
        made = _called(name)
        return PersistedMachines(made) if made and made.is_listed() and made.answers() else None

    def at(self, source: str, scenario: Scenario | None, name: str | None) -> PersistedMachines:
        """Return a scenario's machines, or those of a name, whether they are up or not."""
        _no(source)
        if scenario is None and name is not None:
            made = _called(name)
            if made is None:
                known = ", ".join(one.name for one in machines.all_made()) or "none"
                raise LookupError(f"no virtual machines are called {name!r} (there are: {known})")
            return PersistedMachines(made)
        return PersistedMachines(Made(scenario.name if scenario else DEFAULT))


class PersistedMachines(MachinesThere):
    """A scenario's virtual machines."""

    def __init__(self, made: Made) -> None:
        super().__init__(made.name, made.machines)
        self.made = made

    def state(self) -> State:
        """Return the nodes, and where the inventory is."""
        scenario = self.made.scenario_name
        note = f"machines of scenario {scenario} are up; inventory: {self.made.inventory()}"
        return super().state().model_copy(update={"scenario": scenario, "notes": [note]})

    def down(self) -> str:
        """Switch them off."""
        self.made.halt()
        return f"machines of scenario {self.made.scenario_name} are off"

    def destroy(self) -> str:
        """Remove them, with all that is on them."""
        self.made.destroy()
        return f"machines of scenario {self.made.scenario_name} are gone"


def _called(name: str) -> Made | None:
    """Return the machines that are called this, up or not."""
    return next((made for made in machines.all_made() if made.name == name), None)


def _no(source: str) -> None:
    if source:
        raise LookupError(f"--provider vagrant:{source}: machines are the scenario's: --provider vagrant")
