"""Two gateways to one device, on real Kubernetes: who fails, who relays, what is closed, and promises.

The thesis' lab with another gateway, and the operator on neither of them.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edge.devices import kinds
from edge.devices.picture import CONNECTIONS, DEPLOYMENTS, SERVICES
from testbed.access.place import Place
from tests import cases, waiting
from tests.e2e.conftest import until
from tests.e2e.failing import PORT, TWO_GATEWAYS, WORKER, Failing, asked
from tests.e2e.lab import laboratory
from tests.thesis import CONNECTION, DEFINITION, changed

pytestmark = pytest.mark.by_turns
KILLS = cases.count("CONCORDE_OPERATOR_KILLS", 2, 30)
AWAY_SECONDS = cases.count("CONCORDE_API_AWAY_SECONDS", 3, 30)
SCAN = ["/usr/bin/python3", "-I", "-S", str(Path(__file__).with_name("scan.py"))]
DEVICE = "172.17.16.120"
HANDLERS = (("tcp", 443), ("tcp", PORT), ("udp", 5004))
SEGMENT = "172.17.16.1-172.17.16.130"
NODES = "172.16.16.11-172.16.16.14"
OF_THE_CLUSTER = (
    "172.17.16.1-172.17.16.2,10.244.1.1-10.244.1.9,10.244.2.1-10.244.2.9,10.244.3.1-10.244.3.9,"
    "10.10.0.1-10.10.0.9,10.96.0.1-10.96.0.20"
)
SOME_PORTS = "22,80,443,4443,5004,5201,6443,8080,8554,8555,10250,65535"
MANY_PORTS = "1-1024,5000-5300,8000-8600,65535"
ANSWERED = {"TCP": "TCP", "UDP": "UDP", "HTTP": "device01-01 /version"}
PORTS = {"TCP": PORT, "UDP": 5004, "HTTP": 443}
# The link into the segment has 100 Mbit/s, of which 98 may be promised.
KEPT = {
    "cniVersion": "1.0.0",
    "name": "plant",
    "type": "concorde",
    "bridge": "plant",
    "subnet": "10.11.0.0/24",
    "enforcement": "node",
    "uplink": "eth1",
    "capacity": "100M",
    "capabilities": {"io.kubernetes.cri.pod-annotations": True},
}


# And what an administrator says of it: whom a gateway lets through, as itself, which devices know.
LET_THROUGH = """
add rule inet segments proxies iifname "plant" oifname "eth1" accept
add rule inet segments proxies iifname "eth1" oifname "plant" ct state established,related accept
add chain inet segments postrouting { type nat hook postrouting priority srcnat; }
add rule inet segments postrouting iifname "plant" oifname "eth1" masquerade
"""


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Failing]:
    with laboratory(tmp_path_factory.mktemp("lab"), *TWO_GATEWAYS, worker=WORKER) as lab:
        yield Failing(lab)


def everything_is_answered(failing: Failing, directory: Path) -> None:
    """See that requests are answered that are begun from now on: some, whichever pod they go to."""
    with failing.asking(directory) as said:
        waiting.until(lambda: len(asked(said)) > 30)
    assert [one.wrong for one in asked(said) if one.wrong] == []


@pytest.mark.parametrize("mode", ["translate"])
def test_who_does_not_answer_is_in_no_service_and_the_other_one_answers(
    failing: Failing, tmp_path: Path, mode: str
) -> None:
    failing.connect(2, mode)

    def fails(happen: Callable[[Any], None]) -> None:
        failing.until_serving(2)
        pods = failing.serving()
        assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
        address = pods[0]["status"]["podIP"]
        try:
            happen(pods[0])
            until(lambda: address not in failing.endpoints(), failing.lab.words, every=0.2)
            everything_is_answered(failing, tmp_path)
        finally:
            failing.mend(pods[0])

    fails(failing.cut_off)
    fails(lambda pod: failing.cut_off(pod, "eth1"))
    fails(failing.delete)
    failing.until_serving(2)
    failing.kill(failing.serving()[0])  # whose kernel goes on
    everything_is_answered(failing, tmp_path)


def test_a_relay_leads_to_the_device_and_ends_with_its_clients(failing: Failing, tmp_path: Path) -> None:
    failing.connect(2, "relay")
    assert len({pod["spec"]["nodeName"] for pod in failing.serving()}) == 2
    lab = failing.lab
    for protocol, port in PORTS.items():
        assert lab.asked(protocol, port) == ANSWERED[protocol], lab.words()
    assert failing.clients() == 1
    no_pod_is_a_router(failing)
    pod = failing.serving()[0]
    failing.kill(pod)
    until(lambda: pod["status"]["podIP"] not in failing.endpoints(), lab.words, every=0.2)
    everything_is_answered(failing, tmp_path)
    until(lambda: failing.clients() == 0, every=1)
    failing.until_serving(2)


def scanned(place: Place, addresses: str, ports: str = SOME_PORTS, protocols: str = "tcp,udp") -> set[str]:
    """Return which ends answer, be it that they refuse, as PROTOCOL ADDRESS:PORT."""
    return set(place.run([*SCAN, protocols, addresses, ports]).json())


def opened(place: Place, *asked: str) -> set[str]:
    """Return which of these ends do not refuse."""
    return {one for one in scanned(place, *asked) if not one.endswith("refused")}


def test_nothing_but_declared_handlers_is_reached_and_nothing_from_the_device(failing: Failing) -> None:
    failing.connect(2, "translate")
    lab = failing.lab
    pods = failing.serving()
    proxies = [pod["status"]["podIP"] for pod in pods]
    for place in (lab.pod, lab.testbed.networks["A-2"]):  # which is on a gateway
        assert scanned(place, SEGMENT) == set()
        assert opened(place, ",".join(proxies)) == {one for proxy in proxies for one in declared(proxy)}
    # The last port is where a pod is asked whether its device answers: it is the first handler's.
    no_pod_is_a_router(failing)
    tcp = {one for one in declared(proxies[0]) if one.startswith("tcp")}
    assert opened(lab.pod, proxies[0], MANY_PORTS, "tcp") == tcp
    device = lab.testbed.provider.devices["device01-01"].node
    device.run(["ip", "route", "replace", "default", "via", "172.17.16.1"])
    assert scanned(device, f"{NODES},{OF_THE_CLUSTER}") == set()
    # Whoever could change a proxy pod's routes reaches its handlers, and as somebody else nothing.
    inside = failing.within(pods[0])
    leads_by_net1(inside)
    assert opened(inside, f"{SEGMENT},{NODES}") == {*declared(DEVICE)} - {f"tcp {DEVICE}:65535"}
    inside.run(["ip", "address", "add", "10.10.0.99/32", "dev", "net1"])
    leads_by_net1(inside, "src", "10.10.0.99")
    assert scanned(inside, f"{SEGMENT},{NODES}") == set()
    failing.delete(pods[0])


def no_pod_is_a_router(failing: Failing) -> None:
    """See that a pod which sends what is for the segment to a proxy pod beside it reaches nothing there."""
    other = failing.lab.testbed.networks["A-2"]
    (beside,) = [pod for pod in failing.serving() if pod["spec"]["nodeName"] == "kedge1"]
    through = ["via", beside["status"]["podIP"], "dev", "eth0", "onlink"]
    other.run(["ip", "route", "replace", "172.17.16.0/24", *through])
    assert scanned(other, SEGMENT) == set()
    other.run(["ip", "route", "delete", "172.17.16.0/24"])


def leads_by_net1(proxy: Place, *more: str) -> None:
    """Let all packets of a proxy pod to nodes, segments and the device leave by the segment's side."""
    for to in ("0.0.0.0/1", "128.0.0.0/1", f"{DEVICE}/32"):
        proxy.run(["ip", "route", "replace", to, "via", "10.10.0.1", *more])


