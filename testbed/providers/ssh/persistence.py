"""Enters machines that exist: nobody's to bring up or to take down, but runs may have left things there."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from testbed.access.local import ENVIRONMENT
from testbed.access.place import Route
from testbed.providers import persistence
from testbed.providers.persistence import BringUp, CommandLine, Location, Persisted, Persistence, State
from testbed.providers.ssh import inventory
from testbed.providers.ssh.inventory import Machine
from testbed.scenario import Scenario

# Root runs it as it is, for there may be no sudo; the arguments are the command.
AS_ROOT = '[ "$(id -u)" != 0 ] || exec "$@"; exec sudo -n -- "$@"'


class MachinesPersistence(Persistence):
    """Keeps no testbeds, and leads to machines: nobody's to bring up or to take down."""

    def default_name(self, scenario: Scenario) -> str:
        """Nothing is called anything."""
        return scenario.name

    def up(
        self, scenario: Scenario, source: str, name: str, bring_up: BringUp, progress: Callable[[str], None]
    ) -> Persisted:
        """Refuse: what is made on machines that exist ends with the run that made it."""
        raise LookupError(
            "--provider ssh: nothing stays up on machines that exist; bench measures there, and with "
            "--provider ssh:INVENTORY ssh, exec and capture enter them"
        )

    def at(self, source: str, scenario: Scenario | None, name: str | None) -> MachinesThere:
        """Return the machines of an inventory, or of a scenario with addresses."""
        machines = inventory.chosen(Path(source) if source else None, scenario)
        return MachinesThere(source or "ssh", lambda: machines)


class MachinesThere(Persisted):
    """Machines that exist."""

    def __init__(self, name: str, find: Callable[[], Mapping[str, Machine]]) -> None:
        self.name, self._find = name, find

    @cached_property
    def machines(self) -> Mapping[str, Machine]:
        """How to get to each. Raises LookupError if they are not up."""
        return self._find()

    def state(self) -> State:
        """Return the nodes, which are all that is known of them."""
        addresses = {name: str(one.underlay_address or one.host) for name, one in self.machines.items()}
        return State(scenario=self.name, places=persistence.nodes(addresses))

    def command(self, route: Route, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a command by ssh, as root."""
        return _as_root(self.machines[route.node], [*route.command, *argv])

    def login(self, location: Location, argv: Sequence[str]) -> CommandLine:
        """Return what leads to a shell, or a command, by ssh, as the user who logs in."""
        return _login(self.machines[location.node], argv)

    def down(self) -> str:
        """Take away what any run has left there."""
        from testbed.providers.ssh.provider import MachinesError, clear  # paramiko takes its time

        left = {name: faults for name, faults in clear(self.machines).items() if faults}
        if left:
            messages = (f"{name}: not taken away: {'; '.join(faults)}" for name, faults in left.items())
            raise MachinesError("\n".join(messages))
        return f"nothing of a testbed is left on {', '.join(self.machines)}"


def _login(machine: Machine, command: Sequence[str]) -> CommandLine:
    """Return what leads to a shell there, or to a command, as the user who logs in. Raises LookupError."""
    if shutil.which("ssh") is None:
        raise LookupError("ssh is not installed: apt-get install openssh-client")
    return CommandLine(ssh_command(machine, command))


def _as_root(machine: Machine, command: Sequence[str]) -> CommandLine:
    """Return what leads to a command as root, with this terminal if there is one. Raises LookupError."""
    found = ["env", f"PATH={ENVIRONMENT['PATH']}", *command]
    ssh, *rest = _login(machine, ["sh", "-c", AS_ROOT, "sh", *found]).argv
    terminal = ["-t"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    return CommandLine([ssh, *terminal, *rest])


def ssh_command(machine: Machine, command: Sequence[str]) -> list[str]:
    """Return ssh's command line."""
    key = ["-i", str(machine.key)] if machine.key else []
    known = ["-o", f"UserKnownHostsFile={machine.known_hosts}"] if machine.known_hosts else []
    remote = [shlex.join(command)] if command else []
    return ["ssh", "-p", str(machine.port), "-l", machine.user, *key, *known, "--", machine.host, *remote]
