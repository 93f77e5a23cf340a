"""What administer.md says to type, typed on two clusters that share their workers and whose pods run.

Behind the network of the one the plugin is chained, in the other it takes that network's place. Pods of both
send all the while, and what is lost is counted.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from docs.parts import marks
from testbed.access.place import InNamespace, in_parallel
from testbed.kubernetes.client import Client
from testbed.kubernetes.worker import CONTAINERD_SOCKET, Cell
from testbed.orchestrators.own import KubernetesOrchestrator
from testbed.runtime.cni import attachments
from testbed.scenario import load
from testbed.supplies import images
from testbed.testbed import Testbed
from tests.e2e import versions
from tests.e2e.conftest import PATIENCE_SECONDS, brought_up, prompt, until
from tests.paths import ROOT

PAGE = ROOT / "docs" / "howto" / "administer.md"
INSTALLED = "00-concorde.conflist"
WORKERS = ("worker-01", "worker-02")
MOST_SECONDS = 2400
# A hundred datagrams a second, each with its number: each shows a hundredth of it.
EACH_SECONDS = 0.01
MOST_LOST_SECONDS = 1.0
OFTEN_SECONDS = 0.1  # between two looks at a file, which asks no API
SEND = f"""
import socket, struct, sys, time
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to.connect((sys.argv[1], 9000))
begin, number = time.monotonic(), 0
while True:
    try:
        to.send(struct.pack("!Q", number))
    except OSError:
        pass
    number += 1
    time.sleep(max(0, begin + number * {EACH_SECONDS} - time.monotonic()))
"""
RECEIVE = """
import os, socket, struct
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
here.bind(("", 9000))
os.write(1, b"ready\\n")
while True:
    os.write(1, b"%d\\n" % struct.unpack("!Q", here.recv(100)))
"""
NETWORK = """
title: the reference plugin bridge
conflist: bridge.conflist
remains: {state: [/run/cni-addresses]}
"""
CONFLIST: dict[str, Any] = {
    "cniVersion": "0.3.1",
    "name": "${name}",
    "plugins": [
        {
            "type": "bridge",
            "bridge": "${bridge}",
            "isGateway": True,
            "mtu": "${mtu}",
            "ipam": {
                "type": "host-local",
                "dataDir": "/run/cni-addresses",
                "ranges": [[{"subnet": "${subnet}"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
    ],
}
SCENARIO = """
name: administered
network: network.yaml
underlay: {rate: 1G}
nodes: {master-01: , master-02: , worker-01: , worker-02: }
clusters:
  a: {master: master-01, workers: [worker-01, worker-02], pod_cidr: 172.16.0.0/16, flannel: {vni: 1}}
  b: {master: master-02, workers: [worker-01, worker-02], pod_cidr: 172.17.0.0/16, flannel: {vni: 2}}
pods:
  A-1: {cluster: a, node: worker-01}
  A-2: {cluster: a, node: worker-02}
  B-1: {cluster: b, node: worker-01}
  B-2: {cluster: b, node: worker-02}
  B-3: {cluster: b, node: worker-02}
flows:
  - {from: A-1, to: A-2, duration: 1}
