"""The thesis' lab, and in it the thesis' manifests as they are: from a pod of another node to its device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.devices.picture import SERVICES
from tests.e2e.conftest import until
from tests.e2e.lab import HERE, Lab, laboratory
from tests.e2e.operated import NAME

pytestmark = pytest.mark.by_turns


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with laboratory(tmp_path_factory.mktemp("lab")) as made:
        for name in ("device", "connection"):
            made.until_taken((HERE / f"{name}.yaml").read_text())
        yield made


def test_a_pod_of_another_node_reaches_the_device_and_all_else(lab: Lab) -> None:
    until(lambda: lab.asked("HTTP", 443) == "device01-01 /version", lab.words, every=0.2)
    found = lab.testbed.pods["A-1"].run(["getent", "hosts", NAME]).stdout
    assert found.split()[0] == lab.one(SERVICES)["spec"]["clusterIP"]
    answered = lab.pod.run(["ping", "-c1", "-W5", lab.testbed.pods["A-2"].address])
    assert "1 received" in answered.stdout
    assert lab.testbed.check() == []


def test_a_changed_port_leaves_the_connections_of_others_alone(lab: Lab, tmp_path: Path) -> None:
    until(lambda: lab.asked("HTTP", 443), lab.words, every=0.2)
    pods = lab.pods()
    lab.change(HTTP=443, TCP=8554)
    until(lambda: lab.asked("TCP", 8554) == "TCP", lab.words, every=0.2)
    with lab.kept(8554, tmp_path) as said:
        lab.change(TCP=8554, UDP=5004, HTTP=443)
        until(lambda: lab.asked("UDP", 5004) == "UDP", lab.words, every=0.2)
        lab.change(TCP=8554, UDP=5004)
        until(lambda: lab.asked("HTTP", 443) == "", lab.words, every=0.2)
    assert said.read_text() == "all of it came back\n"
    assert lab.pods() == pods
