"""What a cluster of machines gets of ``edge/deploy``: the manifests that any cluster gets, fitted to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from testbed.kubernetes.manifests import Manifest
from testbed.scenario import reading
from testbed.supplies.bundle import Archive

# By this the pod is another when the image is, though that has the same name.
IMAGE_DIGEST = "concorde.contmec.dev/image"


def read(*directories: Path) -> Iterator[Manifest]:
    """Yield the manifests of directories, in the order of their files."""
    for directory in directories:
        for file in sorted(directory.glob("*.yaml")):
            yield reading.parse(file.read_text(encoding="utf-8"))


def fit(workload: Manifest, image: Archive) -> Manifest:
    """Let a Deployment or a DaemonSet run an image; return its container."""
    template = workload["spec"]["template"]
    template["metadata"]["annotations"] = {IMAGE_DIGEST: image.digest}
    container: Manifest
    (container,) = template["spec"]["containers"]
    container["image"] = image.name
    return container
