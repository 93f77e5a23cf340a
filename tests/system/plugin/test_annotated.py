"""Somebody annotates a pod that runs: its node's agent changes what it is promised, or tells who has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import openssl_makes
from tests.system.plugin.conftest import ANSWERS, GUARANTEE, INGRESS, Document, Node, network
from tests.system.plugin.runtimes import CACHE, attach
from tests.system.plugin.segment_lab import Lab
from tests.system.plugin.test_agent import Agent, agent
from tests.system.plugin.test_ingress import KEY, change, promised, receiving
from tests.system.plugin.test_promises_on_segments import OURS
from tests.system.plugin.test_rebuild import program, rebuilt, told
from tests.system.plugin.uplinks import on_uplink
from tests.waiting import until

API = Path(__file__).with_name("api.py")
OF_POD = "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID="
UID = "0a-1b"
NAMES = {"egress": GUARANTEE, "ingress": INGRESS, "answers": ANSWERS, "further": f"{GUARANTEE}.net1"}


class Cluster:
    """An API, whose node has the cluster's agents, and a pod `default/web`."""

    def __init__(self, node: Node, directory: Path) -> None:
        self.node = node
        self.directory = directory
        self.pods = directory / "pods"
        (directory / "pods.asked").touch()
        self.said: Callable[[], str]

    def says(self, *lines: Document) -> None:
        """Let the API say these next: all of them are there at once."""
        with self.pods.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))

    def web(self, uid: str = UID, **promises: object) -> Document:
        """The pod with these annotations."""
        annotations = {NAMES[name]: value for name, value in promises.items()}
        return {"metadata": {"namespace": "default", "name": "web", "uid": uid, "annotations": annotations}}

    def annotate(self, uid: str = UID, **promises: object) -> None:
        self.says(self.web(uid, **promises))

    def event(self, reason: str = "PromiseRefused") -> Any:
        """The next one that the API is told."""
        found = json.loads(self.said())["event"]
        assert (found["reason"], found["involvedObject"]["uid"]) == (reason, UID)
        return found["message"]

    def asked(self) -> list[str]:
        """What the API was asked for."""
        return Path(f"{self.pods}.asked").read_text().splitlines()

    def agent(
        self, configuration: Document, *options: str, log: str = "log", path: str = "/usr/sbin"
    ) -> AbstractContextManager[Agent]:
        """The cluster's; `path` is where it looks for tools first."""
        watching = "--node", "node-1", "--cache", CACHE, "--account", str(self.directory)
        env = "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=6443", f"PATH={path}:/usr/bin"
        all_options = *watching, "--every", "3600", *options
        return agent(self.node, self.directory / log, configuration, *all_options, env=env)

    def watches(self, lists: int) -> None:
        """Wait until all pods were taken in that often."""
        until(lambda: self.asked().count("list") == lists and self.asked()[-1] != "list")


@pytest.fixture
def cluster(node: Node, tmp_path: Path) -> Iterator[Cluster]:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.add_pod_namespace("A-1", "A-2", "B-1")
    with serving(node, tmp_path) as made:
        yield made


@contextmanager
def serving(node: Node, directory: Path) -> Iterator[Cluster]:
    made = Cluster(node, directory)
    certificate, key = directory / "ca.crt", directory / "key.pem"
    openssl_makes(certificate, key, "-addext", "subjectAltName=IP:127.0.0.1")
    (directory / "token").write_text("who-I-am")
    (directory / "secret").write_text(KEY)
    made.annotate()
    with node.running("/usr/bin/python3", API, "6443", certificate, key, made.pods) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        made.said = server.stdout.readline
        yield made


def egress(node: Node, container: str = "A-1") -> int | None:
    (rate,) = (one["guarantee"] for one in told(node)["attachments"] if one["container"] == container)
    found: int | None = rate
    return found


