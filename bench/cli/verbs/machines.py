"""Verbs for what machines become, and for the disk that virtual ones are made from."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.cli.exits import HELD
from bench.cli.terminal import say, timed
from bench.recording.requests import scenario_file
from testbed import assembly
from testbed.scenario import load


def provision(
    provider: str, file: str, overrides: Sequence[str], scale: float, directory: str, version: str
) -> int:
    """Turn machines into the clusters of a scenario, and say what that has changed."""
    from testbed.provisioning import provision

    scenario = load(scenario_file(file), overrides, scale)
    offered = Path(directory) if directory else None
    machines = assembly.machines(provider, load(scenario_file(file)))
    done = provision.provision(scenario, machines, offered, version, timed())
    return _show_changes(done.changed, "is as it should be")


def reset(provider: str, file: str) -> int:
    """Take away what provisioning has made on machines, and say what that has changed."""
    from testbed.provisioning import provision

    machines = assembly.machines(provider, load(scenario_file(file)) if file else None)
    return _show_changes(provision.reset(machines, timed()).changed, "is as it was before")


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
