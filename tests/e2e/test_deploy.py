"""A cluster that lasts, and the user's own kubectl; then the same without a network, that installs one, is
measured on by an ordinary user who has no more than a kubeconfig, and gets rid of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testbed import lasting
from testbed.access.local import Local
from testbed.clusters.kubeconfigs import NAMESPACE, Outside
from testbed.kubernetes.worker import Cell
from testbed.providers.netns.sandbox import Sandbox
from testbed.supplies import binaries, images
from tests.e2e import versions
from tests.e2e.conftest import PATIENCE_SECONDS, invoke, until
from tests.leftovers import added, host_state
from tests.paths import ROOT

NAME = "e2e-deploy"
NOBODY = 65534
DEPLOY = ROOT / "plugin" / "deploy"
PAGE = ROOT / "docs" / "howto" / "administer.md"
KEY = 64 * "f"
INGRESS = "concorde.contmec.dev/ingress-guarantee"
DIRECTORY = "/run/kubernetes/a/cni"  # of a node's plugins and configurations
SCENARIO = """
name: small
nodes: {master-01: , worker-01: , worker-02: }
clusters:
  a: {master: master-01, workers: [worker-01, worker-02], pod_cidr: 172.16.0.0/16}
pods:
  A-1: {cluster: a, node: worker-01, guarantee: 20M}
  A-2: {cluster: a, node: worker-02}
flows:
  - {from: A-1, to: A-2, duration: 4}
"""
# So that somebody serves services there.
SERVED = """
services:
  other: {cluster: a, pods: [A-2]}
"""
BESIDE = """
services:
  web: {cluster: a, pods: [A-1, A-2], address: 10.96.0.77}
requests:
  - {from: A-2, to: web, rate: 50, connections: new, lost: 0, duration: 2}
containers:
  container-1: {node: worker-01}
  container-2: {node: worker-02}
disturbances:
  - {from: container-1, to: container-2, start: 1, duration: 2, rate: 10M}
