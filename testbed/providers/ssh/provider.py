"""Nodes as machines that exist already, reached by SSH.

Nothing of a machine is taken over: what is in the way is named, and nothing is touched. What is made is in
the run's ledger on the machine before it is made (``ledger``), and that is what ``down`` takes away - in this
run, at the next one's beginning, or by ``./invokew down --provider ssh``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Set
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeVar

import paramiko

from testbed.access.clocks import Clock, Reading, estimate
from testbed.access.place import CommandError, Node, in_parallel
from testbed.providers import Provider
from testbed.providers.ssh import inventory, ledger, plan
from testbed.providers.ssh.connection import Connection
from testbed.providers.ssh.inventory import Machine
from testbed.providers.ssh.ledger import Artefact
from testbed.providers.ssh.node import MARK, SshNode, mark
from testbed.providers.ssh.plan import Interface
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing, Found
from testbed.supplies import packages

T = TypeVar("T")


class MachinesError(RuntimeError):
    """Machines cannot be used, or not be left as they were: a line for each, with which and why."""


class SshProvider(Provider):
    """Brings a scenario's nodes up on machines."""

    def __init__(self, scenario: Scenario, inventory_file: Path | None, provisioned: bool = False) -> None:
        """With ``provisioned`` the clusters are there already, and not to be made or taken away."""
        self._scenario = scenario
        self._provisioned = provisioned
        self._run = f"{scenario.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        self._machines = inventory.machines(scenario, inventory_file)
        self._claimed: dict[str, Session] = {}
        self.nodes: dict[str, Node] = {}

    def clocks(self) -> dict[str, Clock]:
        """Compare each machine's clock with ours, now."""
        return _on_each(self._claimed, lambda one: one.clock())

    def up(self) -> Found:
        """Log in, look at every machine, and only then open the ledgers; what makes things comes later."""
        self._claimed = {name: Session(machine, self._run) for name, machine in self._machines.items()}
        self.nodes = {name: one.node for name, one in self._claimed.items()}
        _on_each(self._claimed, lambda one: one.enter())
        nodes = self._scenario.nodes
        uplinks = _on_each(self._claimed, lambda one: one.uplink(nodes[one.name].address))
        found = _found(uplinks)
        scenario = found.applied(self._scenario)
        if self._provisioned:
            scenario = scenario.model_copy(update={"clusters": {}, "pods": {}, "services": {}})
        made = Addressing(scenario)
        states = _on_each(self._claimed, lambda one: one.look(made, uplinks[one.name][1]))
        _on_each(self._claimed, lambda one: one.open(made, states[one.name]))
        return found

    def down(self) -> None:
        """Take away what is in the ledgers. Raises MachinesError with what stays where."""
        claimed, self._claimed, self.nodes = self._claimed, {}, {}
        left = in_parallel(lambda one: one.leave(), claimed.values())
        if messages := [one for one in left if one]:
            raise MachinesError("\n".join(messages))


def located(scenario: Scenario, machines: Mapping[str, Machine]) -> Scenario:
    """Return a scenario with the addresses and uplinks that its machines have; nothing is touched there.

    Raises MachinesError.
    """
    asked = {name: Session(machines[name], "located") for name in scenario.nodes}

    def ask(one: Session) -> tuple[IPv4Address, Interface]:
        one.node.prepare()
        return one.uplink(scenario.nodes[one.name].address)

    try:
        return _found(_on_each(asked, ask)).applied(scenario)
    finally:
        for one in asked.values():
            one.close()


def clear(machines: Mapping[str, Machine]) -> dict[str, list[str]]:
    """Take away what any run has made on machines; return what could not be taken away, by machine.

    Raises MachinesError if one cannot be reached; the others are cleared all the same.
    """
    return _on_each({name: Session(one, "down") for name, one in machines.items()}, Session.clear)


def _found(uplinks: Mapping[str, tuple[IPv4Address, Interface]]) -> Found:
    """Return that nodes have these addresses and interfaces."""
    return Found(
        addresses={name: address for name, (address, _) in uplinks.items()},
        uplinks={name: interface.name for name, (_, interface) in uplinks.items()},
    )


