"""Verbs that provide what a testbed needs: they say what is lacking here, and get or make it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cli.documents import Document
from bench.cli.statuses import FAILED, HELD
from bench.cli.terminal import say, timed
from testbed.testbed import ENTRIES

if TYPE_CHECKING:
    from testbed.doctor import Finding

NO_FLANNELD = "none"  # instead of a file


def examine(told: Document) -> int:
    """Say what this machine lacks for a testbed."""
    from testbed import assembly, doctor

    told["findings"] = []
    for finding in doctor.examine(assembly.OPTIONAL):
        _tell(finding)
        told["findings"].append(asdict(finding))
    lacking = any(finding["needed"] and not finding["fine"] for finding in told["findings"])
    return FAILED if lacking else HELD


def _tell(finding: Finding) -> None:
    mark = "ok     " if finding.fine else "MISSING" if finding.needed else "lacking"
    style = "" if finding.fine else "red" if finding.needed else "yellow"
    say(f"{mark}  {finding.subject}", style)
    if not finding.fine:
        say(f"         {finding.remedy}")


def get_kubernetes(version: str, from_: str, download: bool, build: bool, flannel: str) -> int:
    """Provide Kubernetes' programs and the pods' images, and say where they are."""
    from testbed.supplies import debian, getting, images, release, versions

    if sum([bool(from_), download, build]) > 1:
        raise LookupError("--from, --download and --build are mutually exclusive")
    source: getting.Source | None = None
    if from_:
        source = getting.from_directory(Path(from_))
    elif download:
        source = release.download
    elif build:
        source = debian.build
    without = flannel == NO_FLANNELD
    flanneld = Path(flannel) if flannel and not without else None
    tell = timed()
    got = getting.get(version or versions.DEFAULT, source, flanneld, without, tell)
    tell(f"Kubernetes {got.version} is in {got.directory}, {got.source}")
    tell(f"overlays: by flanneld {got.flanneld}" if got.flanneld else f"overlays: {ENTRIES}")
    for image in images.provide():
        tell(f"image {image.name} is in {image.archive}")
    return HELD


def get_programs() -> int:
    """Provide the programs of pod networks' daemons, and say where they are."""
    from testbed.supplies import packages

    tell = timed()
    for package, (program, *_) in packages.PACKAGES.items():
        packages.get(package, tell)
        tell(f"{package}: {packages.find(package, program)}")
    return HELD


def make_bundle(to: str, version: str) -> int:
    """Put what machines need of a Kubernetes version into a directory, and say what is there."""
    from testbed.supplies import binaries, bundle, versions

    if not to:
        raise LookupError("--to: a directory is required")
    tell = timed()
    made = bundle.make(binaries.find(version or versions.DEFAULT), Path(to))
    tell(f"Kubernetes {made.version} is in {made.directory}: {', '.join(made.files)}")
    return HELD


def provide_runner() -> int:
    """Assemble the image in which bench runs, and say how to load it."""
    from testbed.supplies import runner

    tell = timed()
    tell("assembling the image, of this machine's programs, Python and packages (some 15 s)")
    image = runner.provide()
    tell(f"image {image.name} is in {image.archive}: docker load --input {image.archive}")
    return HELD


def provide_images() -> int:
    """Assemble the images that nodes of clusters which exist need, and say where they are."""
    from testbed.supplies import images, installer

    wanted = [installer.provide(), *(image for image in images.provide() if image.name == images.TRAFFIC)]
    for image in wanted:
        say(f"image {image.name} is in {image.archive}")
    return HELD