def test_what_is_annotated_is_promised_or_refused_by_event(cluster: Cluster) -> None:
    node = cluster.node
    cluster.annotate(ingress="300M")
    with cluster.agent(receiving("1M"), "--key", str(cluster.directory / "secret")) as its:
        its.says("takes part in the fabric")
        configuration = receiving("300M")
        result = attach(node, "A-1", configuration, OF_POD + UID)
        cluster.annotate(ingress="400M", egress="100M")
        until(lambda: (egress(node), promised(node)) == (100_000_000, {"A-1": (400_000_000, 20_000_000)}))
        assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}

        attach(node, "B-1", receiving("300M"))
        assert change(node, "A-1", "egress-guarantee=50M")[0] == 0
        for wanted, words in (
            ("900M", "no room for a guarantee of 900 Mbit/s for what is received"),
            ("much", "'much'"),
        ):
            cluster.annotate(ingress=wanted, egress="100M")
            message = cluster.event()
            assert message.startswith("what was promised before stays: ")
            assert words in message
            assert ("held by cluster-a 310" in message) == (wanted == "900M")
        assert egress(node) == 50_000_000  # nobody has written that annotation anew
        assert promised(node)["A-1"] == (400_000_000, 20_000_000)
        cluster.annotate(ingress="800M", egress="120M")
        assert "800 Mbit/s" in cluster.event()
        cluster.annotate(ingress="200M", egress="120M")  # what was refused together is not forgotten
        until(lambda: (egress(node), promised(node)["A-1"]) == (120_000_000, (200_000_000, 10_000_000)))
        cluster.annotate(egress="120M", answers="7M")
        assert "answers-guarantee stays as the pod began with it" in cluster.event()
        until(lambda: set(promised(node)["A-1"]) == {None})
        assert egress(node) == 120_000_000
        assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}
        assert program(node, "reconcile") == (0, "nothing to repair\n")
        until(lambda: len(children(its)) == 2)  # that stay: one in the fabric, one that watches
        staying = children(its)
        its.kill()
        until(lambda: not any(map(runs, staying)))


def children(of: Agent) -> list[Path]:
    return [
        Path(f"/proc/{pid}") for pid in Path(f"/proc/{of.pid}/task/{of.pid}/children").read_text().split()
    ]


def runs(process: Path) -> bool:
    """Whether it does, and has not just to be waited for."""
    try:
        return bool((process / "cmdline").read_bytes())
    except OSError:
        return False


def test_what_an_administrator_changes_stays_whoever_begins_anew(cluster: Cluster) -> None:
    """The agent is killed where ADD was told the annotation, where it has taken one, and refused one."""
    node, network = cluster.node, on_uplink("100M")
    result = attach(node, "A-1", network, OF_POD + UID)
    cluster.annotate(egress="100M")

    def is_whole() -> None:
        assert node.call("CHECK", "A-1", {**network, "prevResult": result}) == {}
        assert program(node, "reconcile") == (0, "nothing to repair\n")

    @contextmanager
    def changed_to(by_hand: int) -> Iterator[None]:
        assert change(node, "A-1", f"egress-guarantee={by_hand}")[0] == 0
        before = cluster.asked().count("list")
        with cluster.agent(network, log=str(by_hand)) as its:
            cluster.watches(before + 1)
            assert egress(node) == by_hand
            yield
            its.kill()

    with changed_to(50_000_000):
        cluster.annotate(egress="200M")
        until(lambda: egress(node) == 200_000_000)
    rebuilt(node)  # knows what was annotated, too
    with changed_to(60_000_000):
        cluster.annotate(egress="990M")
        assert "no room" in cluster.event()
    with changed_to(70_000_000):
        cluster.annotate(egress="300M")
        until(lambda: egress(node) == 300_000_000)
        cluster.annotate()  # as ADD would without it
        until(lambda: egress(node) is None)
        is_whole()
    assert change(node, "A-1", "egress-guarantee=80M")[0] == 0
    is_whole()
    assert change(node, "A-1", "egress-guarantee=")[0] == 0
    assert egress(node) is None
    is_whole()


