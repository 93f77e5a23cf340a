"""Where the project's own files are that are no Python modules, and where it builds what it needs.

The only module that knows how the folders lie beside each other, whether they are a checkout or installed.
"""

from __future__ import annotations

from pathlib import Path

HOME = Path(__file__).resolve().parent.parent  # what holds testbed, bench, plugin, playbooks and scenarios

SCENARIOS = HOME / "scenarios"
PLAYBOOKS = HOME / "playbooks"
PLUGIN = HOME / "plugin"
EDGE = HOME / "edge"  # programs of the system under test; started by its path
BOX = HOME / "testbed" / "supplies" / "box"  # what the machines' disk is made with
REQUIREMENTS = HOME / "requirements"  # the lists of pinned packages
GO_REQUIREMENT = REQUIREMENTS / "go.txt"

BUILT_PLUGIN = HOME / "build" / "cni"
MACHINES = HOME / ".vagrant" / "concorde"  # the state of virtual machines, beside Vagrant's own
