"""Services of two clusters on the same workers: all is answered, by each pod as often, and seen to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.measurement import environment
from testbed.access.components import Component
from testbed.assembly import assemble
from testbed.runtime import names
from testbed.scenario import load
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests import answered, cases
from tests.paths import ROOT
from tests.waiting import until

SERVICES = ROOT / "scenarios" / "examples" / "services.yaml"
A_SECOND = 250  # connections to each of many services
WORKERS = ("worker-01", "worker-02")
# Whether what a bridge forwards passes the node's tables; each network namespace has its own.
BRIDGED = "/proc/sys/net/bridge/bridge-nf-call-iptables"


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    asked = (
        "{name: web, from: A-1, to: web, rate: 300, connections: new}",
        "{name: data, from: B-1, to: data, rate: 300, connections: new}",
        "{name: by UDP, from: A-2, to: web, rate: 300, connections: new, protocol: udp}",
    )
    up = assemble(load(SERVICES, [f"requests=[{', '.join(asked)}]"], duration=1), "netns", "cni")
    up.up()
    try:
        yield up
    finally:
        up.down()


def be_bridged(testbed: Testbed, bridged: str) -> None:
    """Set whether bridged packets pass the tables, and wait until all proxies know."""
    # What pods of one node ask of each other comes from the node, if nothing would translate the answers.
    rules = 1 if bridged == "1" else 2
    for name in WORKERS:
        testbed.nodes[name].run(["tee", BRIDGED], stdin=bridged)
    until(lambda: {masqueraded(testbed, name, one) for name in WORKERS for one in "ab"} == {rules})


def masqueraded(testbed: Testbed, node: str, cluster: str) -> int:
    """Return for how much the rules of a cluster on a node say that it comes from the node."""
    listed = testbed.nodes[node].run(["nft", "list", "table", "ip", f"services-{cluster}"]).stdout
    return listed.count(" masquerade\n")


def test_both_clusters_services_are_answered_by_each_pod_as_often(testbed: Testbed, tmp_path: Path) -> None:
    assert testbed.check() == []
    found = answered.seen(testbed, testbed.scenario.requests, tmp_path / "first")
    if min(answered.plausibility([one]) for one in found.values()) <= 0.001:  # once in 300 times, of itself
        found = answered.seen(testbed, testbed.scenario.requests, tmp_path / "again")
    assert min(answered.plausibility([one]) for one in found.values()) > 0.001, found


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("bridged", ["1", "0"])
def test_so_they_are_whatever_bridged_packets_pass(testbed: Testbed, tmp_path: Path, bridged: str) -> None:
    """Also the pod that asks itself."""
    be_bridged(testbed, bridged)
    assert min(answered.seen(testbed, testbed.scenario.requests, tmp_path)["data"].values()) > 0


@pytest.mark.long(one_in=0, counted=True)
def test_ten_services_of_two_clusters_answer_every_connection(tmp_path: Path) -> None:
    """Five of each cluster, on the same workers, asked at once; no pod is asked more than others."""
    pods = {"a": ("A-2", "A-3", "A-4"), "b": ("B-1", "B-2", "B-3")}
    services = {f"s{number}": "ab"[number % 2] for number in range(10)}
    count = cases.count("CONCORDE_CONNECTIONS", 5_000, 100_000)
    served = ", ".join(
        f"{name}: {{cluster: {of}, pods: [{', '.join(pods[of])}]}}" for name, of in services.items()
    )

    def judge(factor: int) -> None:
        duration = max(1, factor * count // len(services) // A_SECOND)
        asked = ", ".join(
            f"{{from: {of.upper()}-1, to: {name}, rate: {A_SECOND}, connections: new, duration: {duration}}}"
            for name, of in services.items()
        )
        up = assemble(load(SERVICES, [f"services={{{served}}}", f"requests=[{asked}]"]), "netns", "cni")
        with up.running():
            found = answered.seen(up, up.scenario.requests, tmp_path / str(factor))
        assert len(found) == len(services)
        assert answered.plausibility(found.values()) > 0.01, found

    cases.with_more_samples(judge, (1, 2))


def endpoints(testbed: Testbed, node: str, cluster: str) -> set[str]:
    """Return where the kernel of a node leads what is sent to a cluster's services."""
    return testbed.service_endpoints()[cluster, node]


@pytest.mark.long(one_in=0)
def test_a_recording_says_where_services_are_and_who_serves_them(testbed: Testbed) -> None:
    programs = {
        f"services' proxy of cluster {one}": [f"master-0{at}", *WORKERS] for at, one in ((1, "a"), (2, "b"))
    }
    if not list(packages.missing(names.PACKAGE)):
        programs |= {f"names of cluster {one}": [*WORKERS] for one in "ab"}
    assert environment.describe(testbed)["services"] == {
        "addresses": {"web": "10.96.0.11:80", "data": "10.97.0.11:80"},
        "programs": programs,
    }


