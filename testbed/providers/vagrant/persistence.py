"""Keeps virtual machines, to be measured on or to look around on: nothing else is made on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from testbed.access.place import PodPlace
from testbed.providers import persistence
from testbed.providers.persistence import BringUp, CommandLine, Location, State, StoredRoute
from testbed.providers.ssh.persistence import MachinesThere
from testbed.providers.vagrant import machines
from testbed.providers.vagrant.machines import Made
from testbed.scenario import Scenario

DEFAULT = "contmec"  # the scenario whose machines are meant if nothing is said


class VagrantPersistence:
    """Keeps virtual machines; see testbed.providers.persistence.Persistence."""

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
        return [made.name for made in machines.known() if made.is_listed()]

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
                known = ", ".join(one.name for one in machines.known()) or "none"
                raise LookupError(f"no virtual machines are called {name!r} (there are: {known})")
            return PersistedMachines(made)
        return PersistedMachines(Made(scenario.name if scenario else DEFAULT))


@dataclass(frozen=True)
class PersistedMachines:
    """A scenario's virtual machines; see testbed.providers.persistence.Persisted."""

    made: Made

    @property
    def name(self) -> str:
        """Their scenario's, unless ``up`` was told another."""
        return self.made.name

    @cached_property
    def _there(self) -> MachinesThere:
        return MachinesThere(self.name, self.made.machines())

    def state(self) -> State:
        """Return the nodes, and where the inventory is."""
        scenario = self.made.scenario_name
        note = f"machines of scenario {scenario} are up; inventory: {self.made.inventory()}"
        return self._there.state().model_copy(update={"scenario": scenario, "notes": [note]})

    def command(self, route: StoredRoute, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a command by ssh, as root."""
        return self._there.command(route, argv)

    def place(self, name: str, route: StoredRoute, address: str) -> PodPlace:
        """Refuse: there are machines, and no pods."""
        raise persistence.no_pods(self.name)

    def login(self, location: Location, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a shell, or a command, by ssh, as Vagrant's user."""
        return self._there.login(location, argv)

    def capture(self, location: Location, interface: str, arguments: Sequence[str]) -> CommandLine:
        """Return what leads to the machine's own tcpdump."""
        return self._there.capture(location, interface, arguments)

    def kubeconfig(self, cluster: str) -> str:
        """Of clusters that they have become nothing is known here."""
        raise persistence.unknown_cluster(self.name, cluster, [])

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
    return next((made for made in machines.known() if made.name == name), None)


def _no(source: str) -> None:
    if source:
        raise LookupError(f"--provider vagrant:{source}: machines are the scenario's: --provider vagrant")
