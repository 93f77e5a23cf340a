"""The plugin runs with each Python from 3.9 on; those that a machine has are tried."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import pythons
from tests.paths import ROOT
from tests.system.plugin import without_own
from tests.system.plugin.conftest import Node
from tests.system.plugin.uplinks import Pair, on_uplink

NETWORK = on_uplink("1M", "2M", answers="100k")


@contextmanager
def of(plugin: Path) -> Iterator[Node]:
    node = Node(plugin)
    try:
        Pair(node)
        yield node
    finally:
        node.close()


def require_all_verbs(node: Node) -> None:
    node.add_pod_namespace("A-1", "A-2")
    assert "1.1.0" in node.call("VERSION", "", {"cniVersion": "1.1.0"})["supportedVersions"]
    assert node.call("STATUS", "", NETWORK) == {}
    for pod in ("A-1", "A-2"):
        result = node.call("ADD", pod, NETWORK)
        assert "code" not in result, result
        assert node.call("CHECK", pod, {**NETWORK, "prevResult": result}) == {}
    assert node.call("ADD", "A-1", NETWORK)["code"] == 103  # as a row of the store says
    assert "172.16.1.2" in node.run(node.plugin, "ledger", "--json")
    assert "concorde_guarantee_bits_per_second" in node.run(node.plugin, "metrics")
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert node.call("DEL", "A-1", NETWORK) == {}
    assert node.call("GC", "", {**NETWORK, "cni.dev/valid-attachments": []}) == {}
    assert node.leases("cluster-a") == []
    malformed = node.call("ADD", "A-1", {**NETWORK, "mtu": float("nan")})
    assert (malformed["code"], "NaN is not JSON" in malformed["msg"]) == (6, True)


@pytest.mark.long(one_in=7)
@pytest.mark.parametrize("minor", range(pythons.OLDEST, pythons.NEWEST + 1))
def test_each_python_runs_all_verbs(minor: int, tmp_path: Path) -> None:
    interpreter = pythons.found(minor)
    if interpreter is None:
        pytest.skip(f"no Python 3.{minor} on PATH, and none of pyenv")
    build = [sys.executable, str(ROOT / "plugin/build.py"), "--output", str(tmp_path)]
    subprocess.run([*build, "--python", str(interpreter)], check=True)
    with of(tmp_path / "concorde") as node:
        assert node.run("head", "-n", "1", node.plugin) == f"#!{interpreter} -IS\n"
        require_all_verbs(node)


@pytest.mark.long(one_in=0)
def test_a_python_whose_own_modules_are_others_runs_all_verbs(plugin: Path, tmp_path: Path) -> None:
    wrapped = tmp_path / "concorde"
    wrapped.write_text(f'#!/bin/sh\nexec /usr/bin/python3 -IS "{without_own.__file__}" "{plugin}" "$@"\n')
    wrapped.chmod(0o755)
    with of(wrapped) as node:
        require_all_verbs(node)
