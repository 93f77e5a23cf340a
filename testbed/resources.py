"""Where the project's own files are that are no Python modules, and where it builds what it needs.

The only module that knows how the folders lie beside each other, whether they are a checkout or installed. A
checkout keeps in itself what it builds; what is another's to write, as an installation may be, keeps that in
your cache.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent  # what holds testbed, bench, plugin, playbooks and scenarios

SCENARIOS = HOME / "scenarios"
NETWORKS = SCENARIOS / "networks"  # descriptions
PLAYBOOKS = HOME / "playbooks"
PLUGIN = HOME / "plugin"
EDGE = HOME / "edge"  # programs of the system under test; started by its path
BOX = HOME / "testbed" / "supplies" / "box"  # what the machines' disk is made with
REQUIREMENTS = HOME / "requirements"  # the lists of pinned packages
GO_REQUIREMENT = REQUIREMENTS / "go.txt"

CACHE = "CONCORDE_CACHE"  # environment variable


def cache() -> Path:
    """Return the directory where all is kept that was built or downloaded."""
    if own := os.environ.get(CACHE):
        return Path(own).absolute()
    return of_user("XDG_CACHE_HOME", ".cache")


def of_user(variable: str, usual: str) -> Path:
    """Return our directory in one of the XDG specification's, which says to ignore a relative path."""
    given = Path(os.environ.get(variable, ""))
    return (given if given.is_absolute() else Path.home() / usual) / "concorde-testbed"


_SCRIPT = "./invokew"  # what a checkout has, and nothing that is installed
CHECKOUT = (HOME / _SCRIPT).exists()
PROGRAM = _SCRIPT if CHECKOUT else "concorde-testbed"  # what people type

_BUILT = HOME if CHECKOUT and os.access(HOME, os.W_OK) else cache()
BUILT_PLUGIN = _BUILT / "build" / "cni"
# Where Debian and Kubernetes put the reference plugins.
REFERENCE_PLUGINS = ("/opt/cni/bin", "/usr/lib/cni")
MACHINES = _BUILT / ".vagrant" / "concorde"  # the state of virtual machines, beside Vagrant's own


def build_plugin(directory: Path = BUILT_PLUGIN) -> Path:
    """Build the plugin for the interpreter of its first line; return the directory for CNI_PATH.

    Raises RuntimeError with what is wrong, as where nothing can be written.
    """
    import subprocess  # a pressed key imports this module

    command = ["/usr/bin/python3", "-I", str(PLUGIN / "build.py"), "--output", str(directory)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        *_, last = ["no reason given", *done.stderr.splitlines()]
        raise RuntimeError(f"cannot build the plugin into {directory}: {last}")
    return directory


def as_typed(text: str) -> str:
    """Return what is said in the words of a checkout as it is to be typed here.

    That is where this is installed, or where the caller stands, whose paths are taken as they are.
    """
    if not CHECKOUT:
        return text.replace(_SCRIPT, PROGRAM)
    return text if _here() == HOME else text.replace(_SCRIPT, shlex.quote(str(HOME / _SCRIPT)))


def shown(path: Path) -> Path:
    """Return a path as the caller may type it: relative to where the caller stands, if it is below."""
    here = _here()
    return path.relative_to(here) if here and path.is_relative_to(here) else path


def _here() -> Path | None:
    """Return the current directory; None if it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def version() -> str:
    """Return the version of all of it: harness, plugin and images.

    The plugin's source says it, since it has to on nodes where there is nothing else of ours.
    """
    text = (PLUGIN / "concorde" / "__init__.py").read_text(encoding="utf-8")
    said = re.search(r'^VERSION = "(.+)"$', text, re.MULTILINE)
    assert said is not None
    return said[1]
