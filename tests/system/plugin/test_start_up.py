"""What a call loads: a pod waits for each module, and `json` with what it loads is a fifth of an ADD."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.system.plugin.conftest import Document, Node, promising
from tests.system.plugin.uplinks import Pair, on_uplink

PYTHON = ("/usr/bin/python3", "-IS", "-X", "importtime")
# In C, but for what any start of Python has loaded, or costs nothing; _sqlite3 loads more of its own.
# _ctypes is for setns(2), which os has since 3.12.
NEEDED = "__future__, _ctypes, _json, _socket, _sqlite3, array, binascii, fcntl, gc, os, stat, struct, sys"
NETWORKS = {
    "none": promising("1M", "2M", enforcement="none"),
    "pod": promising("1M"),
    "node": on_uplink("1M", "2M"),
}


def loaded(told: str) -> set[str]:
    return {line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")}


def loaded_by(node: Node, importing: Path, verb: str, network: Document) -> set[str]:
    started = node.start(verb, "A-2", network, plugin=importing)
    answer, told = started.communicate()
    assert started.returncode == 0, answer
    return {name for name in loaded(told.decode()) if name.partition(".")[0] not in ("concorde", "edge")}


@pytest.mark.parametrize("enforcement", NETWORKS)
@pytest.mark.long(one_in=3)
def test_add_and_del_load_no_module_that_is_not_in_c(node: Node, enforcement: str, tmp_path: Path) -> None:
    """Of a pod beside another: a network's first makes, and looks at, more."""
    Pair(node)
    node.add_pod_namespace("A-1", "A-2")
    network = NETWORKS[enforcement]
    importing = tmp_path / "concorde"
    importing.write_text(f'#!/bin/sh\nexec {" ".join(PYTHON)} "{node.plugin}"\n')
    importing.chmod(0o755)
    told = subprocess.run([*PYTHON, "-c", f"import {NEEDED}"], capture_output=True, text=True, check=True)
    assert "code" not in node.call("ADD", "A-1", network)
    for verb in ("ADD", "DEL"):
        found = loaded_by(node, importing, verb, network)
        assert "_sqlite3" in found
        assert found - loaded(told.stderr) == set(), verb
