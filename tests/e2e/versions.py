"""Another version of the plugin, and a pod that is promised something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from testbed.supplies import images
from testbed.supplies.images import Image
from tests import installation

VERSION = "9.9.9"
GUARANTEE = "concorde.contmec.dev/egress-guarantee"
PROMISE = 20_000_000  # bits per second


def image(directory: Path) -> Image:
    """The installer's image with another version of the plugin."""
    built = installation.build(directory, VERSION, other_kernel=True)
    name = images.INSTALLER.rpartition(":")[0]
    return images.assemble(f"{name}:{VERSION}", images.installer_files(built.parent))


def pod(name: str, node: str, annotations: dict[str, str]) -> dict[str, Any]:
    container = {"name": "traffic", "image": images.TRAFFIC, "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 1,
        },
    }
