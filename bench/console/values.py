"""What the value of an option may be, as far as that is known: scenarios, networks, runs, testbeds.

A shell waits for this at each press of a key, so it imports nothing but Python's standard library. Of
testbeds it knows those made of namespaces; to ask others takes too long. Shipped parts it finds where their
source is; those from outside the registries know, once the files that bring them are imported.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPTS = os.path.join(HOME, "bench", "cli", "shells")
SCENARIOS = os.path.join(HOME, "scenarios")
SCHEMA = os.path.join(SCENARIOS, "scenario.schema.json")
STUDIES = os.path.join(HOME, "bench", "studies")
ASSEMBLY = os.path.join(HOME, "testbed", "assembly.py")
CHECKOUT = os.path.exists(os.path.join(HOME, "invokew"))
# As testbed.providers.netns.processes has them.
FIRST_PROCESS = "testbed/providers/netns/init.py"
STATE = "/run/testbed/state.json"


def nothing() -> list[str]:
    """Return nothing: anything may be typed."""
    return []


def scenarios() -> list[str]:
    """Return the scenarios that are found by their names."""
    return [*described(SCENARIOS), *described(os.path.join(SCENARIOS, "examples"))]


def networks() -> list[str]:
    """Return the networks that are found by their names, and the enforcements from outside."""
    return [*described(os.path.join(SCENARIOS, "networks")), *_from_outside("enforcement")]


def backends() -> list[str]:
    """Return the backends; the shipped ones are in the schema of scenarios."""
    with open(SCHEMA, encoding="utf-8") as schema:
        shipped = json.load(schema)["$defs"]["Cluster"]["properties"]["backend"]["enum"]
    return [*shipped, *_from_outside("backend")]


def providers() -> list[str]:
    """Return the providers that one asks for by name."""
    return [*written(ASSEMBLY, r'^    "(\w+)": ProviderKind\('), *_from_outside("provider")]


def orchestrators() -> list[str]:
    """Return what may run the pods: what some provider knows."""
    return written(ASSEMBLY, r'"(\w+)": (?!ProviderKind)[A-Z_]+[,}]')


def studies() -> list[str]:
    """Return the studies; each shipped one has a folder of its name."""
    files = glob.glob(os.path.join(STUDIES, "*", "study.py"))
    return [*sorted(os.path.basename(os.path.dirname(file)) for file in files), *_from_outside("study")]


def settings() -> list[str]:
    """Return the paths of what parts from outside let a scenario set."""
    return _from_outside("settings")


def runs() -> list[str]:
    """Return the recordings and studies below ``reports``, the last first."""
    made = [one.name for one in _entries("reports") if re.fullmatch(r"\d{8}T\d{6}Z-[^.]+", one.name)]
    kept = [f"reports/reference/{entry.name}" for entry in _entries("reports/reference")]
    return [*(["latest"] if os.path.lexists("reports/latest") else []), *sorted(made)[::-1], *sorted(kept)]


def unfinished() -> list[str]:
    """Return the recordings and studies that can be gone on with."""
    return sorted(entry.name for entry in _entries("reports") if entry.name.endswith(".unfinished"))


def shells() -> list[str]:
    """Return the shells that there is a script for."""
    return sorted(file.removesuffix(".txt") for file in os.listdir(SCRIPTS))


def testbeds() -> dict[str, dict[str, dict[str, dict[str, str]]]]:
    """Return what the user's testbeds hold, by their names."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")[:-1]
            if len(words) > 2 and words[-2].endswith(FIRST_PROCESS) and "." not in words[-1]:
                with open(f"/proc/{process}/root{STATE}", encoding="utf-8") as state:
                    found[words[-1]] = json.load(state)
        except (OSError, ValueError):  # it has ended, is another's, or is coming
            continue
    return found


def names() -> list[str]:
    """Return the names of the user's testbeds."""
    return list(testbeds())


def places(kind: str = "") -> list[str]:
    """Return the pods, containers and nodes of the user's testbeds; or those of a kind."""
    known = [place for state in testbeds().values() for place in state["places"].items()]
    return [name for name, where in known if kind in ("", where["kind"])]


def nodes() -> list[str]:
    """Return the nodes of the user's testbeds."""
    return places("node")


def pods() -> list[str]:
    """Return the pods of the user's testbeds."""
    return places("pod")


def clusters() -> list[str]:
    """Return the clusters of the user's testbeds."""
    return [cluster for state in testbeds().values() for cluster in state["clusters"]]


def _from_outside(kind: str) -> list[str]:
    """Return the names of a kind's parts from outside, or all ``settings``: in a second, if there are any."""
    if not os.environ.get("CONCORDE_EXTENSIONS"):
        return []
    import subprocess

    asked = [sys.executable, "-P", "-m", "bench.cli.completion", "--brought", kind]
    env = {**os.environ, "PYTHONPATH": HOME}
    return subprocess.run(asked, env=env, capture_output=True, text=True, check=False).stdout.split()


def written(file: str, pattern: str) -> list[str]:
    """Return what a source file writes so, each once."""
    with open(file, encoding="utf-8") as source:
        return list(dict.fromkeys(re.findall(pattern, source.read(), re.MULTILINE)))


def described(folder: str) -> list[str]:
    """Return the names of the files in a folder of scenarios."""
    files = sorted(glob.glob(os.path.join(folder, "*.yaml")))
    return [os.path.basename(file).removesuffix(".yaml") for file in files]


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        return [entry for entry in os.scandir(directory) if entry.is_dir()]
    except OSError:
        return []