def _on_each(claimed: dict[str, Session], act: Callable[[Session], T]) -> dict[str, T]:
    """Do something on every machine at once; raise with the words of all that failed."""

    def attempt(one: Session) -> T | RuntimeError:
        try:
            return act(one)
        except RuntimeError as error:
            return error

    done = dict(zip(claimed, in_parallel(attempt, claimed.values()), strict=True))
    if faults := [str(one) for one in done.values() if isinstance(one, RuntimeError)]:
        raise MachinesError("\n".join(faults))
    return {name: one for name, one in done.items() if not isinstance(one, RuntimeError)}


AGAIN = "./invokew down --provider ssh, with the same inventory, takes that away"


class MachineError(RuntimeError):
    """A machine cannot be used; the message says which and why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")


class Session:
    """One machine and what one run does to it; each step raises a RuntimeError with what went wrong."""

    def __init__(self, machine: Machine, run: str) -> None:
        self.machine = machine
        self._run = run
        self._connection = Connection(machine)
        self.node = SshNode(self._connection, run)
        self._claimed: Claim | None = None
        self._artefacts: list[Artefact] | None = None

    @property
    def name(self) -> str:
        """The node's."""
        return self.machine.name

    def enter(self) -> None:
        """Log in, claim the machine, and take away what a run that died has left."""
        self.node.prepare()
        if lacking := plan.missing(self.node, packages.MACHINE):
            needed = " ".join(sorted({packages.MACHINE[program] for program in lacking}))
            message = f"no program {', '.join(lacking)} there: apt-get install {needed}"
            raise MachineError(self.name, message)
        self._claim()
        for former in ledger.ledgers(self.node):
            for fault in ledger.undo(self.node, former):
                raise MachineError(self.name, f"left by {former.title}: {fault}")

    def uplink(self, stated: IPv4Address | None) -> tuple[IPv4Address, plan.Interface]:
        """Return the machine's address on the underlay, and the interface that has it."""
        address = stated or self.machine.underlay_address or self._connection.peer_address()
        interfaces = plan.interfaces(self.node)
        for interface in interfaces:
            if address in interface.addresses:
                return address, interface
        there = ", ".join(f"{one.name} {a}" for one in interfaces for a in one.addresses)
        raise MachineError(
            self.name,
            f"no interface has the address {address} ({there}): say which one it has between the nodes, by "
            f"underlay_address in the inventory or nodes.{self.name}.address in the scenario",
        )

    def look(self, addressing: Addressing, uplink: plan.Interface) -> plan.MachineState:
        """Return what is there; nothing of it may be in the way."""
        found = plan.look(self.node, plan.paths(addressing, self.name))
        faults = [
            *plan.unfit(addressing.scenario, uplink, plan.speed(self.node, uplink.name)),
            *plan.strangers(addressing, self.name, uplink),
            *plan.obstacles(addressing, self.name, found),
        ]
        if faults:
            raise MachineError(self.name, "; ".join(faults))
        return found

    def open(self, addressing: Addressing, found: plan.MachineState) -> None:
        """Open the ledger; from here on there is something to take away."""
        directory = ledger.directory(self._run)
        self._artefacts = plan.everything(addressing, self.name, found, directory)
        ledger.open_ledger(self.node, self._run, self.machine.user, self._artefacts)
        self.node.directory = directory

    def clock(self) -> Clock:
        """Compare the machine's clock with ours."""
        return self._valid_claim().clock()

    def leave(self) -> str | None:
        """Take away what this run has made; return in words what stays, and why. Does not fail."""
        try:
            if self._artefacts is None:
                return None
            self._valid_claim()
            faults = self._undo({self._run})
        except (RuntimeError, OSError) as error:
            there = ", ".join(map(str, self._artefacts or []))
            return f"{error}\n{self.name}: nothing was taken away there: {there}. {AGAIN}"
        finally:
            self.close()
        return f"{self.name}: not taken away: {'; '.join(faults)}. {AGAIN}" if faults else None

    def clear(self) -> list[str]:
        """Take away what any run has made there, and end it; return what could not be taken away."""
        try:
            self.node.prepare()
            runs = {one.run for one in ledger.ledgers(self.node)}
            self._claim(runs)
            return self._undo(runs)
        finally:
            self.close()

    def close(self) -> None:
        """Give the machine free."""
        if self._claimed is not None:
            self._claimed.stop()
        self._connection.close()

    def _undo(self, runs: Set[str]) -> list[str]:
        own = [one for one in ledger.ledgers(self.node) if one.run in runs]
        return [fault for one in own for fault in ledger.undo(self.node, one)]

    def _valid_claim(self) -> Claim:
        """Return our claim; a new one where the connection was lost, and with it the former one's claim."""
        if self._claimed is None or not self._claimed.alive:
            return self._claim({self._run})
        return self._claimed

    def _claim(self, ended: Set[str] = frozenset()) -> Claim:
        """Keep others away. Runs that have ended lose their claim, if the machine does not know it yet."""
        for run in ended:
            ledger.kill(self.node, mark_of(run, self.name))
        self._claimed = Claim.start(self.node, self._run)
        if self._claimed is None:
            users = "; ".join(one.title for one in ledger.ledgers(self.node)) or "another run"
            raise MachineError(
                self.name, f"it is in use: {users}. If that has ended: ./invokew down --provider ssh"
            )
        return self._claimed


