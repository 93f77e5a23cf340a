"""The thesis' lab on real Kubernetes: its device, its operator, and a pod of another node that asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from edge.devices.picture import SERVICES
from edge.devices.rendering import OF_CONNECTION
from testbed.access.place import InNamespace
from testbed.resources import version
from testbed.scenario import load
from testbed.supplies import devices
from testbed.testbed import Testbed
from tests.e2e.conftest import PATIENCE_SECONDS, brought_up, prompt, until
from tests.e2e.operated import Cluster
from tests.thesis import DEVICE, changed, components

HERE = Path(__file__).parent / "thesis"
MANIFESTS = ("network-attachment-definition", "device", "connection")
LEASES = "/run/kube-edge/ipam-state"  # the definition's
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
    """The lab's cluster, with the operator in it, which is on ``worker``."""

    def __init__(self, testbed: Testbed, directory: Path, worker: str) -> None:
        super().__init__(testbed, directory, worker, 'edge: "true"')
        self.testbed = testbed
        pods = [place for place in testbed.networks.values() if isinstance(place, InNamespace)]
        self.pod = next(place for place in pods if place.name == "A-1")
        self.gateways = [name for name in testbed.nodes if name.startswith("kedge")]
        images = [devices.provide(), devices.provide_relay()]
        for node in (place.node for place in pods if place.node.name in self.gateways):
            for image in images:
                node.run(["ctr", "--namespace=k8s.io", "images", "import", str(image.archive)])

    def asked(self, protocol: str, port: int) -> str:
        """What a pod of another node hears from a port of the device; or nothing."""
        host = str((self.one(SERVICES) or {"spec": {}})["spec"].get("clusterIP", "0.0.0.0"))
        return self.pod.run(["python3", "-c", ASK, protocol, host, str(port)], check=False).stdout.strip()

    def takes(self, text: str) -> bool:
        """Apply a manifest, and tell whether the API has taken it."""
        return self.client.run("apply", "--filename=-", stdin=text, check=False).status == 0

    def until_taken(self, text: str) -> None:
        """Apply a manifest; who is asked whether it may be so may have just begun."""
        until(partial(self.takes, text), self.words, every=0.2)

    def pods(self) -> set[str]:
        """The proxy pods."""
        return {
            one["metadata"]["uid"] for one in self.client.get("pods", f"--selector={OF_CONNECTION}")["items"]
        }

    def change(self, **ports: int) -> None:
        """Let the device have these ports, by their protocols."""
        assert self.applied(changed(DEVICE, components=components(("backend", list(ports.items()))))) == ""

    def left(self) -> list[str]:
        """What there is of connections: in the API, and at the worker their leases, links and table."""
        named = self.client.run("get", "deployments,services,pods", f"--selector={OF_CONNECTION}", "-oname")
        leases = self.node.run(["find", LEASES, "-name", "10.10.*"], check=False).stdout
        links = self.node.run(["bridge", "-j", "link", "show"]).json()
        tables = self.node.run(["nft", "list", "tables"]).stdout
        return [
            *named.stdout.split(),
            *leases.split(),
            *(one["ifname"] for one in links if one.get("master") == "eb"),
            *(["its table"] if "table ip concorde-networks" in tables else []),
        ]

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


@contextmanager
def laboratory(directory: Path, *overrides: str, worker: str = "kedge1") -> Iterator[Lab]:
    """Lend the lab with the thesis' definition of a network, and take it down with all that is in it."""
    with brought_up(load(HERE / "lab.yaml", overrides)) as testbed:
        made = Lab(testbed, directory, worker)
        made.apply(version())
        made.until_taken((HERE / "network-attachment-definition.yaml").read_text())
        with prompt(made.client, "default"):
            yield made
