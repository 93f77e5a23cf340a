"""The controller against a real API server: killed, cut off, in twos, and with an API that goes away.

Whatever happens, no block is seen twice, none is lost, and in the end all nodes have theirs.
CONCORDE_ADDRESSES_KILLS, CONCORDE_ADDRESSES_CUTS and CONCORDE_HINTS_KILLS say how often.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from edge.http import MERGE, AwayError, Json, Question, RefusedError
from edge.leader import LEASES
from testbed.kubernetes.addresses import WEBHOOK
from testbed.kubernetes.control_plane import render_kubeconfig
from testbed.providers.ssh.inventory import Machine
from testbed.provisioning import provision, variables
from testbed.provisioning.provision import PlaybookError
from testbed.scenario import load
from testbed.supplies import addresses, binaries, names, packages, services
from testbed.supplies.bundle import Archive, Bundle
from tests import cases, hinted, pythons
from tests.apis import NODES, OURS, Api, Controller, config, controlled, served, within
from tests.paths import ROOT
from tests.ports import free_ports

KILLS = cases.count("CONCORDE_ADDRESSES_KILLS", 3, 50)
CUTS = cases.count("CONCORDE_ADDRESSES_CUTS", 3, 20)
HINTS_KILLS = cases.count("CONCORDE_HINTS_KILLS", 1, 20)
AWAY_SECONDS = cases.count("CONCORDE_ADDRESSES_AWAY", 3, 30)
SCENARIO = ROOT / "scenarios" / "examples" / "stations-of-different-sizes.yaml"
QUICK = "--lease-seconds=1"
SLICES = "/apis/discovery.k8s.io/v1beta1/namespaces/default"
VENDORS = "/apis/baremetal.cluster.gke.io/v1alpha1/namespaces/{}/clustercidrconfigs"


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    try:
        binaries.find()
        packages.find("etcd-server", "etcd")
    except LookupError as error:
        pytest.skip(str(error))
    with served(tmp_path_factory.mktemp("api")) as api:
        yield api


@pytest.fixture
def api(lent: Api) -> Api:
    """An API without nodes, configs and who is asked, in which nobody leads: who was killed would."""
    if not lent.runs():
        lent.start()
    lent.delete(LEASES.format("kube-system"))
    lent.delete(CONFIGURATIONS)
    lent.delete(NODES)
    answer = lent.get(OURS)
    assert answer is not None
    for one in answer["items"]:
        lent.patch(f"{OURS}/{one['metadata']['name']}", {"metadata": {"finalizers": []}})
    lent.delete(OURS)
    lent.delete("/api/v1/namespaces/default/events")
    return lent


class History:
    """All that a watch shows of nodes from now on: two at a time never have one block."""

    def __init__(self, api: Api) -> None:
        self.has: dict[str, str] = {}
        self.twice: list[str] = []
        self._api = api
        self._list()
        assert self.has == {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _list(self) -> None:
        listed = self._api.get(NODES)
        assert listed is not None
        self.has = {}
        for node in listed["items"]:
            self._take("ADDED", node)
        self._version = listed["metadata"]["resourceVersion"]

    def _watch(self) -> None:
        while not self._api.client.closed:
            path = f"{NODES}?watch=1&resourceVersion={self._version}"
            with suppress(AwayError, RefusedError):
                for event in self._api.client.listen(Question("GET", path), silence=300):
                    if event["type"] == "ERROR":  # a server that has started anew does not know that version
                        self._list()
                        break
                    self._take(event["type"], event["object"])
            time.sleep(0.1)

    def _take(self, what: str, node: Json) -> None:
        name, block = node["metadata"]["name"], node["spec"].get("podCIDR", "")
        self._version = node["metadata"]["resourceVersion"]
        self.has.pop(name, None)
        if what == "DELETED":
            return
        if block:
            mine = ip_network(block)
            others = [one for one, other in self.has.items() if mine.overlaps(ip_network(other))]
            self.twice += [f"{name} and {one}: {block}" for one in others]
            self.has[name] = block


class Churn:
    """Nodes that come, go and come again; as many at most as there are blocks."""

    def __init__(self, api: Api, most: int) -> None:
        self.api, self.most = api, most
        self.chance = random.Random(cases.seed())
        self.there: list[str] = []
        self.made = 0

    def step(self, number: int = 1) -> None:
        """Change something, so many times."""
        for _ in range(number):
            if self.there and (len(self.there) >= self.most or self.chance.random() < 0.4):
                self._go()
            else:
                self._come()

    def _come(self) -> None:
        self.made += 1
        name = f"n{self.chance.randrange(2 * self.most)}"  # one that was there, perhaps
        if name not in self.there:
            self.api.node(name, number=str(self.made))
            self.there.append(name)

    def _go(self) -> None:
        name = self.there.pop(self.chance.randrange(len(self.there)))
        self.api.delete(f"{NODES}/{name}")


def settled(api: Api, history: History, controller: Controller) -> None:
    """See that all nodes get blocks, that configs say the same, and that nobody had one twice."""
    within(lambda: all(api.blocks().values()), controller)
    blocks = {name: texts[0] for name, texts in api.blocks().items()}
    assert len(set(blocks.values())) == len(blocks)
    within(lambda: history.has == blocks, controller)
    assert history.twice == []

    def told() -> bool:
        listed = api.get(OURS)
        assert listed is not None
        nodes = [one for each in listed["items"] for one in each.get("status", {}).get("nodes", ())]
        return {one["name"]: one["blocks"][0] for one in nodes} == blocks

    within(told, controller)


def test_killed_under_change(api: Api) -> None:
    api.config("all", "10.0.0.0/26:30")
    history, churn = History(api), Churn(api, 16)
    with controlled(api, QUICK) as controller:
        for number in range(KILLS):
            churn.step(3)
            within(lambda: controller.terms() > number, controller)  # noqa: B023 (it is waited for here)
            churn.step(6)
            time.sleep(churn.chance.random() * 0.1)  # so that it is killed in the midst of anything
            controller.kill()
            controller.start()
        settled(api, history, controller)


def test_two_at_once_of_which_each_is_killed_and_stands_still(api: Api) -> None:
    """One that stood still goes on when another leads, and has seen nothing of that."""
    api.config("all", "10.0.0.0/26:30")
    history, churn = History(api), Churn(api, 16)
    with controlled(api, QUICK) as one, controlled(api, QUICK) as other:
        for number in range(KILLS):
            churn.step(6)
            chosen = (one, other)[number % 2]
            chosen.freeze(True)
            churn.step(6)
            within(lambda: all(api.blocks().values()), one)
            chosen.freeze(False)
            churn.step(6)
        settled(api, history, one)


class Between:
    """Stands between a controller and its API, and cuts what goes through it."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def cut(self) -> None:
        """Cut all connections."""
        ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join()
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                self._begin(self._join, near)

    def _begin(self, what: Callable[..., None], *arguments: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=what, args=arguments)
        thread.start()
        self._threads.append(thread)
        return thread

    def _join(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(("127.0.0.1", self._to)) as far:
            self._ends += [near, far]
            back = self._begin(self._pass, far, near)
            self._pass(near, far)
            back.join()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


@contextmanager
def between(api: Api) -> Iterator[Between]:
    made = Between(api.port)
    try:
        yield made
    finally:
        made.close()


def test_watches_and_patches_that_are_cut(api: Api) -> None:
    api.config("all", "10.0.0.0/26:30")
    history, churn = History(api), Churn(api, 16)
    with between(api) as way, controlled(api, f"--api=https://127.0.0.1:{way.port}") as controller:
        for _ in range(CUTS):
            churn.step(6)
            time.sleep(churn.chance.random() * 0.3)
            way.cut()
        settled(api, history, controller)


@pytest.mark.long(one_in=2, counted=True)
@pytest.mark.parametrize("how", ["frozen", "ended"])
def test_an_api_that_is_away(api: Api, how: str) -> None:
    api.config("all", "10.0.0.0/26:30")
    history, churn = History(api), Churn(api, 16)
    with controlled(api, QUICK) as controller:
        churn.step(12)
        api.freeze(True) if how == "frozen" else api.stop()
        time.sleep(AWAY_SECONDS)  # this long, and not until anything
        api.freeze(False) if how == "frozen" else api.start()
        churn.step(6)
        settled(api, history, controller)


def test_what_the_vendor_writes_applies_and_a_server_of_one_family_says_which_gate(api: Api) -> None:
    api.post("/api/v1/namespaces", {"metadata": {"name": "cluster-edge"}})
    kiosks = config("kiosks", "10.61.4.0/25:28", pool="kiosks")
    kiosks["apiVersion"] = "baremetal.cluster.gke.io/v1alpha1"
    api.post(VENDORS.format("cluster-edge"), kiosks)
    api.config("both", "10.62.0.0/16:24", "fd62::/112:120")
    api.node("kiosk", pool="kiosks")
    api.node("waits")
    with controlled(api) as controller:
        within(lambda: api.blocks()["kiosk"], controller)
        assert api.blocks() == {"kiosk": ["10.61.4.0/28"], "waits": []}
        within(lambda: "IPv6DualStack" in said(api, "waits"), controller)
        within(lambda: "IPv6DualStack" in said(api, "both"), controller)
        api.delete(f"{NODES}/kiosk")
        api.delete(f"{VENDORS.format('cluster-edge')}/kiosks")
        within(lambda: not api.get(f"{VENDORS.format('cluster-edge')}/kiosks"), controller)
        assert controller.end() == 0


def test_a_server_of_one_family_is_asked_for_a_node_that_waits(api: Api) -> None:
    api.config("both", "10.62.0.0/16:24", "fd62::/112:120", size="none is so large")
    api.config("single", "10.61.4.0/25:28")
    api.node("a")
    with controlled(api) as controller:
        within(lambda: api.blocks()["a"] == ["10.61.4.0/28"], controller)
        within(lambda: "IPv6DualStack" in said(api, "both"), controller)


# What the kinds' schema lets through, by the field that the webhook names.
REFUSED = {
    "spec.ipv4.perNodeMaskSize: Invalid value: 12: must be an integer from 20": ("10.60.0.0/20:12", ""),
    'spec.ipv4.cidr: Invalid value: \\"10.61.4.1/25\\": has host bits set': ("10.61.4.1/25:28", ""),
    'spec.ipv6.cidr: Invalid value: \\"fd62::1/112\\": has host bits set': ("", "fd62::1/112:120"),
    "spec.ipv6.perNodeMaskSize: Invalid value: 113: must be at most 112": ("", "fd62::/96:113"),
    "spec.ipv6.perNodeMaskSize: Invalid value: 120: must be 124": ("10.61.4.0/25:28", "fd62::/112:120"),
    "is invalid: [spec.ipv4.cidr: Invalid value: ": ("10.61.4.1/25:28", "fd62::1/112:120"),
    "10.96.0.0/24 has no block outside 10.96.0.0/12": ("10.96.0.0/24:28", ""),
}
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@contextmanager
def asked(api: Api) -> Iterator[tuple[str, ...]]:
    """Let an API ask a webhook on loopback; lend what the controller is told of that."""
    (port,) = free_ports(1)
    made = YAML(typ="safe").load(WEBHOOK)
    made["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{port}/validate"}
    name = made["metadata"]["name"]
    api.post(CONFIGURATIONS, made)
    try:
        yield QUICK, f"--webhook={name}", f"--webhook-port={port}", "--reserved=10.96.0.0/12"
    finally:
        api.delete(f"{CONFIGURATIONS}/{name}")


def refusal(ask: Callable[[str, Json], Json], path: str, body: Json) -> str:
    """Return what is said of what is not to be written; nothing if it could be."""
    try:
        ask(f"{path}?dryRun=All", body)
    except RefusedError as error:
        return str(error) if error.status == 422 else ""
    return ""


def test_what_the_schema_cannot_refuse_a_webhook_does_with_the_field(api: Api) -> None:
    with asked(api) as options, controlled(api, *options) as controller:
        bad = config("bad", "10.61.4.1/25:28")
        within(lambda: refusal(api.post, OURS, bad), controller)
        for words, ranges in REFUSED.items():
            assert words in refusal(api.post, OURS, config("bad", *ranges)), words
        bad["apiVersion"] = "baremetal.cluster.gke.io/v1alpha1"
        assert "spec.ipv4.cidr: " in refusal(api.post, VENDORS.format("default"), bad)
        api.config("good", "10.0.0.0/8:24", pool="kiosks")
        path = f"{OURS}/good"
        said = refusal(api.patch, path, {"spec": {"ipv4": {"perNodeMaskSize": 25}}})
        assert "spec.ipv4.perNodeMaskSize: Invalid value: 25: field is immutable" in said
        said = refusal(api.patch, path, {"spec": {"nodeSelector": {"matchLabels": {"pool": "others"}}}})
        assert "spec.nodeSelector.matchLabels: Invalid value: " in said


def test_without_a_webhook_status_says_it_and_with_one_a_bad_config_can_go_or_be_written_back(
    api: Api,
) -> None:
    def reason(name: str) -> object:
        conditions = (api.get(f"{OURS}/{name}") or {}).get("status", {}).get("conditions", [{}])
        return conditions[0].get("reason")

    with asked(api) as options:
        first = api.config("bad", "10.61.4.1/25:28")  # nobody answers
        api.config("good", "10.0.0.0/24:28")
        api.node("a")
        with controlled(api, QUICK) as controller:
            within(lambda: reason("bad") == "BadSpec" and "has host bits" in said(api, "bad"), controller)
            within(lambda: api.blocks()["a"], controller)
            within(lambda: "annotations" in (api.get(f"{OURS}/good") or {})["metadata"], controller)
            api.patch(f"{OURS}/good", {"spec": {"ipv4": {"perNodeMaskSize": 26}}})
            within(lambda: reason("good") == "SpecChanged", controller)
            assert controller.end() == 0
        with controlled(api, *options) as controller:
            within(lambda: refusal(api.post, OURS, first | {"metadata": {"name": "other"}}), controller)
            assert "immutable" in refusal(
                api.patch, f"{OURS}/good", {"spec": {"ipv4": {"perNodeMaskSize": 27}}}
            )
            api.patch(f"{OURS}/good", {"spec": {"ipv4": {"perNodeMaskSize": 28}}})
            within(lambda: reason("good") == "Giving", controller)
            api.patch(f"{OURS}/bad", {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/x"]}})
            api.delete(f"{OURS}/bad")
            api.patch(f"{OURS}/bad", {"metadata": {"finalizers": []}})
            assert not api.get(f"{OURS}/bad")


def said(api: Api, about: str) -> str:
    """Return what events say of an object."""
    listed = api.get("/api/v1/namespaces/default/events")
    assert listed is not None
    return " ".join(one["message"] for one in listed["items"] if one["involvedObject"]["name"] == about)


def reasons(api: Api) -> set[str]:
    """Return why there are events."""
    return {one["reason"] for one in (api.get("/api/v1/namespaces/default/events") or {})["items"]}


def test_hints_are_published_beside_slices_and_the_publisher_is_killed_under_change(api: Api) -> None:
    """A test of services that is here because an API server costs seconds."""
    services, slices = "/api/v1/namespaces/default/services", f"{SLICES}/endpointslices"
    api.post(services, hinted.service(auto="Auto"))
    for name, zones in (("n1", "a"), ("n2", "b")):
        document = hinted.node(name, zones)
        api.post(NODES, document)
        api.client.ask(Question("PATCH", f"{NODES}/{name}/status", {"status": document["status"]}, MERGE))
    api.post(slices, hinted.endpoint_slice("web-1", "aab"))
    chance = random.Random(cases.seed())

    def justified(zones: str) -> bool:
        found = api.get(f"{slices}/web-1")
        assert found is not None
        text = hinted.text_of(found)
        hints = "".join(one[0] for one in json.loads(text).values()) if text else ""
        return hints == (zones if zones.count("a") == zones.count("b") else "")

    with controlled(api, QUICK, program="hints") as publisher:
        within(lambda: "TopologyAwareHintsDisabled" in reasons(api), publisher)
        for number in range(HINTS_KILLS):
            for zones in ("aabb", "aaabb", "ab", "aab" if number % 2 else "aaabbb"):
                api.patch(f"{slices}/web-1", {"endpoints": hinted.endpoints(zones)})
                time.sleep(chance.random() * 0.02)  # so that it is killed in the midst of anything
            publisher.kill()
            publisher.start()
            within(lambda: justified(zones), publisher)  # noqa: B023 (it is waited for here)
        api.patch(f"{slices}/web-1", {"endpoints": hinted.endpoints("ba")})
        within(lambda: justified("ba"), publisher)
        assert reasons(api) == {"TopologyAwareHintsDisabled", "TopologyAwareHintsEnabled"}
        api.delete(f"{services}/web")
        within(lambda: justified(""), publisher)
        assert publisher.end() == 0


@pytest.mark.skipif(pythons.found(pythons.OLDEST) is None, reason="no Python 3.9")
def test_the_oldest_python_runs_it(api: Api) -> None:
    api.config("all", "10.0.0.0/26:30")
    api.node("a")
    controller = Controller(api, python=str(pythons.found(pythons.OLDEST)))
    try:
        within(lambda: api.blocks()["a"], controller)
    finally:
        controller.kill()


MASTER = """
- name: A master's part of site.yml, from where its API answers
  hosts: all
  gather_facts: false
  roles: [control_plane]
"""
# What leads into a cell, and its kubectl.
SHIMS = {"in-cell": 'shift\nexec "$@"', "kubectl": 'exec {kubectl} "$@" --kubeconfig={kubeconfig}'}


@pytest.mark.by_turns
@pytest.mark.parametrize("scenario", ["the same", "another"])
def test_a_playbook_has_the_controller_give_nodes_the_scenarios_blocks_and_then_changes_nothing(
    api: Api, tmp_path: Path, scenario: str
) -> None:
    hosts, playbook = a_master(api, tmp_path), tmp_path / "master.yml"
    playbook.write_text(MASTER)
    (cell,) = hosts["all"]["hosts"]["master-01"]["cells"]
    made = json.loads(cell["addresses"]["controller"])["items"]
    (deployment,) = [one for one in made if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    api.node("master-01")  # as kubeadm leaves it
    told = [one for one in container["args"] if one != "--in-cluster"]
    with controlled(api, *told, f"--webhook-port={free_ports(1)[0]}"):
        assert provision.run(playbook, hosts, lambda _: None).changed["master-01"]
        assert api.blocks() == {
            "master-01": ["172.16.0.0/24"],
            "worker-01": ["172.16.1.0/24"],
            "worker-02": ["172.16.32.0/27"],
            "worker-03": ["172.16.40.0/29"],
        }
        for workload in ("daemonsets/proxy", "deployments/hints"):
            assert api.get(f"/apis/apps/v1/namespaces/concorde-services/{workload}")
        asked = api.get("/api/v1/namespaces/kube-system/services/kube-dns")
        assert asked
        assert asked["spec"]["clusterIP"] == "10.96.0.10"
        if scenario == "the same":
            assert provision.run(playbook, hosts, lambda _: None).changed == {"master-01": 0}
            return
        cell["addresses"]["blocks"][1] = "worker-02 172.16.9.0/24"
        words = (
            r"cluster a have .*worker-02 172.16.32.0/27.* and not the scenario's .*worker-02 172.16.9.0/24,"
        )
        with pytest.raises(PlaybookError, match=words):
            provision.run(playbook, hosts, lambda _: None)


def a_master(api: Api, directory: Path) -> dict[str, Any]:
    """Return an inventory of one master, whose files are all in a directory, and whose API is another's."""
    # Not in the order of their names: the second comes after the first has its block.
    turned, served = "[worker-02, worker-01, worker-03]", "{web: {cluster: a, pods: [A-1]}}"
    scenario = load(SCENARIO, [f"clusters.a.workers={turned}", f"services={served}"])
    wanted = (addresses.IMAGE, services.IMAGE, names.IMAGE)
    images = tuple(Archive(one, "images/edge.tar", "sha256:1") for one in wanted)
    bundle = Bundle(directory, api.kubernetes.version, {"images/edge.tar": ""}, images)
    machines = {name: Machine(name, "127.0.0.1", "root") for name in scenario.nodes}
    hosts = variables.inventory(scenario, machines, bundle)
    master = hosts["all"]["hosts"]["master-01"] | {"ansible_connection": "local"}
    hosts["all"]["hosts"] = {"master-01": master}
    hosts["all"]["vars"] |= {place: str(directory) for place in ("home", "settings", "cells_directory")}
    (cell,) = master["cells"]
    cell["patches_directory"] = str(directory / "patches")
    (directory / "a").mkdir()
    (directory / "a" / "initialised").touch()
    (directory / "bin").mkdir()
    kubeconfig = directory / "admin.conf"
    kubeconfig.write_text(render_kubeconfig("a", api.url, api.authority.read_text(), api.admin.read_text()))
    for name, text in SHIMS.items():
        file, kubectl = directory / "bin" / name, api.kubernetes.path("kubectl")
        file.write_text(f"#!/bin/sh\n{text.format(kubectl=kubectl, kubeconfig=kubeconfig)}\n")
        file.chmod(0o755)
    return hosts


@pytest.fixture
def gated(api: Api) -> Iterator[Api]:
    """The API with the gate of both families."""
    api.stop()
    api.start("--feature-gates=IPv6DualStack=true", "--service-cluster-ip-range=10.96.0.0/16,fd96::/112")
    yield api
    api.stop()


def test_with_the_gate_a_node_has_both_families(gated: Api) -> None:
    gated.config("both", "10.62.0.0/16:24", "fd62::/112:120")
    gated.node("a")
    with asked(gated) as options, controlled(gated, *options) as controller:
        within(lambda: gated.blocks()["a"], controller)
        assert gated.blocks() == {"a": ["10.62.0.0/24", "fd62::/120"]}
        single = config("single", "10.61.4.0/25:28")
        within(lambda: "as both has" in refusal(gated.post, OURS, single), controller)
