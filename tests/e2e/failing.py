"""Proxy pods of the thesis' lab that end or are cut off, and what who asks the device meanwhile notices."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from edge.devices.kinds import PREFIX
from edge.devices.picture import SERVICES, ready, serves
from edge.devices.rendering import OF_CONNECTION
from testbed.access.place import CommandError, InNamespace
from testbed.orchestrators.own import KubernetesOrchestrator
from tests.e2e.conftest import PATIENCE_SECONDS, until
from tests.e2e.lab import Lab
from tests.thesis import CONNECTION, DEVICE, changed, components

# The operator is on neither of them.
TWO_GATEWAYS = (
    'nodes.kedge2={labels: {edge: "true"}}',
    "clusters.a.workers=[kworker1, kedge1, kedge2]",
    "segments.private.nodes={kedge1: eth1, kedge2: eth1}",
    "pods.A-3={cluster: a, node: kedge2}",
)
WORKER, PORT, A_SECOND = "kworker1", 8554, 100
# Nothing comes to the gateway by this interface, nor leaves by it.
CUT = """
table inet cut {{
  chain in {{ type filter hook prerouting priority -500; iifname "{0}" drop; }}
  chain out {{ type filter hook postrouting priority 500; oifname "{0}" drop; }}
}}
"""
# Asks by a new connection each so often, until a file is there; says of each, in a line, when it was begun,
# how long it took (seconds, of the monotonic clock) and what was wrong.
ASK = """
import json, os, socket, sys, time
from concurrent.futures import ThreadPoolExecutor
host, port, rate, over = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
def ask():
    begun = time.monotonic()
    try:
        with socket.create_connection((host, port), timeout=1) as one:
            one.settimeout(1)
            one.sendall(b"again")
            wrong = "" if one.recv(100) == b"again" else "Short"
    except OSError as error:
        wrong = type(error).__name__
    sys.stdout.write(json.dumps([begun, time.monotonic() - begun, wrong]) + "\\n")
    sys.stdout.flush()
due = time.monotonic()
with ThreadPoolExecutor(256) as pool:
    while not os.path.exists(over):
        time.sleep(max(0.0, due - time.monotonic()))
        due += 1 / rate
        pool.submit(ask)