@pytest.mark.long(one_in=0)
def test_who_is_killed_while_it_changes_a_promise_has_taken_the_annotation(cluster: Cluster) -> None:
    node, network = cluster.node, on_uplink()
    attach(node, "A-1", network, OF_POD + UID)
    path = node.slow_nft()
    node.run("touch", "/run/held")  # not what repairs what is gone
    with cluster.agent(network, path=path) as its:
        its.says("repaired: ")
        cluster.watches(1)
        node.run("rm", "/run/held")
        cluster.annotate(egress="100M")
        node.run("cat", "/run/reached")
        its.kill()
    node.run("sh", "-c", "echo > /run/go")
    assert egress(node) == 100_000_000
    assert change(node, "A-1", "egress-guarantee=50M")[0] == 0
    with cluster.agent(network):
        cluster.watches(2)
        assert egress(node) == 50_000_000
    assert program(node, "reconcile") == (0, "nothing to repair\n")


def test_where_the_api_forgot_what_has_been_since_all_pods_are_asked_for_at_once(cluster: Cluster) -> None:
    node, network = cluster.node, on_uplink("100M")
    attach(node, "A-1", network, OF_POD + UID)
    cluster.annotate(egress="100M")
    bookmark, end = {"type": "BOOKMARK", "object": {"kind": "Pod"}}, {"type": "END"}
    with cluster.agent(network) as its:
        cluster.watches(1)
        cluster.says(bookmark, {**end, "oldest": 3})
        until(lambda: cluster.asked() == ["list", "watch 2", "watch 3"])
        expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "expired"}}
        cluster.says({**expired, "oldest": 6}, cluster.web(egress="200M"))
        until(lambda: egress(node) == 200_000_000)
        cluster.watches(2)
        cluster.says(end, cluster.web(egress="300M"), {**end, "oldest": 9})
        until(lambda: egress(node) == 300_000_000)
        cluster.watches(3)
        assert cluster.asked()[3:] == ["list", "watch 6", "watch 6", "list", "watch 9"]
        assert "annotations of pods" not in its.log.read_text()  # nobody has waited


@pytest.mark.long(one_in=0)
def test_a_pod_that_has_a_formers_name_changes_nothing_of_that(cluster: Cluster) -> None:
    """Its own is attached beside the former's, which has not ended yet."""
    node, network = cluster.node, on_uplink("100M")
    attach(node, "A-1", network, OF_POD + "former")
    with cluster.agent(network):
        cluster.watches(1)
        attach(node, "A-2", network, OF_POD + UID)
        cluster.annotate(egress="200M")
        until(lambda: egress(node, "A-2") == 200_000_000)
    assert egress(node) == 100_000_000


def test_a_further_interface_has_annotations_of_its_own(node: Node, tmp_path: Path) -> None:
    lab = Lab(node)
    lab.define("plant", OURS)
    node.add_pod_namespace("A-1")
    arguments = OF_POD + UID
    first = attach(node, "A-1", network(), arguments)
    added = lab.call("ADD", "A-1", "plant", first, promises={f"{GUARANTEE}.net1": "20M"}, arguments=arguments)
    assert "code" not in added, added
    records = "--cache", "/run/concorde-networks/attached/cluster-a"

    def further() -> int | None:
        (rate,) = (one["guarantee"] for one in told(node)["attachments"] if one["uplink"] == "eth1")
        found: int | None = rate
        return found

    with serving(node, tmp_path) as cluster:
        cluster.annotate(further="20M")
        with cluster.agent(network(), *records):
            cluster.watches(1)
            assert further() == 20_000_000
            cluster.annotate(further="30M")
            until(lambda: further() == 30_000_000)
            cluster.annotate(further="300M")
            assert "no room for a guarantee of 300 Mbit/s on eth1" in cluster.event()
            cluster.annotate(further="300M", egress="10M")
            assert "enforcement pod keeps no promise on the node's link" in cluster.event()
            cluster.annotate(egress="10M")
            until(lambda: further() is None)
    assert program(node, "reconcile") == (0, "nothing to repair\n")
