"""This project's own plugin, and where those of others are."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed import resources

DIRECTORY = resources.BUILT_PLUGIN
# Where Debian and Kubernetes put the reference plugins.
REFERENCE_DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni")


def build(directory: Path = DIRECTORY) -> Path:
    """Build the plugin for the interpreter of its first line; return the directory for CNI_PATH."""
    subprocess.run(
        ["/usr/bin/python3", "-I", str(resources.PLUGIN / "build.py"), "--output", str(directory)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return directory
