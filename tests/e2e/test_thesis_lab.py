"""The thesis' lab, and in it the thesis' manifests as they are: from a pod of another node to its device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edge.devices.picture import SERVICES
from testbed.supplies import packages
from tests.e2e.conftest import until
from tests.e2e.lab import HERE, Lab, laboratory
from tests.e2e.operated import NAME

pytestmark = pytest.mark.by_turns
BACKENDS = ("vxlan", "host-gw", "bgp")


@pytest.fixture(scope="module", params=BACKENDS)
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if lacking := list(packages.missing("bird2") if request.param == "bgp" else ()):
        pytest.skip(lacking[0])
    with laboratory(tmp_path_factory.mktemp("lab"), f"clusters.a.backend={request.param}") as made:
        yield made


def test_the_thesis_manifests_lead_a_pod_to_the_device_while_it_reaches_all_else(
    lab: Lab, tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    took = {"first_byte": the_device_is_heard(lab)}
    a_pod_of_another_node_reaches_all_else(lab)
    took["port_changed"] = a_changed_port_leaves_the_connections_of_others_alone(lab, tmp_path)
    took["deleted"] = what_is_deleted_leaves_nothing(lab)
    backend = lab.testbed.scenario.clusters["a"].backend
    for what, seconds in took.items():
        record_testsuite_property(f"{backend}_{what}_s", round(seconds, 1))


def the_device_is_heard(lab: Lab) -> float:
    """Apply the manifests; return how long after the last one a pod of another node heard the device."""
    for name in ("device", "connection"):
        lab.until_taken((HERE / f"{name}.yaml").read_text())
    return until(lambda: lab.asked("HTTP", 443) == "device01-01 /version", lab.words, every=0.2)


def a_pod_of_another_node_reaches_all_else(lab: Lab) -> None:
    found = lab.testbed.pods["A-1"].run(["getent", "hosts", NAME]).stdout
    assert found.split()[0] == lab.one(SERVICES)["spec"]["clusterIP"]
    answered = lab.pod.run(["ping", "-c1", "-W5", lab.testbed.pods["A-2"].address])
    assert "1 received" in answered.stdout
    assert lab.testbed.check() == []


def a_changed_port_leaves_the_connections_of_others_alone(lab: Lab, directory: Path) -> float:
    """Return how long it took until one that was added answered."""
    pods = lab.pods()
    lab.change(HTTP=443, TCP=8554)
    until(lambda: lab.asked("TCP", 8554) == "TCP", lab.words, every=0.2)
    with lab.kept(8554, directory) as said:
        lab.change(TCP=8554, UDP=5004, HTTP=443)
        took = until(lambda: lab.asked("UDP", 5004) == "UDP", lab.words, every=0.2)
        lab.change(TCP=8554, UDP=5004)
        until(lambda: lab.asked("HTTP", 443) == "", lab.words, every=0.2)
    assert said.read_text() == "all of it came back\n"
    assert lab.pods() == pods
    return took


def what_is_deleted_leaves_nothing(lab: Lab) -> float:
    """Return how long after the Connection its objects, its pod and that one's network were gone."""
    assert lab.left() != []
    lab.client.run("delete", "connections", "--all", "--wait=false")
    return until(lambda: lab.left() == [], lambda: "\n".join(lab.left()), every=0.2)
