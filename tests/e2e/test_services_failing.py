"""Services on a real API server while endpoints go, hints are switched, and programs are killed.

CONCORDE_SERVICES_GONE, CONCORDE_SERVICES_SWITCHED and CONCORDE_SERVICES_KILLED say how often.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from edge.http import Json
from testbed.supplies import binaries, packages
from tests import cases
from tests.paths import ROOT

GONE = cases.count("CONCORDE_SERVICES_GONE", 1, 10)
SWITCHED = cases.count("CONCORDE_SERVICES_SWITCHED", 4, 100)
KILLED = cases.count("CONCORDE_SERVICES_KILLED", 3, 100)


@pytest.mark.alone
def test_nothing_is_lost_and_all_is_as_the_api_justifies_within_moments() -> None:
    try:
        binaries.find()
        packages.find("etcd-server", "etcd")
    except LookupError as error:
        pytest.skip(str(error))
    command = [sys.executable, str(ROOT / "benchmarks" / "services_failing.py"), "--flood=0", "--zero=0"]
    command += [f"--nodes={10 if GONE > 1 else 2}", f"--gone={GONE}", f"--switch={SWITCHED}"]
    said = subprocess.run(
        [*command, f"--kills={KILLED}", f"--seed={cases.seed()}"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, Json] = {one["trial"]: one for one in map(json.loads, said.splitlines())}
    gone, switched, killed = (found[name] for name in ("gone", "switch", "kills"))
    assert gone["last_to_it_s"]["p95"] < 0.5
    assert gone["udp_moved_s"]["max"] < 1
    assert gone["connections_lost"] == 0
    assert switched["requests"] > 50
    assert switched["connections_lost"] == 0
    assert sum(killed["killed"].values()) == KILLED
    assert killed["as_justified_s"]["max"] < 2
    assert (killed["udp_moved"], killed["connections_lost"]) == (0, 0)
