"""The programs of one Kubernetes version: which ones, where they are, and that they are still the same.

They are kept with a manifest of their checksums, which is compared at each use. So a damaged or exchanged
program is found before it runs, and not by the strange cluster it makes.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from testbed.supplies import cache, versions
from testbed.supplies.versions import Version

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl", "kubeadm")
FLANNELD = "flanneld"  # kept beside them if it was given
PROXY = "kube-proxy"  # kept apart: to be compared with, and in no testbed
MANIFEST = "manifest.json"

GET = "./invokew kubernetes.get"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# How each program tells its version; the others say it with --version.
ASKING = {"kubectl": ("version", "--client", "--output=json"), "kubeadm": ("version", "--output=short")}


@dataclass(frozen=True)
class Binaries:
    """The programs of one version, checked."""

    version: Version
    directory: Path
    source: str  # where they came from, for people
    programs: tuple[str, ...]
    flanneld: str = ""  # the version of the one kept beside them, if one is

    def path(self, program: str) -> Path:
        """Return where a program is. Raises LookupError if it is not among them."""
        if program not in self.programs:
            remedy = f": {GET} --version {self.version} --flannel FILE" if program == FLANNELD else ""
            raise LookupError(f"no {program} beside Kubernetes {self.version} in {self.directory}{remedy}")
        return self.directory / program


def architecture() -> str:
    """Return this machine's name among those that Kubernetes is released for. Raises LookupError."""
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise LookupError(f"no Kubernetes for {machine} here (only for {', '.join(ARCHITECTURES)})")
    return ARCHITECTURES[machine]


def find(version: str = versions.DEFAULT) -> Binaries:
    """Return the programs that are kept of a version, once they are found to be unchanged.

    Raises LookupError if there are none, RuntimeError if they are not what was kept; both say what to do.
    """
    wanted = versions.parse(version)
    directory = cache.root() / str(wanted)
    remedy = f"{GET} --version {wanted}"
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        source, recorded = str(manifest["source"]), dict(manifest["sha256"])
    except FileNotFoundError:
        raise LookupError(f"no Kubernetes {wanted} in {cache.root()}: run {remedy}") from None
    except (ValueError, KeyError, TypeError):
        raise RuntimeError(f"{directory / MANIFEST} is damaged: run {remedy}") from None
    found = cache.sha256(directory, (name for name in recorded if os.access(directory / name, os.X_OK)))
    changed = sorted(program for program in recorded if found.get(program) != recorded[program])
    missing = sorted(set(PROGRAMS) - set(recorded))
    if changed or missing:
        names = ", ".join(changed + missing)
        raise RuntimeError(f"{directory}: changed files: {names} (sha256 differs): run {remedy}")
    flanneld = str(manifest.get(FLANNELD, "of unknown version")) if FLANNELD in recorded else ""
    return Binaries(wanted, directory, source, tuple(recorded), flanneld)


def keep(version: Version, staged: Path, source: str) -> Binaries:
    """Make a directory of programs what is kept of a version, in place of what was kept before.

    ``staged`` is in the cache's file system, and the caller has claimed the version. Raises LookupError if a
    program does not run here or says that it is another version.
    """
    programs = tuple(name for name in (*PROGRAMS, FLANNELD) if (staged / name).is_file())
    for program in programs:
        (staged / program).chmod(0o755)
        if program in PROGRAMS:
            confirm(staged / program, version)
    manifest = {"version": str(version), "source": source, "sha256": cache.sha256(staged, programs)}
    flanneld = _ask(staged / FLANNELD).partition("\n")[0] if FLANNELD in programs else ""
    if flanneld:
        manifest[FLANNELD] = flanneld
    (staged / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    directory = cache.root() / str(version)
    if directory.exists():
        directory.rename(staged.with_name("replaced"))
    staged.rename(directory)
    return Binaries(version, directory, source, programs, flanneld)


def confirm(program: Path, version: Version) -> None:
    """Raise LookupError if a program does not run here, or says that it is of another version."""
    text = _ask(program)
    if not re.search(rf"v{re.escape(str(version))}(?![0-9])", text):
        raise LookupError(f"{program.name} is not that of Kubernetes {version}; it says: {text[:200]}")


def _ask(program: Path) -> str:
    """Return what a program says of its version; some say it where errors go."""
    arguments = ASKING.get(program.name, ("--version",))
    try:
        done = subprocess.run(
            [program, *arguments], capture_output=True, encoding="utf-8", errors="replace", timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LookupError(f"{program.name} does not run on this machine: {error}") from None
    return done.stdout.strip() or done.stderr.strip() or "nothing"