"""


def is_empty(cell: Cell) -> bool:
    """Whether the plugin has detached all pods; the API forgets them up to a minute later."""
    return cell.run(["ip", "-brief", "link", "show", "type", "veth", "master", "cni-a"]).stdout == ""


def is_quiet(cell: Cell) -> bool:
    """Whether nobody is calling the plugin."""
    return cell.run(["pgrep", "--full", f"{DIRECTORY}/bin/concorde"], check=False).status == 1


class Existing:
    """A cluster that looks to others as if it had been there all along."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "small.yaml").write_text(SCENARIO + BESIDE)
        kubectl = directory / "kubectl"
        shutil.copy(binaries.find().path("kubectl"), kubectl)
        (directory / "a.conf").write_text(lasting.find(NAME).kubeconfig("a"))
        self.client = Outside("a", Local(), str(kubectl), str(directory / "a.conf"))
        box = Sandbox.find(NAME)
        assert box is not None
        self.cells = []
        pods = [place for place in lasting.find(NAME).state().places.values() if place.kind == "pod"]
        for place in pods:
            (target,) = [word for word in place.network.command if word.startswith("--target=")]
            self.cells.append(Cell(place.node, box.node(place.node), "", int(target.partition("=")[2])))

    def without_network(self) -> None:
        """Take plugin and configuration away, as if the testbed had not brought them."""
        self.client.run("delete", "pods", "--all", "--namespace=default", "--wait=false")
        wanted = (*images.provide(), images.provide_installer())
        for cell in self.cells:
            until(partial(is_empty, cell))
            cell.run(["sh", "-c", f"rm {DIRECTORY}/net.d/* {DIRECTORY}/bin/concorde*"])
            # Runtimes call it several times for a pod's end, and the last call would begin a ledger again.
            until(partial(is_quiet, cell))
            cell.run(["sh", "-c", "rm -r /run/concorde; ip link delete cni-a"], check=False)
            for family in ("ip", "ip6", "bridge"):
                cell.run(["nft", "delete", "table", family, "concorde"], check=False)
            for image in wanted:
                cell.run(["ctr", "--namespace=k8s.io", "images", "import", str(image.archive)])

    def shown(self) -> list[list[str]]:
        """What a node has that an installer, a plugin or a run could leave behind."""
        files = f"find {DIRECTORY} -printf '%M %p %l\\n' | sort"
        look = f"{files}; ls -d /run/concorde; ip -br link; nft list tables; tc qdisc"
        seen = [cell.run(["sh", "-c", look], check=False).stdout for cell in self.cells]
        return [text.splitlines() for text in seen]

    def ready(self) -> list[bool]:
        """Whether nodes are ready, without a master that is no more than a name and a subnet."""
        return [
            condition["status"] == "True"
            for node in self.client.get("nodes")["items"]
            if not node["spec"].get("unschedulable")
            for condition in node["status"]["conditions"]
            if condition["type"] == "Ready"
        ]

    def install(self, overlay: str = "pod") -> None:
        """Apply an overlay as kubectl renders it, with this cluster's directories, link and nodes."""
        text = self.client.run("kustomize", str(DEPLOY / "overlays" / overlay)).stdout
        for usual, here in (
            ("/opt/cni/bin", f"{DIRECTORY}/bin"),
            ("/etc/cni/net.d", f"{DIRECTORY}/net.d"),
            ("subnet.env", "subnet-a.env"),
            ("cni-concorde", "cni-a"),
            ('"nodes": []}', '"nodes": ["192.168.56.0/24"]}, "uplink": "eth0", "capacity": "950M"'),
        ):
            text = text.replace(usual, here)
        # Nobody serves services here, by which agents would ask the API.
        (api,) = replace(self.client, namespace="default").get("endpoints", "kubernetes")["subsets"]
        (host,), (port,) = api["addresses"], api["ports"]
        said = {"HOST": host["ip"], "PORT": str(port["port"])}
        for name, value in said.items():
            own = f'\\1- name: KUBERNETES_SERVICE_{name}\\n\\1  value: "{value}"\\n\\g<0>'
            text = re.sub(r"( +)- name: NODE_NAME\n", own, text)
        self.client.run("apply", "--namespace=concorde", "--filename=-", stdin=text)

    def uninstall(self) -> None:
        """Have the installer take all away, where there is another network by which pods can be ended."""
        other = '{"cniVersion": "0.4.0", "name": "other", "plugins": [{"type": "loopback"}]}'
        for cell in self.cells:
            cell.run(["tee", f"{DIRECTORY}/net.d/10-other.conflist"], stdin=other)
        patch = (DEPLOY / "uninstall.yaml").read_text()
        self.client.run("patch", "daemonset", "concorde", "--namespace=concorde", "--patch", patch)
        until(lambda: self.started("uninstall"), self.words)
        for cell in self.cells:
            cell.run(["rm", f"{DIRECTORY}/net.d/10-other.conflist"])

    def installers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.get("pods", "--namespace=concorde")["items"]
        return found

    def words(self) -> str:
        """What the installers say."""
        selected = "--selector=app.kubernetes.io/name=concorde"
        return self.client.run("logs", "--namespace=concorde", selected, check=False).stdout

    def started(self, task: str) -> bool:
        """Whether the installer has done its task on each node.

        Kubernetes before 1.21 says up to a minute later that such a pod is ready.
        """
        own = [{"name": "TASK", "value": task}]
        pods = [p for p in self.installers() if p["spec"]["containers"][0]["env"][:1] == own]
        states = [state for pod in pods for state in pod["status"].get("containerStatuses", [])]
        return len(states) == len(self.cells) and all(state["started"] for state in states)

    def bench(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run bench as a user who is nobody here."""
        command = [
            sys.executable,
            "tasks.py",
            "bench",
            "--scenario",
            f"{self.directory}/small.yaml",
            "--retry",
            "0",
            *arguments,
        ]
        home = str(self.directory / "home")
        return subprocess.run(
            [*command, "--kubeconfig", f"{self.directory}/a.conf", "--reports", f"{home}/reports"],
            cwd=ROOT,
            env={"PATH": f"{self.directory}:{os.environ['PATH']}", "HOME": home, "MPLCONFIGDIR": home},
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
        )


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """A place that an ordinary user may enter, with a home in it."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    (directory / "home").mkdir()
    os.chown(directory / "home", NOBODY, NOBODY)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def up(directory: Path) -> Iterator[str]:
    """The name of a testbed that lasts."""
    before = host_state()
    (directory / "up.yaml").write_text(SCENARIO + SERVED)
    up = invoke("up", "--scenario", f"{directory}/up.yaml", "--name", NAME, "--orchestrator", "kubernetes")
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield NAME
    finally:
        down = invoke("down", "--name", NAME)
    assert down.returncode == 0, down.stderr
    assert added(before, host_state()) == {}


@pytest.fixture(scope="module")
def existing(directory: Path, up: str) -> Existing:
    made = Existing(directory)
    made.without_network()
    return made


def test_a_testbed_that_lasts_is_reached_by_the_users_own_kubectl(directory: Path, up: str) -> None:
    told = invoke("kubeconfig", "a", "--name", up)
    assert told.returncode == 0, told.stderr
    (directory / "told.conf").write_text(told.stdout)
    kubectl = [str(binaries.find().path("kubectl")), f"--kubeconfig={directory / 'told.conf'}"]
    listed = subprocess.run([*kubectl, "get", "pods", "--output=name"], capture_output=True, text=True)
    assert listed.stdout.split() == ["pod/a-1", "pod/a-2"], listed.stderr
    ran = invoke("exec", "A-1", "--name", up, "--", "sh", "-c", "ip -br address show eth0; exit 7")
    assert ran.returncode == 7
    assert "172.16.1." in ran.stdout
    nowhere = invoke("kubeconfig", "z", "--name", up)
    assert nowhere.returncode == 2
    assert "no Kubernetes cluster 'z' (clusters: a)" in nowhere.stderr


def test_an_unready_cluster_is_refused_before_anything_is_made(existing: Existing) -> None:
    until(lambda: existing.ready() == [False, False])
    refused = existing.bench("--enforcement", "none")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "nodes.worker-01: node 'worker-01' of cluster 'a' is not ready" in refused.stderr


@pytest.mark.by_turns
def test_a_cluster_gets_its_network_is_judged_and_gets_rid_of_it(existing: Existing) -> None:
    client = existing.client
    until(
        lambda: existing.ready() == [False, False],
        lambda: "nodes without a network are not ready",
    )
    before = existing.shown()

    existing.install()
    until(lambda: existing.started("install"), existing.words)
    until(lambda: existing.ready() == [True, True], existing.words)

    refused = existing.bench("--enforcement", "node", "--set", "underlay.rate=1G")
    assert refused.returncode == 2
    assert "ConfigMap concorde in namespace concorde of cluster 'a' says pod" in refused.stderr
    assert NAMESPACE not in client.run("get", "namespaces").stdout

    # What a run that was killed has left.
    leftover = {"labels": {"concorde.contmec.dev/made-by": "bench"}, "name": NAMESPACE}
    leftover["annotations"] = {"concorde.contmec.dev/until": "2020-01-01T00:00:00+00:00"}
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": leftover}
    client.run("create", "--filename=-", stdin=json.dumps(manifest))
    done = existing.bench()
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    (recording,) = (existing.directory / "home" / "reports").glob("2*")
    summary = json.loads((recording / "summary.json").read_text())
    assert (summary["provider"], summary["orchestrator"]) == ("existing", "kubernetes")
    assert summary["flows"][0]["phases"]["quiet"]["samples"] > 0
    (asked,) = summary["requests"]
    assert set(asked["endpoints"]) == {"A-1", "A-2"}
    assert json.loads((recording / "raw" / "run.json").read_text())["faults"] == []
    found = json.loads((recording / "raw" / "found.json").read_text())
    assert found["names"] == {name: name for name in ("worker-01", "worker-02")}
    assert set(found["uplinks"].values()) == {"eth0"}
    assert found["mtu"] == 1500
    surroundings = json.loads((recording / "environment.json").read_text())
    assert surroundings["mtu"]["pod"] == 1450
    assert surroundings["clusters"]["a"]["nodes"]["worker-01"]["name"] == "worker-01"
    assert NAMESPACE not in client.run("get", "namespaces").stdout

    existing.uninstall()
    assert existing.shown() == before


@pytest.mark.long(one_in=0)
def test_a_fabrics_agents_get_their_key_when_it_is_made_and_it_goes_with_them(existing: Existing) -> None:
    client = existing.client
    until(lambda: existing.ready() == [False, False])
    before = existing.shown()
    existing.install("fabric")
    until(lambda: existing.started("install"), existing.words)
    until(lambda: existing.ready() == [True, True], existing.words)
    until(
        lambda: existing.words().count("agent: looks after this node") == len(existing.cells), existing.words
    )

    own = replace(client, namespace="default")
    own.apply([versions.pod("receiver", "worker-01", {INGRESS: "20M"})])
    events = ["get", "events", "--field-selector=involvedObject.name=receiver"]
    until(lambda: "make the installer's Secret concorde-fabric" in own.run(*events).stdout)
    (line,) = re.findall(r"`kubectl ([^`]* create secret [^`]*=)\"", PAGE.read_text())
    client.run(*f"{line}{KEY}".split())
    until(lambda: own.get("pod", "receiver")["status"]["phase"] == "Running", existing.words)
    until(lambda: existing.words().count("agent: takes part in the fabric") == len(existing.cells))
    for cell in existing.cells:
        assert cell.run(["cat", "/run/concorde/concorde/fabric.key"]).stdout == KEY

    # What somebody annotates a running pod with is promised to it, or refused in an event.
    def received() -> int:
        told = existing.cells[0].run([f"{DIRECTORY}/bin/concorde", "ledger", "--json"]).json()
        (promised,) = [one["ingress"] for one in told["attachments"] if one["pod"] == "default/receiver"]
        return int(promised)

    annotate = ["annotate", "pod", "receiver", "--overwrite"]
    own.run(*annotate, f"{INGRESS}=30M")
    until(lambda: received() == 30_000_000, existing.words)
    own.run(*annotate, f"{INGRESS}=10G")
    until(lambda: "PromiseRefused" in own.run(*events).stdout, existing.words)
    assert received() == 30_000_000

    own.delete_pod("receiver", wait=False)
    until(lambda: is_empty(existing.cells[0]))
    existing.uninstall()
    delete = ["delete", "--namespace=concorde", f"--filename={DEPLOY / 'manifests'}"]
    client.run(*delete, timeout=PATIENCE_SECONDS)
    assert existing.shown() == before
    assert client.run("get", "secrets", "--all-namespaces").stdout.count("concorde-fabric") == 0
