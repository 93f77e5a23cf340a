"""Verbs for machines, virtual or not: they are made, entered, turned into clusters, and cleared."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.cli.exits import FAILED, HELD
from bench.cli.terminal import complain, say, timed
from bench.recording.requests import scenario_file
from testbed.scenario import load

if TYPE_CHECKING:
    from testbed.providers.ssh.inventory import Machine

VAGRANT = "vagrant"
DEFAULT = "contmec"  # whose machines are meant if none is said


def bring_up(file: str, overrides: Sequence[str], scale: float) -> int:
    """Bring up a scenario's virtual machines, to be measured on, or to look around on."""
    from bench.cli.progress import Display
    from testbed.providers.vagrant import provider as vagrant

    scenario = load(scenario_file(file), overrides, scale)
    machines = vagrant.usable(scenario)
    machines.up(Display(Console(), scenario.name).stage)
    say(f"machines of scenario {scenario.name} are up; inventory: {machines.inventory()}")
    return HELD


def log_in(provider: str, file: str, node: str, command: Sequence[str]) -> int:
    """Become a shell, or a command, on a machine."""
    from testbed.providers.ssh import client

    client.replace_self(_machines(provider, file), node, command)
    return HELD


def take_down(provider: str, file: str, destroy: bool) -> int:
    """Switch virtual machines off, or remove them; take away what runs have left on other machines."""
    if provider == VAGRANT:
        return _end(file or DEFAULT, destroy)
    return _clear(_machines(provider, file))


def _end(file: str, destroy: bool) -> int:
    """Switch a scenario's virtual machines off, or remove them."""
    from testbed.providers.vagrant.machines import Machines

    scenario = load(scenario_file(file))
    machines = Machines(scenario)
    if destroy:
        machines.destroy()
    else:
        machines.halt()
    say(f"machines of scenario {scenario.name} are {'gone' if destroy else 'off'}")
    return HELD


def _clear(machines: Mapping[str, Machine]) -> int:
    """Take away what runs have left on machines."""
    from testbed.providers.ssh.provider import clear

    left = {name: faults for name, faults in clear(machines).items() if faults}
    for name, faults in left.items():
        complain(f"{name}: not taken away: {'; '.join(faults)}")
    if not left:
        say(f"nothing of a testbed is left on {', '.join(machines)}")
    return FAILED if left else HELD


def provision(
    provider: str, file: str, overrides: Sequence[str], scale: float, directory: str, version: str
) -> int:
    """Turn machines into the clusters of a scenario, and say what that has changed."""
    from testbed.provisioning import provision

    scenario = load(scenario_file(file), overrides, scale)
    offered = Path(directory) if directory else None
    done = provision.provision(scenario, _machines(provider, file), offered, version, timed())
    return _show_changes(done.changed, "is as it should be")


def reset(provider: str, file: str) -> int:
    """Take away what provisioning has made on machines, and say what that has changed."""
    from testbed.provisioning import provision

    return _show_changes(provision.reset(_machines(provider, file), timed()).changed, "is as it was before")


def _show_changes(changed: Mapping[str, int], words: str) -> int:
    for host, count in changed.items():
        tasks = f"{count} tasks changed something" if count else "nothing had to be changed"
        say(f"{host} {words}: {tasks}")
    return HELD


def build_box(directory: str, version: str, upgrade: bool, mirror: str, security: str) -> int:
    """Build the machines' box, and let Vagrant have it."""
    from testbed.supplies import cache
    from testbed.supplies.box import building

    def tell(stage: str) -> None:
        say(f"box: {stage}")

    where = Path(directory).absolute() if directory else cache.directory() / "boxes"
    found = building.build(where, version or building.of_today(), upgrade, tell, mirror, security)
    if shutil.which("vagrant") is None:
        tell(f"Vagrant is not installed here; where it is: vagrant box add {found}")
    else:
        building.add(found)
        tell(f"Vagrant has it; it is also in {found.with_suffix('.box')}")
    return HELD


def _machines(provider: str, file: str) -> dict[str, Machine]:
    """Return the machines of ``ssh:INVENTORY``, or of a scenario with addresses, or those Vagrant has made.

    Raises LookupError.
    """
    from testbed.providers.ssh import inventory

    if provider == VAGRANT:
        from testbed.providers.vagrant import provider as vagrant

        scenario = load(scenario_file(file or DEFAULT))
        return inventory.machines(scenario, vagrant.inventory_file(scenario))
    kind, _, source = provider.partition(":")
    if kind != "ssh":
        raise LookupError(f"--provider: {provider!r} has no machines (ssh:INVENTORY, vagrant)")
    given = load(scenario_file(file)) if file else None
    return inventory.chosen(Path(source) if source else None, given)
