"""A machine in the hands of one run, from logging in to leaving it as it was."""

from __future__ import annotations

import time
from collections.abc import Set
from ipaddress import IPv4Address

import paramiko

from testbed.access.clocks import Clock, Reading, estimate
from testbed.access.place import CommandError
from testbed.providers.ssh import ledger, plan, survey
from testbed.providers.ssh.artefacts import Artefact
from testbed.providers.ssh.connection import Connection
from testbed.providers.ssh.inventory import Machine
from testbed.providers.ssh.node import MARK, SshNode, mark
from testbed.scenario.addressing import Addressing
from testbed.supplies import packages

AGAIN = "./invokew down --provider ssh, with the same inventory, takes that away"


class MachineError(RuntimeError):
    """A machine cannot be used; the message says which and why."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(f"{name}: {words}")


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
        if lacking := survey.missing(self.node, packages.MACHINE):
            needed = " ".join(sorted({packages.MACHINE[program] for program in lacking}))
            words = f"no program {', '.join(lacking)} there: apt-get install {needed}"
            raise MachineError(self.name, words)
        self._claim()
        for former in ledger.ledgers(self.node):
            for fault in ledger.undo(self.node, former):
                raise MachineError(self.name, f"left by {former.title}: {fault}")

    def uplink(self, stated: IPv4Address | None) -> tuple[IPv4Address, survey.Interface]:
        """Return the machine's address on the underlay, and the interface that has it."""
        address = stated or self.machine.underlay_address or self._connection.peer_address()
        interfaces = survey.interfaces(self.node)
        for interface in interfaces:
            if address in interface.addresses:
                return address, interface
        there = ", ".join(f"{one.name} {a}" for one in interfaces for a in one.addresses)
        raise MachineError(
            self.name,
            f"no interface has the address {address} ({there}): say which one it has between the nodes, by "
            f"underlay_address in the inventory or nodes.{self.name}.address in the scenario",
        )

    def look(self, addressing: Addressing, uplink: survey.Interface) -> survey.Seen:
        """Return what is there; nothing of it may be in the way."""
        found = survey.look(self.node, plan.paths(addressing, self.name))
        faults = [
            *plan.unfit(addressing.scenario, uplink, survey.speed(self.node, uplink.name)),
            *plan.strangers(addressing, self.name, uplink),
            *plan.obstacles(addressing, self.name, found),
        ]
        if faults:
            raise MachineError(self.name, "; ".join(faults))
        return found

    def open(self, addressing: Addressing, found: survey.Seen) -> None:
        """Open the ledger; from here on there is something to take away."""
        directory = ledger.directory(self._run)
        self._artefacts = plan.everything(addressing, self.name, found, directory)
        ledger.open_ledger(self.node, self._run, self.machine.user, self._artefacts)
        self.node.directory = directory

    def clock(self) -> Clock:
        """Compare the machine's clock with ours."""
        return self._kept().clock()

    def leave(self) -> str | None:
        """Take away what this run has made; return in words what stays, and why. Does not fail."""
        try:
            if self._artefacts is None:
                return None
            self._kept()
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

    def _kept(self) -> Claim:
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
        words = channel.recv_stderr(4096).decode(errors="replace").strip()
        channel.close()
        if words == "taken":
            return None
        raise CommandError(node.name, CLAIM, "no answer", words or "the connection was lost")

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
