"""The examples of docs/howto/extend.md, each loaded from outside, as a user would, and used for real."""

from __future__ import annotations

import io
import os
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench.console.progress import Display
from bench.measurement import experiment
from bench.recording import requests
from bench.recording.records import Request
from testbed.assembly import assemble
from testbed.scenario import load
from testbed.testbed import Testbed
from tests import parts
from tests.paths import ROOT

EXAMPLES = ROOT / "docs" / "examples"
CONTMEC = ROOT / "scenarios" / "contmec.yaml"


@pytest.fixture(scope="module", autouse=True)
def _registered() -> Iterator[None]:
    with parts.put_back():
        for name in ("pinned_provider", "token_bucket_enforcement", "routed_network", "forks_observation"):
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)
        yield


@contextmanager
def up(*overrides: str, provider: str = "netns") -> Iterator[Testbed]:
    testbed = assemble(load(CONTMEC, overrides), provider, "cni")
    testbed.up()
    try:
        testbed.enforcement.install(testbed)
        yield testbed
    finally:
        testbed.down()


def test_a_provider_from_outside_brings_up_nodes_with_one_processor_each() -> None:
    with up(provider="pinned") as testbed:
        counts = {name: node.run(["nproc"]).stdout.strip() for name, node in testbed.nodes.items()}
        assert counts == dict.fromkeys(testbed.scenario.nodes, "1")
        assert testbed.pods["A-1"].run(["nproc"]).stdout.strip() == "1"
        assert testbed.check() == []


def test_a_scenario_sets_a_provider_from_outside() -> None:
    with up("settings.provider.pinned.processors=2", provider="pinned") as testbed:
        (count,) = {int(node.run(["nproc"]).stdout) for node in testbed.nodes.values()}
        assert count == min(2, len(os.sched_getaffinity(0)))


def test_an_enforcement_from_outside_keeps_its_own_account_of_what_it_set() -> None:
    with up("enforcement=token-bucket", "settings.enforcement.token-bucket.burst=65536") as testbed:
        (bucket,) = _qdiscs(testbed, "A-1")
        assert bucket["options"]["burst"] == pytest.approx(65536, rel=0.01)  # the kernel counts in ticks
        assert (bucket["kind"], bucket["options"]["rate"]) == ("tbf", 10**9 // 8)  # bytes per second
        assert testbed.check() == []
        testbed.pods["A-1"].run(["tc", "qdisc", "del", "dev", "eth0", "root"])
        assert testbed.check() == ["pod A-1: no token bucket on eth0"]


def test_a_pod_network_from_outside_carries_packets_without_anything_around_them() -> None:
    backends = ("clusters.a.backend=routed", "clusters.b.backend=routed")
    with up(*backends, "settings.backend.routed.metric=7") as testbed:
        (link,) = testbed.pods["A-1"].run(["ip", "-j", "link", "show", "dev", "eth0"]).json()
        assert link["mtu"] == testbed.scenario.underlay.mtu
        routes = testbed.nodes["worker-01"].run(["ip", "-j", "route", "show"]).json()
        via = {route["dst"]: route.get("gateway") for route in routes}
        assert via["172.16.2.0/24"] == "192.168.56.14"
        assert {route.get("metric") for route in routes if "gateway" in route} == {7}
        devices = testbed.nodes["worker-01"].run(["ip", "-j", "-d", "link", "show", "type", "vxlan"]).json()
        assert not [device for device in devices if device]
        _greet(testbed, "A-1", "A-4")


@pytest.mark.long(one_in=0)
def test_an_observation_from_outside_is_made_around_the_traffic(tmp_path: Path) -> None:
    short = ("flows[0].duration=1", "flows[1].duration=1", "disturbances=[]")
    request = Request(scenario="kubernetes", overrides=short, scale=0.05, reports=str(tmp_path))
    display = Display(Console(file=io.StringIO()), "test")
    recording = experiment.run(request, requests.read(request), display)
    (repetition,) = recording.run_record().repetitions
    found = repetition.observed["forks"]
    assert found["forks"] >= 2 * len(repetition.transfers)  # a sender and a receiver each
    assert found["per_second"] > 0
    # The project's own are where they were.
    assert repetition.dropped
    assert repetition.loads
    assert "forks" not in repetition.model_dump(exclude={"observed"})


def _qdiscs(testbed: Testbed, pod: str) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = testbed.pods[pod].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).json()
    return [qdisc for qdisc in shown if qdisc["kind"] != "noqueue"]


def _greet(testbed: Testbed, sender: str, receiver: str) -> None:
    """Send bytes to a port that nobody listens on, until the receiver's own kernel says so, by ICMP."""
    program = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.1)\n"
        "s.connect((sys.argv[1], 9))\n"
        "for _ in range(100):\n"
        "    try: s.send(b'hello'); s.recv(10)\n"
        "    except ConnectionRefusedError: print('it is there'); break\n"
        "    except TimeoutError: pass\n"
    )
    address = testbed.pods[receiver].address
    answered = testbed.pods[sender].run(["/usr/bin/python3", "-c", program, address]).stdout
    assert answered == "it is there\n"
