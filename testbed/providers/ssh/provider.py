"""Nodes as machines that exist already, reached by SSH.

Nothing of a machine is taken over: what is in the way is named, and nothing is touched. What is made is in
the run's ledger on the machine before it is made (``ledger``), and that is what ``down`` takes away - in this
run, at the next one's beginning, or by ``./invokew down --provider ssh``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeVar

from testbed.access.clocks import Clock
from testbed.access.place import Node, Place, in_parallel
from testbed.links.trunks import Running
from testbed.providers.ssh import inventory
from testbed.providers.ssh.inventory import Machine
from testbed.providers.ssh.session import Session
from testbed.providers.ssh.survey import Interface
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing
from testbed.scenario.found import Found

T = TypeVar("T")


class MachinesError(RuntimeError):
    """Machines cannot be used, or not be left as they were: a line for each, with which and why."""


class SshProvider:
    """Brings a scenario's nodes up on machines; see testbed.providers.Provider."""

    def __init__(self, scenario: Scenario, inventory_file: Path | None, provisioned: bool = False) -> None:
        """With ``provisioned`` the clusters are there already, and not to be made or taken away."""
        self._scenario = scenario
        self._provisioned = provisioned
        self._run = f"{scenario.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        self._machines = inventory.machines(scenario, inventory_file)
        self._claimed: dict[str, Session] = {}

    @property
    def nodes(self) -> dict[str, Node]:
        """The machines, by the nodes' names."""
        return {name: one.node for name, one in self._claimed.items()}

    @property
    def hops(self) -> list[Place]:
        """Nothing: machines have a network of their own."""
        return []

    @property
    def trunks(self) -> Sequence[Running]:
        """None: the links are not ours."""
        return ()

    @property
    def hosts(self) -> list[Place]:
        """Nothing that is known of: they may be machines of their own."""
        return []

    def clocks(self) -> dict[str, Clock]:
        """Compare each machine's clock with ours, now."""
        return _on_each(self._claimed, lambda one: one.clock())

    def up(self) -> Found:
        """Log in, look at every machine, and only then open the ledgers; what makes things comes later."""
        self._claimed = {name: Session(machine, self._run) for name, machine in self._machines.items()}
        _on_each(self._claimed, lambda one: one.enter())
        nodes = self._scenario.nodes
        uplinks = _on_each(self._claimed, lambda one: one.uplink(nodes[one.name].address))
        found = _found(uplinks)
        scenario = found.applied(self._scenario)
        if self._provisioned:
            scenario = scenario.model_copy(update={"clusters": {}, "pods": {}})
        made = Addressing(scenario)
        seen = _on_each(self._claimed, lambda one: one.look(made, uplinks[one.name][1]))
        _on_each(self._claimed, lambda one: one.open(made, seen[one.name]))
        return found

    def settle(self, networks: Sequence[Place]) -> None:
        """Leave the machines as they are."""

    def down(self) -> None:
        """Take away what is in the ledgers. Raises MachinesError with what stays where."""
        claimed, self._claimed = self._claimed, {}
        left = in_parallel(lambda one: one.leave(), claimed.values())
        if words := [one for one in left if one]:
            raise MachinesError("\n".join(words))


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
