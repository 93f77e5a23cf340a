"""Verbs for what machines become, and for the disk that virtual ones are made from."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.cli.statuses import HELD
from bench.cli.terminal import say, timed
from bench.recording.requests import scenario_file
from testbed import assembly
from testbed.scenario import load


def provision(
    provider: str,
    set_: Sequence[str],
    scenario: str,
    scale: float,
    from_: str,
    version: str,
    reset: bool,
) -> int:
    """Turn machines into the clusters of a scenario, or take that away; say what that has changed."""
    from testbed.provisioning import provision

    if reset:
        machines = assembly.machines(provider, load(scenario_file(scenario)) if scenario else None)
        return _show_changes(provision.reset(machines, timed()).changed, "is as it was before")
    wanted = load(scenario_file(scenario), set_, scale)
    offered = Path(from_) if from_ else None
    machines = assembly.machines(provider, load(scenario_file(scenario)))
    done = provision.provision(wanted, machines, offered, version, timed())
    return _show_changes(done.changed, "is as it should be")


def _show_changes(changed: Mapping[str, int], words: str) -> int:
    for host, count in changed.items():
        tasks = f"{count} tasks changed something" if count else "nothing had to be changed"
        say(f"{host} {words}: {tasks}")
    return HELD


def build_box(to: str, version: str, upgrade: bool, mirror: str, security: str) -> int:
    """Build the machines' box, and let Vagrant have it."""
    from testbed.supplies import cache
    from testbed.supplies.box import building

    def tell(stage: str) -> None:
        say(f"box: {stage}")

    where = Path(to).absolute() if to else cache.directory() / "boxes"
    found = building.build(where, version or building.of_today(), upgrade, tell, mirror, security)
    if shutil.which("vagrant") is None:
        tell(f"Vagrant is not installed here; where it is: vagrant box add {found}")
    else:
        building.add(found)
        tell(f"Vagrant has it; it is also in {found.with_suffix('.box')}")
    return HELD
