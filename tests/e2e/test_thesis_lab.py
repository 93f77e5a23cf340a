"""The thesis' lab, and in it the thesis' manifests as they are: from a pod of another node to its device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from edge.devices.picture import SERVICES
from edge.devices.rendering import OF_CONNECTION
from testbed.access.place import InNamespace
from testbed.resources import version
from testbed.scenario import load
from testbed.testbed import Testbed
from tests.e2e.conftest import PATIENCE_SECONDS, brought_up, prompt, until
from tests.e2e.operated import NAME, Cluster
from tests.leftovers import added, host_state
from tests.thesis import DEVICE, changed, components

pytestmark = pytest.mark.by_turns
HERE = Path(__file__).parent / "thesis"
MANIFESTS = ("network-attachment-definition", "device", "connection")
# What an administrator of the gateway says besides: whom it lets through, which is the definition's bridge.
LET_THROUGH = """
add rule inet segments proxies iifname "eb" accept
add rule inet segments proxies oifname "eb" ct state established,related accept
"""
ASK = """
import socket, sys, urllib.request
protocol, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
if protocol == "HTTP":
    print(urllib.request.urlopen(f"http://{host}:{port}/version", timeout=2).read().decode().strip())
else:
    kind = socket.SOCK_STREAM if protocol == "TCP" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as one:
        one.settimeout(2)
        one.connect((host, port))
        one.sendall(protocol.encode())
        print(one.recv(100).decode())
"""
TALK = """
import socket, sys, time
from pathlib import Path
over = Path(sys.argv[3])
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as one:
    while not over.exists():
        one.sendall(b"again")
        assert one.recv(100) == b"again"
        time.sleep(0.02)
print("all of it came back")
"""


class Lab(Cluster):
    """The lab's cluster, with the operator in it."""

    def __init__(self, testbed: Testbed, directory: Path) -> None:
        super().__init__(testbed, directory, "kedge1")
        self.testbed = testbed
        client = testbed.networks["A-1"]
        assert isinstance(client, InNamespace)
        self.pod = client

    def asked(self, protocol: str, port: int) -> str:
        """What a pod of another node hears from a port of the device; or nothing."""
        host = str((self.one(SERVICES) or {"spec": {}})["spec"].get("clusterIP", "0.0.0.0"))
        return self.pod.run(["python3", "-c", ASK, protocol, host, str(port)], check=False).stdout.strip()

    def takes(self, text: str) -> bool:
        """Apply a manifest, and tell whether the API has taken it."""
        return self.client.run("apply", "--filename=-", stdin=text, check=False).status == 0

    def pods(self) -> set[str]:
        """The proxy pods."""
        return {
            one["metadata"]["uid"] for one in self.client.get("pods", f"--selector={OF_CONNECTION}")["items"]
        }

    def change(self, **ports: int) -> None:
        """Let the device have these ports, by their protocols."""
        assert self.applied(changed(DEVICE, components=components(("backend", list(ports.items()))))) == ""

    @contextmanager
    def kept(self, port: int, directory: Path) -> Iterator[Path]:
        """Have a pod talk to the device meanwhile, by one connection; in the file is how that went."""
        said, over = directory / "said", directory / "over"
        host = str(self.one(SERVICES)["spec"]["clusterIP"])
        talk = ["python3", "-c", TALK, host, str(port), str(over)]
        talking = self.pod.start(talk, stdout=said, stderr=directory / "errors")
        try:
            yield said
        finally:
            over.touch()
            assert talking.wait(PATIENCE_SECONDS) == 0, (directory / "errors").read_text()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    before = host_state()
    with brought_up(load(HERE / "lab.yaml", [])) as testbed:
        testbed.nodes["kedge1"].run(["nft", "-f", "-"], stdin=LET_THROUGH)
        made = Lab(testbed, tmp_path_factory.mktemp("lab"))
        made.apply(version())
        for name in MANIFESTS:
            # Who is asked whether it may be so has just begun.
            until(partial(made.takes, (HERE / f"{name}.yaml").read_text()), made.words, every=0.2)
        with prompt(made.client, "default"):
            yield made
            made.client.run("delete", "connections", "--all")
            until(lambda: NAME not in made.client.run("get", "pods").stdout, every=0.2)
            made.delete()
    assert added(before, host_state()) == {}


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