# A process on a machine claims it for as long as a run lasts, and tells its time. The claim is an abstract
# Unix socket, which one process can bind: it leaves no file, and ends with the process, which ends with its
# connection.
EXCHANGES = 10
CLAIM_SECONDS = 10.0
CLAIM = ["claim"]

CLAIM_PROGRAM = """
import socket, sys, time
claim = socket.socket(socket.AF_UNIX)
try:
    claim.bind("\\0concorde-testbed")
except OSError:
    sys.exit("taken")
print("claimed", flush=True)
while sys.stdin.readline():
    print(time.time_ns(), flush=True)
"""


class Claim:
    """A machine that is claimed."""

    def __init__(self, node: SshNode, channel: paramiko.Channel) -> None:
        self._node = node
        self._channel = channel
        self._lines = channel.makefile("r")

    @classmethod
    def start(cls, node: SshNode, run: str) -> Claim | None:
        """Claim a machine for a run; None if it is claimed already. Raises CommandError."""
        program = ["/usr/bin/python3", "-I", "-S", "-c", CLAIM_PROGRAM]
        channel = node.channel(CLAIM, program, {MARK: mark_of(run, node.name)})
        channel.settimeout(CLAIM_SECONDS)
        claim = cls(node, channel)
        if claim._line() == "claimed":
            return claim
        text = channel.recv_stderr(4096).decode(errors="replace").strip()
        channel.close()
        if text == "taken":
            return None
        raise CommandError(node.name, CLAIM, "no answer", text or "the connection was lost")

    @property
    def alive(self) -> bool:
        """Whether the claim is still ours."""
        return not self._channel.closed and not self._channel.exit_status_ready()

    def clock(self) -> Clock:
        """Compare the machine's clock with ours. Raises CommandError."""
        return estimate([self._exchange() for _ in range(EXCHANGES)])

    def stop(self) -> None:
        """Give the machine free."""
        self._channel.close()

    def _exchange(self) -> Reading:
        try:
            sent = time.time_ns()
            self._channel.sendall(b"\n")
            there = int(self._line())
            return Reading(sent / 1e9, there / 1e9, there / 1e9, time.time_ns() / 1e9)
        except (OSError, ValueError) as error:
            raise CommandError(self._node.name, CLAIM, "no answer", str(error)) from None

    def _line(self) -> str:
        try:
            line: str = self._lines.readline()
        except OSError:
            return ""
        return line.strip()


def mark_of(run: str, node: str) -> str:
    """Return what tells a run's claim from its other processes, which may have to end before it."""
    return mark(f"{run}/claim", node)
