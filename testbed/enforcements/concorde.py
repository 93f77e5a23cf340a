"""This project's own plugin, and where those of others are."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed import resources

DIRECTORY = resources.BUILT_PLUGIN
# Where Debian and Kubernetes put the reference plugins.
REFERENCE_DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni")


def build(directory: Path = DIRECTORY) -> Path:
    """Build the plugin for the interpreter of its first line; return the directory for CNI_PATH.

    Raises RuntimeError with what is wrong, as where nothing can be written.
    """
    command = ["/usr/bin/python3", "-I", str(resources.PLUGIN / "build.py"), "--output", str(directory)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        *_, last = ["no reason given", *done.stderr.splitlines()]
        raise RuntimeError(f"cannot build the plugin into {directory}: {last}")
    return directory
