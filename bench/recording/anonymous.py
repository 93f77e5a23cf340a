"""What in a recording names a machine or a person, and the same recording without it.

A recording that is given away says what was measured, not where or by whom. Only what names somebody is
replaced, and in files without such a name no byte changes. Addresses stay: what is between the nodes of a
scenario is part of the experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

# iperf3 begins with uname(2): system, host name, release, version, machine.
_IPERF3 = (re.compile(r'("system_info":\s*"\S+ )\S+'), r"\1host")
# What bench.measurement.neighbours notes.
_NEIGHBOUR = (re.compile(r'(process \d+ of user )[^\s";]+'), r"\1unnamed")
_HOME = (re.compile(r"(?<![\w./-])(?:/(?:home|Users)/[^/\s\"']+|/root(?=/))"), "~")
# What a cluster's API says of a node (testbed.clusters.survey): its names, and what is unique to a machine.
_NODES = (
    (re.compile(r'("name":\s*)"[^"]*"(?=,\s*"addresses")'), r'\1"host"'),
    (re.compile(r'("(?:Hostname|InternalDNS|ExternalDNS)":\s*)"[^"]*"'), r'\1"host"'),
    (re.compile(r'("(?:machineID|systemUUID|bootID)":\s*)"[^"]*"'), r'\1""'),
)
# An inventory or a kubeconfig: of an absolute path, the name of the file.
_PATH = (re.compile(r'(?<=["=:,\s])[/~](?:[^/"=:,\s]*/)+(?=[^/"=:,\s])'), "")

_ENVIRONMENT = "environment.json"
_OF_THE_RUN = ("raw/run.json", "summary.json")  # what came of it, and no path that it was given


def without_names(path: str, content: bytes) -> bytes:
    """Return the content of a recording's file without names; ``path`` is the file's within the recording."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:  # nothing that we could read names in
        return content
    for pattern, replacement in _masks(path):
        text = pattern.sub(replacement, text)
    return text.encode()


def _masks(path: str) -> Iterator[tuple[re.Pattern[str], str]]:
    yield from (_IPERF3, _NEIGHBOUR, _HOME)
    if path == _ENVIRONMENT:
        yield from _NODES
    elif _says_how_it_was_begun(path):
        yield _PATH


def _says_how_it_was_begun(path: str) -> bool:
    """Tell whether a file holds what the run was given: it lies beside the run's record, or at the top."""
    where = PurePosixPath(path)
    return where.suffix == ".json" and str(where.parent) in (".", "raw") and path not in _OF_THE_RUN
