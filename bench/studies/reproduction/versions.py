"""The page ``versions-tried.md``: what plugin and testbed have run on, as the recordings that are kept say.

Nobody writes a version down by hand: a row is what some run found on its nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from bench.presentation import report
from bench.recording import archive
from bench.recording.archive import ARCHIVE, ENVIRONMENT, RUN
from testbed.resources import HOME

FILE = HOME / "docs" / "reference" / "versions-tried.md"
UNKNOWN = "–"
PLUGINS = "containernetworking-plugins"  # Debian's package of the reference plugins
NODES = {
    "netns": "namespaces",
    "ssh": "machines",
    "vagrant": "virtual machines",
    "existing": "a cluster that was there",
}
PODS = {"cni": "CNI alone", "kubernetes": "Kubernetes"}


HEADINGS = (
    *("Linux", "iproute2", "nftables", "Python", "Kubernetes", "containerd", "CNI plugins installed"),
    *("Nodes", "Pods by", "Recordings"),
)


@dataclass(frozen=True, order=True)
class Versions:
    """What the nodes of a run had, in the order of the table's columns."""

    linux: str
    iproute2: str
    nftables: str
    python: str
    kubernetes: str
    containerd: str
    cni_plugins: str
    nodes: str
    pods_by: str


def render(reference: Path) -> str:
    """Return the page, of all packed recordings below a directory. Raises StoredError."""
    found: dict[Versions, set[str]] = {}
    for file in sorted(reference.rglob(ARCHIVE)):
        found.setdefault(of(archive.contents(file)), set()).add(file.relative_to(reference).parts[0])
    return (
        report.templates().overlay(autoescape=False).get_template("versions.md.j2").render(table=table(found))
        + "\n"
    )


def of(contents: Mapping[str, bytes]) -> Versions:
    """Return the versions that a recording's files tell of."""
    environment, run = json.loads(contents[ENVIRONMENT]), json.loads(contents[RUN])
    tools, packages = environment["tools"], environment.get("packages", {})
    kubelet, runtime = _of_clusters(environment["clusters"])
    system = next(iter(environment["nodes"].values()))["system"]
    return Versions(
        linux=_linux(system),
        iproute2=_number(tools["tc"]),
        nftables=_number(tools["nft"]),
        python=_number(tools["python"]),
        kubernetes=kubelet,
        containerd=runtime,
        cni_plugins=packages.get(PLUGINS, UNKNOWN),
        nodes=NODES.get(run["provider"], run["provider"]),
        pods_by=PODS.get(run["orchestrator"], run["orchestrator"]),
    )


def table(found: Mapping[Versions, Iterable[str]]) -> str:
    """Return the table, newest kernels first."""
    rows = [
        [*astuple(versions), ", ".join(sorted(found[versions]))] for versions in sorted(found, key=_newest)
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (HEADINGS, ["---"] * len(HEADINGS), *rows))


def _of_clusters(clusters: Mapping[str, Any]) -> tuple[str, str]:
    """Return the versions of kubelets and container runtimes."""
    infos = [node["info"] for cluster in clusters.values() for node in cluster["nodes"].values()]
    kubelets = {info["kubeletVersion"].removeprefix("v") for info in infos}
    runtimes = {info["containerRuntimeVersion"].removeprefix("containerd://") for info in infos}
    return ", ".join(sorted(kubelets)) or UNKNOWN, ", ".join(sorted(runtimes)) or UNKNOWN


def _linux(system: str) -> str:
    """Return a kernel's version of ``uname -srvm``: Debian's own, where it is one of Debian's."""
    debian = re.search(r"Debian (\S+)", system)
    return f"{debian[1]} (Debian)" if debian else _number(system)


def _number(text: str) -> str:
    found = re.search(r"\d+(\.\d+)+", text)
    return found[0] if found else UNKNOWN


def _newest(versions: Versions) -> tuple[list[int], Versions]:
    return [-int(number) for number in re.findall(r"\d+", versions.linux)], versions