def test_a_pod_that_goes_is_no_endpoint_and_one_that_comes_is(testbed: Testbed) -> None:
    every = {testbed.pods[pod].address for pod in ("A-2", "A-3", "A-4")}
    gone = testbed.pods["A-4"].address
    assert endpoints(testbed, "worker-01", "a") == every
    testbed.remove("A-4")
    until(lambda: endpoints(testbed, "worker-01", "a") == every - {gone})
    testbed.add("A-4")
    every = {testbed.pods[pod].address for pod in ("A-2", "A-3", "A-4")}
    until(lambda: endpoints(testbed, "worker-01", "a") == every)
    others = {testbed.pods[pod].address for pod in ("B-1", "B-2", "B-3")}
    assert endpoints(testbed, "worker-01", "b") == others


def asked(testbed: Testbed, pod: str, name: str, *, by_tcp: bool = False) -> str:
    """Return what a pod is told of a name, as any program there is; nothing if there is no such name."""
    by = {"RES_OPTIONS": "use-vc"} if by_tcp else {}
    done = testbed.pods[pod].run(["getent", "hosts", name], env=by, check=False)
    assert done.status in (0, 2), done.stderr
    return " ".join(done.stdout.split())


@pytest.fixture
def named(testbed: Testbed) -> Testbed:
    """A testbed whose pods have names."""
    if lacking := list(packages.missing(names.PACKAGE)):
        pytest.skip(lacking[0])
    return testbed


def test_pods_find_services_of_their_cluster_by_name(named: Testbed) -> None:
    web, data = "web.default.svc.cluster.local", "data.default.svc.cluster.local"
    for name in ("web", "WEB", "web.default", "web.default.svc", web, f"{web}."):
        assert asked(named, "A-1", name).lower() == f"10.96.0.11 {web}"
    assert asked(named, "A-3", "web", by_tcp=True) == f"10.96.0.11 {web}"  # on another worker
    assert asked(named, "B-1", "data") == f"10.97.0.11 {data}"
    # On one worker, one name of two clusters.
    own = "kube-dns.kube-system"
    assert asked(named, "A-2", own) == f"10.96.0.10 {own}.svc.cluster.local"
    assert asked(named, "B-2", own) == f"10.97.0.10 {own}.svc.cluster.local"
    for pod, name in (("A-1", "data"), ("B-1", web), ("A-1", "worker-01"), ("A-1", "example.org")):
        assert asked(named, pod, name) == ""


# A question with this number begins as VXLAN may; prints the number of the answer.
QUESTION = """
import socket, sys
name = b"".join(bytes([len(part)]) + part for part in sys.argv[3].encode().split(b"."))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(20)
    datagrams.connect((sys.argv[1], 53))
    datagrams.send(bytes.fromhex(sys.argv[2] + "01000001000000000000") + name + bytes.fromhex("0000010001"))
    print(datagrams.recv(999)[:2].hex())
"""


def test_questions_of_every_number_are_answered(named: Testbed) -> None:
    ask = ["python3", "-c", QUESTION, names.address(named.addressing, "a")]
    assert named.pods["A-1"].run([*ask, "0848", "web.default.svc.cluster.local"]).stdout == "0848\n"


def test_a_service_that_goes_has_no_name_any_more(named: Testbed) -> None:
    node, file = named.nodes["worker-01"], "/run/services/a/services.json"
    there = node.run(["cat", file]).stdout

    def write(text: str) -> None:
        node.run(["sh", "-c", f"cat >{file}.new && mv {file}.new {file}"], stdin=text)

    left = [one for one in json.loads(there)["items"] if one["metadata"]["name"] != "web"]
    write(json.dumps({"items": left}))
    until(lambda: asked(named, "A-1", "web") == "")
    assert asked(named, "A-3", "web") != ""  # of which its own node has heard nothing
    write(there)
    until(lambda: asked(named, "A-1", "web").startswith("10.96.0.11 "))


def test_a_proxy_that_ended_and_rules_that_went_are_faults(testbed: Testbed) -> None:
    proxy = program(testbed, "services' proxy of cluster a", "worker-01")
    proxy.kill()
    proxy.place.run(["nft", "delete", "table", "ip", "services-a"])
    ended = "services' proxy of cluster a on worker-01 ended with 137"
    assert any(ended in fault for fault in testbed.check())
    proxy.start()
    until(lambda: testbed.check() == [])


@pytest.mark.long(one_in=0)
def test_names_that_nobody_says_any_more_are_a_fault(named: Testbed) -> None:
    server = program(named, "names of cluster b", "worker-02")
    server.kill()
    assert "names of cluster b on worker-02 ended with 137" in "".join(named.check())
    server.start()
    until(lambda: named.check() == [] and asked(named, "B-1", "data") != "")


def program(testbed: Testbed, name: str, node: str) -> Component:
    """Return one of those that serve; whoever kills it starts it anew, for the testbed is others', too."""
    (found,) = [one for one in testbed.serving if (one.name, one.place.name) == (name, node)]
    return found