def declared(address: str) -> list[str]:
    return [f"{protocol} {address}:{port}" for protocol, port in (*HANDLERS, ("tcp", 65535))]


def test_a_pod_is_refused_with_why_and_a_promise_is_kept_once_there_is_room(failing: Failing) -> None:
    failing.connect(1, "translate")
    lab = failing.lab
    lab.change(TCP=PORT)  # the device has one gateway now
    lab.testbed.nodes["kedge1"].run(["nft", "-f", "-"], stdin=LET_THROUGH)
    for config in (KEPT, {"cniVersion": "1.0.0", "name": "lacking", "type": "no-such-plugin"}):
        metadata = {"name": config["name"], "namespace": "default"}
        defined = {**DEFINITION, "metadata": metadata, "spec": {"config": json.dumps(config)}}
        assert lab.applied(defined) == ""

    def connect(name: str, network: str, **more: object) -> None:
        asks = changed(CONNECTION, networkName=network, **more)
        assert lab.applied({**asks, "metadata": {"name": name, "namespace": "default"}}) == ""

    def standing(name: str) -> tuple[str, str]:
        status = lab.one(CONNECTIONS, name).get("status") or {}
        ready = [one for one in status.get("conditions") or () if one["type"] == "Ready"]
        return (ready[0]["reason"], ready[0]["message"]) if ready else ("", "")

    promise = {"toDevice": "60M"}
    connect("third", "lacking")
    until(lambda: "no-such-plugin" in standing("third")[1], lambda: str(standing("third")), every=0.2)
    lab.client.run("delete", "connection", "third", "--wait=false")
    connect("first", "plant", guarantee=promise)
    until(lambda: standing("first")[0] == "Available", lambda: str(standing("first")), every=0.2)
    connect("second", "plant", guarantee=promise)
    until(lambda: standing("second")[0] == "Refused", lambda: str(standing("second")), every=0.2)
    assert "dop-first" in standing("second")[1]
    lab.client.run("delete", "connection", "first", "--wait=false")
    until(lambda: standing("second")[0] == "Available", lambda: str(standing("second")), every=0.2)
    lab.client.run("delete", "connection", "second", "--wait=false")


def test_all_is_as_asked_after_operators_were_killed_and_the_api_was_away(failing: Failing) -> None:
    failing.connect(1, "translate")
    lab = failing.lab
    chance = random.Random(cases.seed())
    ports = itertools.cycle(({"UDP": 5004, "HTTP": 443}, {"TCP": PORT}))

    def as_asked(asked: dict[str, int]) -> bool:
        served = {(one["protocol"], one["port"]) for one in lab.one(SERVICES)["spec"]["ports"]}
        wanted = {(kinds.transport(protocol), port) for protocol, port in asked.items()}
        return served == wanted and all(lab.asked(*one) == ANSWERED[one[0]] for one in asked.items())

    for _ in range(KILLS):
        asked = next(ports)
        lab.change(**asked)
        time.sleep(chance.random() * 0.5)
        until(failing.kill_leader, lab.words, every=0.2)
        until(partial(as_asked, asked), lab.words, every=0.2)
    lab.change(**next(ports))
    with failing.api_away():
        time.sleep(AWAY_SECONDS)  # of which nothing tells
    asked = next(ports)
    until(lambda: lab.takes(json.dumps(failing.device(asked))), lab.words, every=0.2)
    until(partial(as_asked, asked), lab.words, every=0.2)
    lab.client.run("delete", "connections", "--all", "--wait=false")

    def nothing_is_left() -> bool:
        return not failing.pods() and not lab.one(SERVICES) and not lab.one(DEPLOYMENTS)

    until(nothing_is_left, every=0.2)
