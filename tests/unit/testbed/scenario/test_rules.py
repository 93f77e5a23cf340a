"""How the fields of a scenario must agree, and that no file takes long to refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench import generators  # noqa: F401 - they have a say in what a scenario may ask for
from testbed.scenario import ScenarioError, load
from testbed.scenario.faults import MOST_SHOWN
from testbed.scenario.reading import parse
from tests import effort
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"
STATIONS = ROOT / "scenarios" / "examples" / "two-stations.yaml"


ASK = "from: A-3, to: A-4, rate: 10"
FAULTS = {
    "flows=[]": "flows: there is nothing to measure: write flows, requests, or both",
    "requests=[{from: A-3, to: B-2, rate: 1}]": "requests[0].to: 'B-2' is in cluster 'b', 'A-3' in 'a'",
    "requests=[{from: container-1, to: A-4, rate: 1}]": "requests[0].from: no pod 'container-1'",
    "requests=[{from: A-3, to: A-3, rate: 1}]": "requests[0].to: 'A-3' would send to itself",
    "requests=[{from: A-3, to: A-4}]": "requests[0].rate: this field is required",
    "requests=[{from: A-3, to: A-4, rate: 0}]": "requests[0].rate: input should be greater than",
    "requests=[{from: A-3, to: A-4, rate: .inf}]": "requests[0].rate: input should be",
    f"requests=[{{{ASK}, size: 15}}]": "requests[0].size: input should be greater than or equal to 16",
    f"requests=[{{{ASK}, answer: 65537}}]": "requests[0].answer: input should be less than or equal to 65536",
    f"requests=[{{{ASK}, protocol: udp, size: 1423}}]": "requests[0].size: 1423 bytes do not fit",
    f"requests=[{{{ASK}, protocol: udp, answer: 1423}}]": "requests[0].answer: 1423 bytes do",
    f"requests=[{{{ASK}, protocol: icmp}}]": "requests[0].protocol: input should be 'tcp' or 'udp'",
    f"requests=[{{{ASK}, connections: some}}]": "requests[0].connections: input should be 'new' or 'kept'",
    f"requests=[{{{ASK}, latency: 0}}]": "requests[0].latency: input should be greater than 0",
    f"requests=[{{{ASK}, lost: 1}}]": "requests[0].lost: input should be less than 1",
    f"requests=[{{{ASK}, generator: iperf3}}]": "requests[0].generator: no generator 'iperf3' of requests",
    f"requests=[{{{ASK}, parallel: 2}}]": "requests[0].parallel: no such field",
    f"requests=[{{{ASK}, name: disturbance}}]": "requests[0].name: 'disturbance' is taken by disturbances[0]",
    f"requests=[{{{ASK}}}, {{{ASK}}}]": "requests[1].name: 'A-3 -> A-4' is taken by requests[0]",
    "requests=[{from: A-3, to: A-4, rate: 20000, duration: 51}]": "requests[0].rate: 1,020,000 exchanges",
    "requests=[{from: A-1, to: A-4, rate: 10, name: ask}]": "requests[0].from: 'A-1' sends flows[0]",
    "flows[0].generator=requests": "flows[0].generator: no generator 'requests' (generators: iperf3",
    "flows[2].to=A-9": "flows[2].to: no pod 'A-9' (pods: A-1, A-2, A-3, A-4, B-1, B-2)",
    "flows[0].to=A-1": "flows[0].to: 'A-1' would send to itself",
    "flows[0].to=B-2": "flows[0].to: 'B-2' is in cluster 'b', 'A-1' in 'a'",
    "flows[0].from=A-2": "flows[1].from: 'A-2' already sends flows[0] then",
    "flows[0].duration=2.5": "flows[0].duration: input should be a valid integer",
    "flows[0].start=-1": "flows[0].start: input should be greater than or equal to 0",
    "flows[0].start=.nan": "flows[0].start: input should be",
    "flows[0].protocol=sctp": "flows[0].protocol: input should be 'tcp' or 'udp'",
    "flows[0].protocol=udp": "flows[0].rate: UDP requires a rate",
    "flows[1].name='(1) A-1 -> A-4'": "flows[1].name: '(1) A-1 -> A-4' is taken by flows[0]",
    "flows[0].color=red": "flows[0].color: no such field",
    "disturbances[0].start=9": "disturbances[0]: 9 s to 14 s is outside the run (0 s to 10 s)",
    "disturbances[0].to=nobody": "disturbances[0].to: no pod or container 'nobody'",
    "disturbances[0].to=A-1": "disturbances[0].to: a pod and a container have no network in common",
    "pods.A-1.node=master-01": "pods.A-1.node: 'master-01' is not a worker of cluster 'a' (workers: ",
    "pods.A-1.node=elsewhere": "pods.A-1.node: no node 'elsewhere' (nodes: master-01",
    "pods.A-1.cluster=c": "pods.A-1.cluster: no cluster 'c' (clusters: a, b)",
    "pods.A-1.guarantee=fast": "pods.A-1.guarantee: 'fast' is not a rate",
    "pods.A-1.guarantee=0": "pods.A-1.guarantee: 0 is not a positive rate",
    "pods.A-1.guarantee=999": "pods.A-1.guarantee: 999 is not between 1k and 1T bits per second",
    "pods.A-1.ceiling=2T": "pods.A-1.ceiling: 2T is not between 1k and 1T bits per second",
    "pods.A-1.ceiling=1M": "pods.A-1.ceiling: a ceiling below the guarantee",
    "pods.A-1={cluster: a, node: worker-01, answers: 2M, ceiling: 1M}": (
        "pods.A-1.ceiling: a ceiling below the guarantee and answers"
    ),
    "pods.A-1.answers=999": "pods.A-1.answers: 999 is not between 1k and 1T bits per second",
    "pods.A-1.ingress=999": "pods.A-1.ingress: 999 is not between 1k and 1T bits per second",
    "pods.A-1.ingress=much": "pods.A-1.ingress: 'much' is not a rate",
    "pods.A-1.ingress=5M": "pods.A-1.ingress: network pod promises nothing of what a pod receives (those that"
    " do: fabric)",
    "pods.a-1={cluster: a, node: worker-01}": "pods.a-1: the name is taken by pods.A-1",
    "pods.A_1={cluster: a, node: worker-01}": "pods.A_1: string should match pattern",
    "containers.C={node: worker-09}": "containers.C.node: no node 'worker-09'",
    "clusters.a.master=nobody": "clusters.a.master: no node 'nobody'",
    "clusters.a.workers=[worker-01, worker-01]": "clusters.a.workers[1]: 'worker-01' is named twice",
    "clusters.b.flannel.vni=1": "clusters.b.flannel.vni: cluster 'a' shares a node and already has VNI 1",
    "clusters.b.pod_cidr=172.16.128.0/17": "clusters.b.pod_cidr: 172.16.128.0/17 overlaps clusters.a",
    "clusters.b.pod_cidr=172.17.0.1/16": "clusters.b.pod_cidr: has host bits set: 172.17.0.0/16 is meant",
    "clusters.b.pod_cidr=fd00::/64": "clusters.b.pod_cidr: input is not a valid IPv4 network",
    "clusters.b.pod_cidr=": "clusters.b.pod_cidr: this field is required, or pod_cidrs",
    "clusters.b.pod_cidr=172.17.0.0/24": "clusters.b.node_prefix: a node's /24 does not fit",
    "clusters.b.pod_cidr=172.17.0.0/23": "clusters.b.pod_cidr: 172.17.0.0/23 has no /24 for each of 3 nodes",
    "clusters.a.node_prefix=30": "clusters.a.node_prefix: a /30 has room for",
    "container_cidr=172.17.0.0/16": "container_cidr: 172.17.0.0/16 overlaps clusters.b.pod_cidr",
    "clusters.b.service_cidr=172.16.0.0/20": (
        "clusters.b.service_cidr: 172.16.0.0/20 overlaps clusters.a.pod_cidr 172.16.0.0/16"
    ),
    "clusters.b.service_cidr=172.17.0.0/20": (
        "clusters.b.service_cidr: 172.17.0.0/20 overlaps clusters.b.pod_cidr 172.17.0.0/16"
    ),
    "clusters.b.service_cidr=192.168.56.0/26": (
        "clusters.b.service_cidr: 192.168.56.0/26 overlaps underlay.cidr 192.168.56.0/24"
    ),
    "clusters.b.service_cidr=10.0.0.0/11": (
        "clusters.b.service_cidr: 10.0.0.0/11 is no range for services, which must be from /12 to /29"
    ),
    "clusters.b.service_cidr=10.0.0.0/30": (
        "clusters.b.service_cidr: 10.0.0.0/30 is no range for services, which must be from /12 to /29"
    ),
    "clusters.b.service_cidr=10.0.0.1/20": "clusters.b.service_cidr: has host bits set: 10.0.0.0/20 is meant",
    "underlay.cidr=192.168.56.0/30": "underlay.cidr: 192.168.56.0/30 cannot hold 4 nodes",
    "underlay.mtu=100": "underlay.mtu: input should be greater than or equal to 576",
    "measurement.interval=0.01": "measurement.interval: input should be greater than or equal to 0.1",
    "measurement.warm_up=9.8": "flows[0].duration: 10 s leaves fewer than five samples after the warm-up",
    "nodes.worker-01=3": "nodes.worker-01: input should be a mapping, as in {name: value}",
    "enforcement=magic": "enforcement: input should be",
    "enforcement=node": "underlay.rate: enforcement node shares out the nodes' links",
    "nodes={}": "nodes: ",
    "nodes.master-01={address: 192.168.56.4}": "nodes.master-02.address: 'master-01' has an address, so",
    "nodes.master-01={address: 10.0.0.4}": "nodes.master-01.address: 10.0.0.4 is not in underlay.cidr",
    "nodes.master-01={uplink: eth0 up}": "nodes.master-01.uplink: string should match pattern",
    'title="a\\eb"': "title: must not contain U+001B, which is not printable",
    'flows[0].name="\\u202E"': "flows[0].name: must not contain U+202E, which is not printable",
    "container_cidr=5": "container_cidr: must be a string such as 172.16.0.0, not the number 5",
    f"underlay.rate={'9' * 100}": "underlay.rate: '99999",
    "underlay.rate=1e99": "underlay.rate: 1e+99 is more than any link carries",
    "underlay.rate=2T": "underlay.rate: 2T is more than 1T bits per second",
    "disturbances[0].rate=1001G": "disturbances[0].rate: 1001G is more than 1T bits per second",
    "name=no spaces": "name: string should match pattern",
}


ALL = "{name: all, cidr: 172.17.0.0/16, mask: 24}"
BOTH = "name: all, cidr: 172.17.0.0/16, mask: 24, ipv6"
# What cluster b says of its pods, and what is wrong with it.
POD_CIDRS = {
    f"pod_cidr: 172.17.0.0/16, pod_cidrs: [{ALL}]": "pod_cidr: pod_cidrs says where the pods are: keep one",
    f"node_prefix: 24, pod_cidrs: [{ALL}]": "node_prefix: each of pod_cidrs has its mask: remove this",
    "pod_cidrs: []": "pod_cidrs: list should have at least 1 item",
    f"pod_cidrs: [{', '.join([ALL] * 101)}]": "pod_cidrs: list should have at most 100 items",
    f"pod_cidrs: [{ALL}, {{name: All, cidr: 172.19.0.0/16, mask: 24}}]": (
        "pod_cidrs[1].name: the name is taken by clusters.b.pod_cidrs[0]"
    ),
    "pod_cidrs: [{name: all, cidr: 172.17.0.0/16}]": "pod_cidrs[0].mask: this field is required",
    "pod_cidrs: [{name: all, cidr: 172.17.0.0/16, mask: 15}]": (
        "pod_cidrs[0].mask: must be an integer from 16, the range's own, to 30"
    ),
    "pod_cidrs: [{name: all, cidr: 172.17.0.0/16, mask: 31}]": (
        "pod_cidrs[0].mask: must be an integer from 16, the range's own, to 30"
    ),
    "pod_cidrs: [{name: all, cidr: 172.17.0.1/16, mask: 24}]": (
        "pod_cidrs[0].cidr: has host bits set: 172.17.0.0/16 is meant"
    ),
    f"pod_cidrs: [{{{BOTH}: {{cidr: 'fd00::1/112', mask: 120}}}}]": (
        "pod_cidrs[0].ipv6.cidr: has host bits set: fd00::/112 is meant"
    ),
    f"pod_cidrs: [{{{BOTH}: {{cidr: 'fd00::/112', mask: 127}}}}]": (
        "pod_cidrs[0].ipv6.mask: must be an integer from 112, the range's own, to 126"
    ),
    f"pod_cidrs: [{{{BOTH}: {{cidr: 'fd00::/100', mask: 120}}}}]": (
        "pod_cidrs[0].ipv6.mask: must be at most 116: 16 more than the range's own"
    ),
    f"pod_cidrs: [{{{BOTH}: {{cidr: 'fd00::/112', mask: 121}}}}]": (
        "pod_cidrs[0].ipv6.mask: must be 120: both families have blocks of equal size"
    ),
    f"pod_cidrs: [{{{BOTH}: {{cidr: 'fd00::/112', mask: 120}}}}, "
    "{name: four, cidr: 172.17.0.0/20, mask: 24}]": (
        "pod_cidrs[1].ipv6: must have IPv6 too, as all has, which comes first"
    ),
    f"pod_cidrs: [{{{BOTH}: {{cidr: 'fd00::/112', mask: 120}}}}, "
    "{name: more, cidr: 172.17.0.0/20, mask: 26, ipv6: {cidr: 'fd01::/112', mask: 122}}]": (
        "pod_cidrs[1].cidr: must have IPv4 172.17.0.0/16 by /24, as all has, which comes first"
    ),
    "pod_cidrs: [{name: all, cidr: 192.168.56.128/25, mask: 28}]": (
        "pod_cidrs[0].cidr: 192.168.56.128/25 overlaps underlay.cidr 192.168.56.0/24"
    ),
    "pod_cidrs: [{name: all, cidr: 172.16.128.0/17, mask: 24}]": (
        "pod_cidrs[0].cidr: 172.16.128.0/17 overlaps clusters.a.pod_cidr 172.16.0.0/16"
    ),
    "pod_cidrs: [{name: all, cidr: 172.18.0.0/16, mask: 24}]": (
        "container_cidr: 172.18.0.0/16 overlaps clusters.b.pod_cidrs[0].cidr 172.18.0.0/16"
    ),
    "pod_cidrs: [{name: all, cidr: 172.17.0.0/23, mask: 24}]": (
        "pod_cidrs: 1 of 3 nodes get no block; 'worker-02': all has no block left, 2 of 2 given: "
        "make one with another range; or let it wait for one: nodes.worker-02.expect: unassigned"
    ),
    "pod_cidrs: [{name: all, cidr: 172.17.0.0/16, mask: 24, nodes: {size: small}}]": (
        "pod_cidrs: 3 of 3 nodes get no block; 'master-02': all is for nodes with size=small: label the node"
    ),
    "pod_cidrs: [{name: all, cidr: 172.17.0.0/16, mask: 30}]": (
        "pod_cidrs[0].mask: a /30 has room for 0 pods; 'worker-01' is to run 1"
    ),
    "pod_cidrs: [{name: all, cidr: 172.17.0.0/16, mask: 24, nodes: {si ze: small}}]": (
        "pod_cidrs[0].nodes.si ze: string should match pattern"
    ),
    f"pod_cidrs: [{ALL}, {{name: far, cidr: 172.20.0.0/24, mask: 24}}]": (
        "pod_cidrs: flannel's network, the smallest around 172.17.0.0/16 and 172.20.0.0/24, is 172.16.0.0/13 "
        "and overlaps container_cidr 172.18.0.0/16; choose ranges closer together, or backend bgp"
    ),
}


@pytest.mark.parametrize(("said", "message"), POD_CIDRS.items(), ids=list(POD_CIDRS.values()))
def test_a_fault_of_pods_addresses_is_named_with_its_path(said: str, message: str) -> None:
    master = "master: master-02, workers: [worker-01, worker-02], flannel: {vni: 2}"
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [f"clusters.b={{{master}, {said}}}"])
    where = "" if message.startswith("container") else "clusters.b."
    assert f"{CONTMEC}: {where}{message}" in str(caught.value)


WAITING = {
    "nodes.worker-02={expect: unassigned}": (
        "pods.B-2.node: 'worker-02' gets no block of cluster 'b', and runs no pods without one"
    ),
    "nodes.worker-01={expect: unassigned}": (
        "nodes.worker-01.expect: it gets 172.16.1.0/24 of cluster 'a' and 172.17.1.0/24 of cluster 'b': "
    ),
    "nodes.spare={expect: unassigned}": (
        "nodes.spare.expect: it gets nothing, as a node of no cluster: remove this"
    ),
    "nodes.worker-02={expect: nothing}": "nodes.worker-02.expect: input should be 'unassigned'",
    "clusters.b.bgp={route_reflector: worker-02}": "clusters.b.pod_cidrs: 1 of 3 nodes get no block",
}


@pytest.mark.parametrize(("override", "message"), WAITING.items(), ids=list(WAITING))
def test_who_waits_for_a_block_gets_none_and_runs_nothing(override: str, message: str) -> None:
    short = "pod_cidrs: [{name: all, cidr: 172.17.0.0/23, mask: 24}]"
    workers = "master: master-02, workers: [worker-01, worker-02], flannel: {vni: 2}"
    kind = "backend: bgp" if "bgp" in override else "backend: vxlan"
    waits = ["nodes.worker-02={expect: unassigned}"] if "bgp" in override else []
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [f"clusters.b={{{workers}, {kind}, {short}}}", *waits, override])
    assert f"{CONTMEC}: {message}" in str(caught.value)
    if "bgp" in override:
        assert "or let it wait" not in str(caught.value)


def test_labels_that_a_node_has_by_itself_are_not_said() -> None:
    for label, value in (("kubernetes.io/hostname", "worker-03"), ("topology.kubernetes.io/zone", "south")):
        with pytest.raises(ScenarioError) as caught:
            load(STATIONS, [f"nodes.worker-03.labels={{{label}: x}}"])
        words = f"every node has this label by itself: {value}"
        assert f"nodes.worker-03.labels.{label}: {words}" in str(caught.value)


@pytest.mark.parametrize(("override", "message"), FAULTS.items(), ids=list(FAULTS))
def test_a_fault_is_named_with_its_path(override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [override])
    assert str(caught.value).startswith(f"{CONTMEC}: ")
    assert f"{CONTMEC}: {message}" in str(caught.value)


ZONE_FAULTS = {
    "nodes.worker-03.zone=west": "nodes.worker-03.zone: no zone 'west' (zones: north, south)",
    "nodes.worker-02={}": "nodes.worker-02.zone: this field is required when there are zones (zones: north,",
    "zones.west={}": "zones.west: no node is in it; set zone: west on one, or remove this zone",
    "zones={}": "nodes.master-01.zone: no zone 'north' (zones: none)",
    "zones.south.delay=5": "zones.south.delay: 5 s is too long: it is one way, in seconds, at most 1; five",
    "zones.south.delay=-1": "zones.south.delay: input should be greater than or equal to 0",
    "zones.south.jitter=0.01": "zones.south.jitter: 0.01 s is more than the delay of 0.0025 s",
    "zones.south={loss: 1}": "zones.south.loss: input should be less than 1",
    "zones.south={reorder: 0.1}": "zones.south.reorder: only delayed packets can be reordered",
    "zones.south.rate=2T": "zones.south.rate: 2T is more than 1T bits per second",
    "zones.south.color=red": "zones.south.color: no such field",
    "nodes.worker-03.rate=2T": "nodes.worker-03.rate: 2T is more than 1T bits per second",
    "underlay.rate=": "nodes.master-01.rate: enforcement node shares out the nodes' links",
}


@pytest.mark.parametrize(("override", "message"), ZONE_FAULTS.items(), ids=list(ZONE_FAULTS))
def test_a_fault_of_zones_and_links_is_named_with_its_path(override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(STATIONS, [override])
    assert str(caught.value).startswith(f"{STATIONS}: {message}")


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, ["flows[0].to=A-9", "pods.A-2.node=nowhere"])
    assert len(str(caught.value).splitlines()) == 2


def test_a_scale_that_leaves_no_promise_worth_the_name() -> None:
    with pytest.raises(ScenarioError, match=r"pods.A-1.guarantee: 100 is not between 1k and 1T"):
        load(CONTMEC, scale=1e-7)


def test_every_network_that_overlaps_is_named() -> None:
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, ["underlay.cidr=172.16.0.0/12", "container_cidr=172.17.3.0/24"])
    said = str(caught.value)
    assert "clusters.a.pod_cidr: 172.16.0.0/16 overlaps underlay.cidr 172.16.0.0/12" in said
    assert "clusters.b.pod_cidr: 172.17.0.0/16 overlaps underlay.cidr 172.16.0.0/12" in said
    assert "container_cidr: 172.17.3.0/24 overlaps clusters.b.pod_cidr 172.17.0.0/16" in said


def test_flows_of_one_guarantee_are_found_in_any_order() -> None:
    flows = [
        f"{{from: A-1, to: A-3, {span}}}" for span in ("start: 8", "duration: 9", "start: 3, duration: 5")
    ]
    with pytest.raises(ScenarioError) as caught:
        load(CONTMEC, [f"flows=[{', '.join(flows)}]"])
    at = [line.partition(": ")[2] for line in str(caught.value).splitlines() if "already sends" in line]
    assert [(line[:8], line.split("sends ")[1][:8]) for line in at] == [
        ("flows[1]", "flows[0]"),
        ("flows[2]", "flows[1]"),
    ]


def aliases(levels: int) -> str:
    return "a0: &a0 [1, 1, 1, 1]\n" + "".join(
        f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, levels)
    )


def merges(levels: int) -> str:
    return "a0: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n}\n  k{n}: 1\n  <<: [{','.join([f'*a{n - 1}'] * 50)}]\n" for n in range(1, levels)
    )


def crowd(count: int, **changes: str) -> str:
    """A scenario of many pods, flows and clusters, all of them at fault if ``changes`` say so."""
    pod = changes.get("pod", "{cluster: a, node: left, guarantee: 1M}")
    flow = changes.get("flow", "{from: P%d, to: Q}")
    clusters = int(changes.get("clusters", "0"))
    return "".join(
        [
            "name: crowd\nnodes: {master: , left: , right: }\nclusters:\n",
            "  a: {master: master, workers: [left, right], pod_cidr: 10.0.0.0/8, node_prefix: 16}\n",
            *(
                f"  c{n}: {{master: master, workers: [left], pod_cidr: 10.0.0.0/8}}\n"
                for n in range(clusters)
            ),
            "pods:\n  Q: {cluster: a, node: right}\n",
            *(f"  P{n}: {pod}\n" for n in range(count)),
            "flows:\n",
            *(f"  - {flow.replace('%d', str(n))}\n" for n in range(count)),
        ]
    )


# What makes so much of something, how much of it is few, and the most that is tried.
HOSTILE: dict[str, tuple[Callable[[int], str], int, int]] = {
    "aliases of aliases": (aliases, 10, 20),
    "merges of merges": (merges, 100, 300),
    "one within the other": ("[".__mul__, 1000, 4_000_000),
    "one within the other, as lists": ("- ".__mul__, 1000, 2_000_000),
    "directives": (lambda n: "".join(f"%TAG !{at}! x\n" for at in range(n)), 1000, 200_000),
    "nothing but lines": ("\n".__mul__, 1000, 4_000_000),
    "more than fits": ("#".__mul__, 5_000_000, 5_000_000),
    "values": (lambda n: "[" + "a," * n + "]", 5000, 2_000_000),
    "a long key": (lambda n: "x" * n + ": 1", 1000, 4_000_000),
    "flows that are none": (lambda n: crowd(0).replace("flows:", f"flows: [{'1,' * n}]"), 5000, 140_000),
    "names there are not": (
        lambda n: crowd(n, pod="{cluster: b, node: none}", flow="{from: X%d, to: Y}"), 500, 10_000,
    ),
    "clusters": (lambda n: crowd(1, clusters=str(n)), 500, 10_000),
    "flows of one pod": (lambda n: crowd(n, flow="{from: P0, to: Q, name: x%d}"), 500, 10_000),
}  # fmt: skip


def refused(file: Path, text: str) -> str:
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        load(file)
    return str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.long(one_in=4)
def test_no_file_takes_long_to_refuse(name: str, tmp_path: Path) -> None:
    """Twice as much of it takes twice the work; the most there may be is refused in few words."""
    file = tmp_path / "x.yaml"
    made, few, most = HOSTILE[name]
    effort.assert_in_proportion(lambda count: refused(file, made(count)), few)
    words = refused(file, made(most))
    assert all(line.startswith(f"{file}: ") for line in words.splitlines())
    assert len(words) < 50_000


def test_of_many_faults_only_those_that_are_shown_are_put_into_words(tmp_path: Path) -> None:
    file, text = tmp_path / "x.yaml", HOSTILE["flows that are none"][0](5000)
    assert refused(file, text).endswith(f"\n{file}: and {5000 - MOST_SHOWN} more")
    read = effort.lines(lambda: parse(text))
    assert effort.lines(lambda: refused(file, text)) < read + 10_000  # to say what each is takes fourteen


@pytest.mark.long(one_in=0)
def test_ten_thousand_flows_are_read(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"

    def read(count: int) -> int:
        file.write_text(crowd(count))
        return len(load(file).flows)

    effort.assert_in_proportion(read, 500)
    assert read(10_000) == 10_000
