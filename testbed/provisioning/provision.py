"""Makes a scenario's clusters of machines, and machines of its clusters."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from testbed import resources
from testbed.access import scratch
from testbed.kubernetes import cell
from testbed.providers.ssh.inventory import Machine
from testbed.providers.ssh.provider import located
from testbed.provisioning import playbooks, variables
from testbed.provisioning.playbooks import Outcome, Say
from testbed.scenario import Scenario
from testbed.supplies import binaries, bundle, cache, getting, versions
from testbed.supplies.bundle import Bundle


def provision(
    scenario: Scenario, machines: Mapping[str, Machine], directory: Path | None, version: str, say: Say
) -> Outcome:
    """Turn the machines of a scenario's nodes into its clusters; what is so already stays as it is.

    ``directory`` is a bundle; without one it is made of the programs that are kept, or else downloaded.
    Raises LookupError and ScenarioError for what cannot be, RuntimeError for what failed.
    """
    offered = bundle.read(directory) if directory is not None else assembled(version, say)
    if directory is not None and version and str(offered.version) != version:
        raise LookupError(f"--version: {version}, but {directory} has Kubernetes {offered.version}")
    say("looking for the machines' addresses between the nodes")
    placed = located(scenario, machines)
    with scratch.directory() as packed:
        hosts = variables.inventory(placed, machines, offered)
        hosts["all"]["vars"] |= {
            "plugin_archive": str(pack_plugin(packed)),
            "cell_program": str(cell.__file__),
        }
        return playbooks.run(playbooks.SITE, hosts, say)


def reset(machines: Mapping[str, Machine], say: Say) -> Outcome:
    """Take away from machines what provisioning has made there."""
    return playbooks.run(playbooks.RESET, variables.bare_inventory(machines), say)


def assembled(version: str, say: Say) -> Bundle:
    """Return a bundle of a version's programs: those that are kept, or else the official release."""
    wanted = str(versions.parse(version or versions.CURRENT))
    try:
        programs = binaries.find(wanted)
    except (LookupError, RuntimeError):
        programs = getting.get(wanted, getting.download, say=say)
    say(f"putting together what machines need of Kubernetes {programs.version}")
    return bundle.make(programs, cache.root() / f"bundle-{programs.version}")


def pack_plugin(scratch: Path) -> Path:
    """Return an archive of the plugin; the same sources make the same archive."""
    built = resources.build_plugin()
    archive = scratch / "concorde.tar"
    subprocess.run(
        [
            "/usr/bin/python3",
            "-I",
            str(resources.PLUGIN / "build.py"),
            f"--output={built}",
            f"--tar={archive}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return archive