"""
LINK = {"uplink": "eth0", "capacity": "950M"}


class Stream:
    """Datagrams from one pod of a cluster to another, and which of them came."""

    def __init__(self, cluster: Administered, source: str, destination: str) -> None:
        self.name = f"{cluster.cluster}: {source} -> {destination}"
        self._file = cluster.directory / f"{source}-{destination}"
        errors = self._file.with_suffix(".err")
        python = ["/usr/bin/python3", "-IS", "-c"]
        to = cluster.network_of(destination)
        self._receiver = to.start([*python, RECEIVE], stdout=self._file, stderr=errors)
        until(lambda: "ready" in self._file.read_text(), errors.read_text, every=OFTEN_SECONDS)
        send = [*python, SEND, to.address]
        self._sender = cluster.network_of(source).start(
            send, stdout=self._file.with_suffix(".out"), stderr=errors
        )

    def came(self) -> list[int]:
        """The numbers of those that came, whole lines only."""
        text = self._file.read_text()
        return [int(line) for line in text[: text.rfind("\n") + 1].splitlines()[1:]]

    def flows(self) -> None:
        """Wait until others come than until now: what was lost in between shows."""
        last = max(self.came(), default=-1)
        until(lambda: max(self.came(), default=-1) > last, lambda: self.name, every=OFTEN_SECONDS)

    def longest_gap_seconds(self) -> float:
        """How long those were on their way that were lost one after the other, at the most."""
        numbers = sorted(self.came())
        gaps = (later - former - 1 for former, later in pairwise(numbers))
        return max(gaps, default=0) * EACH_SECONDS

    def end(self) -> None:
        """Let nobody send any more; its pods may go."""
        for process in (self._sender, self._receiver):
            process.kill()


class Administered:
    """A cluster, and an administrator who types what the page says into a copy of what the project ships."""

    def __init__(self, testbed: Testbed, client: Client, overlay: str, directory: Path) -> None:
        self.client, self.overlay, self.directory = client, overlay, directory
        self.cluster = client.cluster
        self.home = f"/run/kubernetes/{self.cluster}/cni"  # of a node's plugins and configurations
        self.program = f"{self.home}/bin/concorde"
        self.network = f"cluster-{self.cluster}" if overlay == "chain" else "concorde"
        pods = {name: pod for name, pod in testbed.scenario.pods.items() if pod.cluster == self.cluster}
        places = {pod.node: testbed.networks[name] for name, pod in pods.items()}
        self.cells: dict[str, Cell] = {}
        for node, place in places.items():
            assert isinstance(place, InNamespace)
            assert isinstance(place.node, Cell)
            self.cells[node] = place.node
        here = Path(__file__).name
        self.blocks = [block for block in marks.blocks(PAGE.read_text()) if here in block.words]
        shutil.copytree(ROOT / "plugin" / "deploy", directory / "plugin" / "deploy")
        self.edit()

    def edit(self) -> None:
        """Write down what an administrator of this cluster must: its directories, its link, its network."""
        deploy = self.directory / "plugin" / "deploy"
        for file in (deploy / "manifests").glob("*.yaml"):
            text = file.read_text().replace("/opt/cni/bin", f"{self.home}/bin")
            file.write_text(text.replace("/etc/cni/net.d", f"{self.home}/net.d"))
        canary = deploy / "canary" / "kustomization.yaml"
        canary.write_text(canary.read_text().replace("overlays/chain", f"overlays/{self.overlay}"))
        conflist = deploy / "overlays" / self.overlay / "concorde.conflist"
        network = json.loads(conflist.read_text())
        network["plugins"][0] |= LINK
        if self.overlay != "chain":
            network["plugins"][0]["subnetFile"] = f"/run/flannel/subnet-{self.cluster}.env"
        conflist.write_text(json.dumps(network))

    def type(self, beginning: str, **words: str) -> str:
        """Type the page's line that begins so, with what stands in it for something in particular."""
        (line,) = {
            command
            for block in self.blocks
            for command, _ in block.commands()
            if command.startswith(beginning)
        }
        line = line.replace("overlays/chain", f"overlays/{self.overlay}")
        line = line.replace("/opt/cni/bin", f"{self.home}/bin")
        for word, meant in words.items():
            assert word in line
            line = line.replace(word, meant)
        home = str(Path(self.client.kubectl).parent)
        environment = {"PATH": f"{home}:/usr/bin:/bin", "KUBECONFIG": self.client.kubeconfig}
        cache = f'kubectl() {{ command kubectl --cache-dir={self.client.kubeconfig}.cache "$@"; }}'
        script = f"cd {self.directory}\n{cache}\n{line}"
        return self.client.place.run(["bash", "-c", script], env=environment).stdout

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("pods", "--namespace=concorde")["items"]
        return found

    def pod_on(self, node: str) -> str:
        """The installer's pod on a node."""
        names = [
            str(pod["metadata"]["name"])
            for pod in self.pods()
            if pod["spec"].get("nodeName") == node and "deletionTimestamp" not in pod["metadata"]
        ]
        return names[0] if len(names) == 1 else ""

    def words(self) -> str:
        """What the installers say."""
        selected = "--selector=app.kubernetes.io/name=concorde"
        return self.client.run("logs", "--namespace=concorde", selected, check=False).stdout

    def rolled_out(self) -> None:
        with prompt(self.client, "concorde"):
            self.type("kubectl -n concorde rollout status")

    def delete(self) -> None:
        with prompt(self.client, "concorde"):
            self.type("kubectl delete -f")

    def version(self, node: str) -> str:
        """What the plugin says to be that the node's runtime calls; empty without one."""
        return self.cells[node].run([self.program, "--version"], check=False).stdout.strip()

    def held(self) -> dict[str, dict[str, float]]:
        """The promises in each node's ledger, which the kernel has as they stand there."""
        found = {}
        for node, cell in self.cells.items():
            assert cell.run([self.program, "reconcile"]).stdout == "nothing to repair\n"
            told = cell.run([self.program, "ledger", "--json"]).json()["attachments"]
            own = (one for one in told if one["network"] == self.network)
            found[node] = {one["pod"]: one["guarantee"] for one in own if one["guarantee"]}
        return found

    def networks(self, node: str) -> list[str]:
        return self.cells[node].run(["ls", f"{self.home}/net.d"]).stdout.split()

    def shown(self) -> dict[str, list[str]]:
        """What an installer or a plugin could leave on the nodes that is not of the pods themselves."""
        look = f"find {self.home} -printf '%M %p %l\\n' | sort"
        return {node: cell.run(["sh", "-c", look]).stdout.splitlines() for node, cell in self.cells.items()}

    def bring(self, directory: Path) -> None:
        """Have the images of this version and of another on the nodes."""
        for image in (images.provide_installer(), versions.image(directory)):
            for cell in self.cells.values():
                cell.run(["ctr", "--namespace=k8s.io", "images", "import", str(image.archive)])

    def promise(self, name: str, node: str) -> None:
        """Have a pod on a node that is promised something."""
        self.client.apply([versions.pod(name, node, {versions.GUARANTEE: f"{versions.PROMISE}"})])
        self.client.wait_until_ready([name], PATIENCE_SECONDS)

    def network_of(self, pod: str) -> InNamespace:
        """A pod's network, as its runtime knows it."""
        for cell in self.cells.values():
            for one in attachments(cell):
                if one.arguments.get("K8S_POD_NAME") == pod:
                    return InNamespace(pod, cell, one.namespace, one.address, one.host_interface)
        raise LookupError(pod)


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Testbed]:
    directory = tmp_path_factory.mktemp("scenario")
    (directory / "network.yaml").write_text(NETWORK)
    (directory / "bridge.conflist").write_text(json.dumps(CONFLIST))
    (directory / "administered.yaml").write_text(SCENARIO)
    with brought_up(load(directory / "administered.yaml")) as up:
        yield up