"""


class Asked(NamedTuple):
    """A request: when it was begun, how long it took, and what was wrong, if anything was."""

    begun: float
    took: float
    wrong: str


class Failing:
    """A connection in the lab, whose pods on several gateways fail."""

    def __init__(self, lab: Lab, name: str = CONNECTION["metadata"]["name"]) -> None:
        self.lab, self.name = lab, name
        self.service = f"{PREFIX}{name}"
        places = [one for one in lab.testbed.networks.values() if isinstance(one, InNamespace)]
        self._runtimes = {one.node.name: one.node for one in places}

    def connect(self, replicas: int, mode: str) -> None:
        """Let there be so many pods of a mode, and wait until all of them serve."""
        ports = components(("backend", [("HTTP", 443), ("TCP", PORT), ("UDP", 5004)]))
        connection = changed(CONNECTION, replicas=replicas, mode=mode)
        connection["metadata"]["name"] = self.name
        for one in (changed(DEVICE, nodeNames=["kedge2"], components=ports), connection):
            self.lab.until_taken(json.dumps(one))
        containers = 3 if mode == "relay" else 1
        self.until_serving(replicas, lambda pod: len(pod["spec"]["containers"]) == containers)

    def until_serving(self, count: int, alike: Callable[[Any], bool] = lambda pod: True) -> None:
        """Wait until there are so many pods, and no other."""
        until(
            lambda: len(self.pods()) == count == len([pod for pod in self.serving() if alike(pod)]),
            lambda: f"{[pod['metadata'] for pod in self.pods()]} {self.lab.words()}",
            every=0.2,
        )

    def pods(self) -> list[Any]:
        """All proxy pods, those that are about to end included."""
        found: list[Any] = self.lab.client.get("pods", f"--selector={OF_CONNECTION}={self.name}")["items"]
        return found

    def serving(self) -> list[Any]:
        """The proxy pods to which requests go."""
        return [
            pod
            for pod in self.pods()
            if ready(pod) and serves(pod) and "deletionTimestamp" not in pod["metadata"]
        ]

    def endpoints(self) -> set[str]:
        """To which addresses the Service leads by now."""
        found = self.lab.client.get("endpoints", self.service).get("subsets") or []
        return {one["ip"] for subset in found for one in subset.get("addresses") or []}

    @contextmanager
    def asking(self, directory: Path, rate: float = A_SECOND) -> Iterator[Path]:
        """Have a pod of another node ask meanwhile; in the file is how that went, as ``asked`` reads it."""
        said, over, errors = (directory / f"{self.name}-{what}" for what in ("asked", "over", "errors"))
        over.unlink(missing_ok=True)
        host = str(self.lab.one(SERVICES, self.service)["spec"]["clusterIP"])
        command = ["python3", "-c", ASK, host, str(PORT), str(rate), str(over)]
        asker = self.lab.pod.start(command, stdout=said, stderr=errors)
        try:
            yield said
        finally:
            over.touch()
            assert asker.wait(PATIENCE_SECONDS) == 0, errors.read_text()

    def kill(self, pod: Any) -> None:
        """Kill all processes of a pod's containers."""
        for container in _containers(pod):
            self._runtime(pod, "kill", "--signal=SIGKILL", container)

    def within(self, pod: Any) -> InNamespace:
        """The network of a proxy pod, as who has all rights there."""
        tasks = self._runtime(pod, "list").splitlines()[1:]
        process = next(line.split()[1] for line in tasks if line.split()[0] == _containers(pod)[0])
        node = self._runtimes[pod["spec"]["nodeName"]]
        address = pod["status"]["podIP"]
        return InNamespace(pod["metadata"]["name"], node, f"/proc/{process}/ns/net", address, "")

    def clients(self) -> int:
        """How many clients of UDP have a process in a relay."""
        # Nodes are namespaces of one machine, which have their processes in common.
        listed = self._runtimes[self.lab.gateways[0]].run(["ps", "-eo", "args"]).stdout
        each = sum(line.startswith("/usr/bin/socat -T") for line in listed.splitlines())
        return each - len(self.serving())

    def kill_leader(self) -> bool:
        """Kill the operator that leads, and tell whether one did: the API may name a container that ended."""
        for pod in self.lab.client.get("pods", self.lab.in_space)["items"]:
            said = self.lab.client.run("logs", self.lab.in_space, pod["metadata"]["name"], check=False)
            if said.stdout.count(" leads\n") > said.stdout.count("leads no more"):
                with suppress(CommandError):
                    self.kill(pod)
                    return True
        return False

    def device(self, ports: Mapping[str, int]) -> Any:
        """The device with these ports, by their protocols."""
        return changed(DEVICE, components=components(("backend", list(ports.items()))))

    @contextmanager
    def api_away(self) -> Iterator[None]:
        """Let nobody answer for the API meanwhile."""
        orchestrator = self.lab.testbed.orchestrator
        assert isinstance(orchestrator, KubernetesOrchestrator)
        server = next(one for one in orchestrator.components if "kube-apiserver" in one.name)
        server.kill()
        try:
            yield
        finally:
            server.start()

    def _runtime(self, pod: Any, *arguments: str) -> str:
        """Ask the runtime of a pod's node something of its tasks."""
        node = self._runtimes[pod["spec"]["nodeName"]]
        return node.run(["ctr", "--namespace=k8s.io", "tasks", *arguments]).stdout

    def delete(self, pod: Any) -> None:
        """Let a pod go."""
        self.lab.client.delete_pod(pod["metadata"]["name"], wait=False)

    def cut_off(self, pod: Any, interface: str = "eth0") -> None:
        """Cut a pod's gateway off from the cluster, or with another interface from the device."""
        node = self.lab.testbed.nodes[pod["spec"]["nodeName"]]
        node.run(["nft", "-f", "-"], stdin=CUT.format(interface))

    def mend(self, pod: Any) -> None:
        """Let a gateway be as before, if it was cut off."""
        node = self.lab.testbed.nodes[pod["spec"]["nodeName"]]
        node.run(["nft", "delete", "table", "inet", "cut"], check=False)


def _containers(pod: Any) -> list[str]:
    return [one["containerID"].rpartition("/")[2] for one in pod["status"]["containerStatuses"]]


def asked(file: Path) -> list[Asked]:
    """Return what was asked so far, in order."""
    whole = file.read_text().rpartition("\n")[0]
    return sorted(Asked(*json.loads(line)) for line in whole.splitlines())


def lost(asked: Sequence[Asked], since: float) -> list[Asked]:
    """Return which requests came to nothing that were not answered when something happened."""
    return [one for one in asked if one.wrong and one.begun + one.took > since]
