"""Verbs for what this machine and others need: what is lacking, got, made, and what machines become."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.console.documents import Document
from bench.console.messages import say, timed
from bench.console.statuses import FAILED, HELD
from bench.recording.requests import scenario_file
from testbed import assembly, doctor, resources
from testbed.doctor import Finding
from testbed.scenario import load
from testbed.supplies import (
    addresses,
    binaries,
    bundle,
    debian,
    devices,
    getting,
    images,
    packages,
    runner,
    services,
    versions,
)
from testbed.supplies.box import building
from testbed.testbed import ENTRIES

NO_FLANNELD = "none"  # instead of a file


def examine(document: Document) -> int:
    """Say what this machine lacks for a testbed."""
    document["findings"] = []
    for finding in doctor.examine(assembly.OPTIONAL):
        _tell(finding)
        document["findings"].append(asdict(finding))
    lacking = any(finding["needed"] and not finding["fine"] for finding in document["findings"])
    return FAILED if lacking else HELD


def _tell(finding: Finding) -> None:
    mark = "ok     " if finding.fine else "MISSING" if finding.needed else "lacking"
    style = "" if finding.fine else "red" if finding.needed else "yellow"
    say(f"{mark}  {finding.subject}", style)
    if not finding.fine:
        say(f"         {finding.remedy}")


def get_kubernetes(version: str, from_: str, download: bool, build: bool, flannel: str) -> int:
    """Provide Kubernetes' programs and the pods' images, and say where they are."""
    if sum([bool(from_), download, build]) > 1:
        raise LookupError("--from, --download and --build are mutually exclusive")
    source: getting.Source | None = None
    if from_:
        source = getting.from_directory(Path(from_))
    elif download:
        source = getting.download
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
    tell = timed()
    for package, (program, *_) in packages.PACKAGES.items():
        packages.get(package, tell)
        tell(f"{package}: {packages.find(package, program)}")
    return HELD


def make_bundle(to: str, version: str) -> int:
    """Put what machines need of a Kubernetes version into a directory, and say what is there."""
    if not to:
        raise LookupError("--to: a directory is required")
    tell = timed()
    made = bundle.make(binaries.find(version or versions.DEFAULT), Path(to))
    tell(f"Kubernetes {made.version} is in {made.directory}: {', '.join(made.files)}")
    return HELD


def provide_runner() -> int:
    """Assemble the image in which bench runs, and say how to load it."""
    tell = timed()
    tell("assembling the image, of this machine's programs, Python and packages (some 15 s)")
    image = runner.provide()
    tell(f"image {image.name} is in {image.archive}: docker load --input {image.archive}")
    return HELD


def provide_images() -> int:
    """Assemble the images that nodes of clusters which exist need, and say where they are."""
    wanted = [images.provide_installer(), *images.provide(), addresses.provide(), services.provide()]
    for image in wanted:
        say(f"image {image.name} is in {image.archive}")
    for provide in (devices.provide, devices.provide_relay):
        try:
            image = provide()
            say(f"image {image.name} is in {image.archive}")
        except LookupError as error:
            say(f"left out, and needed for devices alone: {error}")
    return HELD


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

    def tell(stage: str) -> None:
        say(f"box: {stage}")

    where = Path(to).absolute() if to else resources.cache() / "boxes"
    found = building.build(where, version or building.of_today(), upgrade, tell, mirror, security)
    if shutil.which("vagrant") is None:
        tell(f"Vagrant is not installed here; where it is: vagrant box add {found}")
    else:
        building.add(found)
        tell(f"Vagrant has it; it is also in {found.with_suffix('.box')}")
    return HELD
