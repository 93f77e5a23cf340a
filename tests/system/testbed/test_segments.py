"""Devices in private networks, for real: who reaches them, who does not, how fast, and what is left."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import lasting
from testbed.access.local import ENVIRONMENT
from testbed.access.place import Place
from testbed.providers.netns.sandbox import Sandbox
from testbed.providers.persistence import Persisted
from tests import verbs
from tests.system.conftest import all_gone, pid_namespace
from tests.system.testbed.knocking import PROGRAM, heard, knock
from tests.waiting import PATIENCE, until

GATEWAY, OTHER = "worker-02", "worker-01"
CAMERA, PORTS = "172.30.16.120", ("8554", "5004", "8080")
# A device's, the gateway's own there, and what a device has no business with: a node, and a pod.
IN_PLANT = (f"{CAMERA}:8554", f"{CAMERA}:5004", "172.30.16.1:22")
OF_CLUSTER = ("192.168.56.13:22", "192.168.56.12:22", "172.16.2.2:80")


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """A testbed's name that no other test uses; whatever is up under it is taken down."""
    chosen = "s" + str(abs(hash(tmp_path)))[:10]
    yield chosen
    if box := Sandbox.find(chosen):
        box.stop()


def captured(kept: Persisted, gateway: Place) -> str:
    """Return what is seen of a datagram to the camera at its own interface."""
    command = kept.capture(lasting.location(kept, "camera"), "eth0", ["-c", "1", "udp port 5004"])
    capture = subprocess.Popen(
        command.argv, env=command.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    # Packets go on until one is seen: when exactly a capture begins is nothing it tells.
    sent = [*PROGRAM, "knock", f"{CAMERA}:5004"]
    until(lambda: gateway.run(sent) and capture.poll() is not None)
    return capture.communicate(timeout=PATIENCE)[0]


@pytest.mark.usefixtures("untouched_host")
def test_devices_are_reached_from_their_gateway_and_from_nowhere_else(name: str, tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.svg"
    # A port that traffic would be sent to answers too, as none is sent.
    sent = "flows=[{from: A-1, to: cam, component: video, duration: 1}]"
    up = verbs.run(
        "up", "--name", name, "--scenario", "examples/devices", "--draw", str(drawn), "--set", sent
    )
    assert up.returncode == 0, up.stderr
    assert "segment plant  172.30.16.0/24, 100 Mbit/s  gateway worker-02" in up.stdout
    assert f"camera  {CAMERA}  video TCP 8554, UDP 5004  settings HTTP 8080" in up.stdout
    assert "segment building" in drawn.read_text()
    box = Sandbox.find(name)
    assert box is not None

    kept = lasting.find(name)
    places = {one: kept.place(one, at.entry, at.address) for one, at in kept.state().places.items()}
    # Whatever routes somebody adds: pods have one to everywhere, nodes and devices none.
    knock(places[GATEWAY], places["A-2"], IN_PLANT)
    places[OTHER].run(["ip", "route", "add", "172.30.16.0/24", "via", "192.168.56.13"])
    knock(places[GATEWAY], places[OTHER], IN_PLANT)
    knock(places[GATEWAY], places["A-1"], IN_PLANT)
    only = [route["dst"] for route in places["door"].run(["ip", "-j", "route"]).json()]
    assert only == ["172.30.17.0/24"]
    places["door"].run(["ip", "route", "add", "default", "via", "172.30.17.1"])
    knock(places[GATEWAY], places["door"], (*IN_PLANT, *OF_CLUSTER, "172.30.17.1:22"))
    assert heard(places["camera"]) == 0

    came = places[GATEWAY].run([*PROGRAM, "ask", CAMERA, *PORTS]).json()
    assert came == {"tcp": True, "udp": True, "page": "camera /state\n", "body": "set"}
    assert heard(places["camera"]) > 0
    shown = verbs.run("exec", "camera", "--name", name, "--", "ip", "-br", "address", "show", "eth0")
    assert f"{CAMERA}/24" in shown.stdout, shown.stderr
    if shutil.which("tcpdump", path=ENVIRONMENT["PATH"]):
        assert f"> {CAMERA}.5004: UDP, length 9" in captured(kept, places[GATEWAY])

    assert rates(box) == {"seg0": {12_500_000}, "seg1": {1_250_000}}
    namespace = pid_namespace(box.pid)
    assert verbs.run("down", "--name", name).returncode == 0
    assert all_gone(namespace)


def rates(box: Sandbox) -> dict[str, set[int]]:
    """Return the rates of the cables of each segment, bytes per second, of both directions of each."""
    found: dict[str, set[int]] = {}
    queues = box.switch.run(["tc", "-j", "qdisc", "show"]).json()
    ends = [one for one in queues if one["dev"].startswith("seg") and one["kind"] == "tbf"]
    assert len(ends) == 2 * 5  # of two gateways and three devices
    for one in ends:
        found.setdefault(one["dev"][:4], set()).add(one["options"]["rate"])
    return found