@pytest.fixture
def streams() -> Iterator[list[Stream]]:
    begun: list[Stream] = []
    yield begun
    for stream in begun:
        stream.end()


@pytest.mark.by_turns
@pytest.mark.timeout(MOST_SECONDS)
def test_pods_that_run_keep_their_network_from_the_first_line_to_the_last(
    testbed: Testbed,
    streams: list[Stream],
    tmp_path: Path,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    clients = {client.cluster: client for client in testbed.clients}
    a = Administered(testbed, clients["a"], "chain", tmp_path / "a")
    b = Administered(testbed, clients["b"], "node", tmp_path / "b")
    before = a.shown(), b.shown()
    for one in (a, b):
        one.bring(tmp_path / one.cluster)
    together = threading.Barrier(2, timeout=MOST_SECONDS)
    both = partial(chained, a, testbed, streams, together), partial(in_its_place, b, streams, together)
    in_parallel(lambda administer: administer(), both)
    assert (a.shown(), b.shown()) == before
    for node in WORKERS:
        look = "ls -d /run/concorde; nft list tables | grep concorde; tc qdisc show dev eth0 | grep c0de:"
        assert testbed.nodes[node].run(["sh", "-c", look], check=False).stdout == ""
    for stream in streams:
        assert len(stream.came()) > 1000
        record_testsuite_property(f"longest gap {stream.name} (s)", stream.longest_gap_seconds())
        assert stream.longest_gap_seconds() <= MOST_LOST_SECONDS, stream.name


def chained(a: Administered, testbed: Testbed, streams: list[Stream], together: threading.Barrier) -> None:
    """Behind a network whose pods run: one node, all nodes, another version, back, and away."""
    first, second = WORKERS
    own = [Stream(a, *pair) for pair in (("a-1", "a-2"), ("a-2", "a-1"))]
    streams += own
    a.type("kubectl label node", NODE=first)
    a.type("kubectl apply -k plugin/deploy/canary")
    a.rolled_out()
    assert a.networks(first)[0] == INSTALLED
    assert INSTALLED not in a.networks(second)
    a.promise("promised-1", first)
    ledger = "kubectl -n concorde exec POD -- chroot /node/root /opt/cni/bin/concorde ledger"
    assert "default/promised-1" in a.type(ledger, POD=a.pod_on(first))
    with debugging(a, testbed, first) as log:
        in_parallel(lambda part: part(), (partial(everywhere, a, second), partial(refused, a, first, log)))
        own.append(Stream(a, "promised-1", "promised-2"))
        streams.append(own[-1])
        flow(own)
    flow(own)
    another_version_and_back(a, own, together)

    a.type("kubectl -n concorde patch daemonset")
    a.rolled_out()
    a.delete()
    flow(own)  # what was promised runs on, as do those that were there before


def everywhere(a: Administered, second: str) -> None:
    """From one node to all nodes."""
    a.type("kubectl apply -k plugin/deploy/overlays")
    a.rolled_out()
    assert [a.networks(node)[0] for node in WORKERS] == [INSTALLED] * 2
    a.promise("promised-2", second)


def in_its_place(b: Administered, streams: list[Stream], together: threading.Barrier) -> None:
    """In the place of a network whose pods run: not before a node is drained, and no other node sees that."""
    first, second = WORKERS
    beside = Stream(b, "b-2", "b-3")
    streams.append(beside)
    b.type("kubectl apply -k plugin/deploy/overlays")
    until(lambda: b.words().count("cni-b") >= 1, b.words)
    assert not any(INSTALLED in b.networks(node) for node in WORKERS)
    beside.flows()
    promised: list[Stream] = []
    for node in WORKERS:
        if node == second:
            beside.flows()
            beside.end()
        b.type("kubectl drain", NODE=node)
        b.type("kubectl -n concorde exec POD -- chroot /node/root ip link", POD=b.pod_on(node), cni0="cni-b")
        until(lambda node=node: INSTALLED in b.networks(node), b.words)  # type: ignore[misc]
        b.type("kubectl uncordon", NODE=node)
        b.promise(f"promised-{node[-1]}", node)
    b.rolled_out()
    promised.append(Stream(b, "promised-1", "promised-2"))
    streams += promised
    flow(promised)
    another_version_and_back(b, promised, together)

    for stream in promised:
        stream.flows()
        stream.end()
    b.type("kubectl -n concorde patch daemonset")
    until(lambda: "pods are still attached" in b.words(), b.words)
    b.client.delete_pods()
    b.rolled_out()
    b.delete()
    b.client.apply([versions.pod("after", first, {})])
    b.client.wait_until_ready(["after"], PATIENCE_SECONDS)


@contextmanager
def debugging(a: Administered, testbed: Testbed, node: str) -> Iterator[Callable[[], str]]:
    """Lend a node's runtime with the variable in its environment, and what it has logged."""
    assert isinstance(testbed.orchestrator, KubernetesOrchestrator)
    (usual,) = (
        one
        for one in testbed.orchestrator.components
        if one.name == f"containerd of cluster {a.cluster}" and one.place.name == node
    )
    usual.kill()
    asked = replace(usual, env={**usual.env, "CONCORDE_DEBUG": "1"})
    asked.start()
    asked.wait_until_it_answers(CONTAINERD_SOCKET, PATIENCE_SECONDS)
    yield lambda: usual.place.run(["cat", f"{usual.directory}/log"]).stdout
    usual.restart()
    usual.wait_until_it_answers(CONTAINERD_SOCKET, PATIENCE_SECONDS)


def refused(a: Administered, node: str, log: Callable[[], str]) -> None:
    """An error says where in the plugin it came from."""
    above = {versions.GUARANTEE: "2G", "kubernetes.io/egress-bandwidth": "1G"}
    a.client.apply([versions.pod("refused", node, above)])
    events = ["get", "events", "--field-selector=involvedObject.name=refused"]
    until(lambda: "Traceback (most recent call last)" in a.client.run(*events).stdout)
    assert "is above the" in a.client.run(*events).stdout
    assert "in add" in log()
    a.client.delete_pod("refused", wait=False)


def flow(streams: Iterable[Stream]) -> None:
    for stream in streams:
        stream.flows()


def another_version_and_back(
    one: Administered, streams: Sequence[Stream], together: threading.Barrier
) -> None:
    """With traffic on; each node's promises are the same, and kept, before, between and after.

    Clusters that share nodes have the same version, so both are changed at a time, and then looked at.
    """
    together.wait()
    former, held = one.version(WORKERS[0]), one.held()
    assert held == {node: {f"default/promised-{node[-1]}": versions.PROMISE} for node in WORKERS}
    for line, words, image in (
        ("kubectl -n concorde set image", {"VERSION": versions.VERSION}, versions.VERSION),
        ("kubectl -n concorde rollout undo", {}, images.INSTALLER.rpartition(":")[2]),
    ):
        together.wait()
        one.type(line, **words)
        one.rolled_out()
        together.wait()
        assert one.version(WORKERS[0]) == one.version(WORKERS[1])
        assert (one.version(WORKERS[0]) == former) == (image != versions.VERSION)
        rows = one.type("kubectl -n concorde get pods").splitlines()[1:]
        expected = [f"{node} testbed.local/concorde:{image} true" for node in WORKERS]
        assert sorted(" ".join(row.split()) for row in rows) == expected
        assert one.held() == held
        flow(streams)
    together.wait()
