"""Claims for people: ``docs/howto/reproduce.md``, for the terminal one on trial; and ``versions-tried.md``.

The page is for who has to find out whether what is said here comes out again; the table has what is expected
beside what was observed.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from bench.presentation import report
from bench.presentation.tables import borderless, markdown
from bench.presentation.wording import verbatim
from bench.recording import archive
from bench.recording.archive import ENVIRONMENT, RUN
from bench.studies.reproduction import claims
from bench.studies.reproduction.claims import Claims, Expected, Trial
from testbed.resources import HOME
from testbed.scenario.units import format_share

FILE = HOME / "docs" / "howto" / "reproduce.md"
SEED = 1  # of the commands as they are shown


def render(known: Claims) -> str:
    """Return the page."""
    templates = report.templates("bench.studies.reproduction").overlay(autoescape=False)
    templates.filters = {
        **templates.filters,
        "line": claims.one_line,
        "relative": _relative,
        "seeded": lambda command: claims.seeded(command, SEED),
        "tolerated": tolerated,
    }
    return templates.get_template("reproducing.md.j2").render(known=known, minutes=f"{_minutes(known):g}")


def _minutes(known: Claims) -> float:
    """Return how long it takes to try all claims that anyone can; each command is run once."""
    ordinary = [claim for claim in known.claims if known.machines[claim.machine].ordinary]
    return sum({claim.command: claim.minutes for claim in ordinary}.values())


def _relative(page: str) -> str:
    """Return how a page, a path in the project, is linked from this one."""
    return posixpath.relpath(page, posixpath.dirname(FILE.relative_to(HOME).as_posix()))


STYLES = {"confirmed": "green", "outside": "red", "invalid": "yellow"}


def table_of(trial: Trial) -> Table:
    """Return the table of one claim."""
    title = Text.assemble(verbatim(f"{trial.claim.id}: "), (trial.outcome, STYLES[trial.outcome]))
    table = borderless(title, 2, ["", "flow", "phase"], ["expected", "observed"])
    for one in trial.observed:
        outside = "" if one.inside else "red"
        value = Text(_value(one.value), outside)
        table.add_row(
            one.expected.what, verbatim(one.flow), verbatim(one.phase), tolerated(one.expected), value
        )
    table.add_row()
    return table


def tolerated(expected: Expected) -> str:
    """Return what is expected, with what is tolerated: ``100 % (99 % to 101 %)``, ``99 % or more``."""
    if isinstance(expected.value, str):
        return expected.value
    least, most = expected.least, expected.most
    if math.isinf(most):
        return f"{_value(least)} or more"
    if math.isinf(least):
        return f"{_value(most)} or less"
    return f"{_value(expected.value)} ({_value(least)} to {_value(most)})"


def _value(value: float | str | None) -> str:
    if value is None:
        return "not measured"
    return value if isinstance(value, str) else format_share(value)


VERSIONS_FILE = HOME / "docs" / "reference" / "versions-tried.md"
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


class Versions(NamedTuple):
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


def versions(reference: Path) -> str:
    """Return the page of what plugin and testbed have run on, as packed recordings below a directory say.

    Nobody writes a version down by hand: a row is what some run found on its nodes. Raises StoredError.
    """
    found: dict[Versions, set[str]] = {}
    for directory in filter(archive.is_packed, sorted(reference.iterdir())):
        for contents in archive.packed_recordings(directory).values():
            found.setdefault(versions_of(contents), set()).add(directory.name)
    return (
        report.templates("bench.studies.reproduction")
        .overlay(autoescape=False)
        .get_template("versions.md.j2")
        .render(table=table(found))
        + "\n"
    )


def versions_of(contents: Mapping[str, bytes]) -> Versions:
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
    rows = [[*versions, ", ".join(sorted(found[versions]))] for versions in sorted(found, key=_newest)]
    return markdown(HEADINGS, rows)


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
