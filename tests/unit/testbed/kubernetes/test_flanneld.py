"""What the real flanneld is given, and how it is known that it has done what the testbed would have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from testbed.access.components import ComponentError
from testbed.access.place import Result
from testbed.kubernetes import flanneld
from testbed.kubernetes.control_plane import ControlPlane, Subject
from testbed.kubernetes.flanneld import Flannel
from testbed.overlays import daemons
from testbed.overlays.backends.vxlan import Overlay
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.doubles import Asked, RecordingNode, in_batch, said, shown
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
PORTS = ["clusters.a.flannel.port=4789", "clusters.b.flannel.port=8473"]


@pytest.fixture
def contmec() -> Addressing:
    return Addressing(load(SCENARIOS / "contmec.yaml", PORTS))


@pytest.fixture
def a(contmec: Addressing) -> Overlay:
    return Overlay(contmec, "a")


def test_each_cluster_has_its_own_network_vni_and_port(contmec: Addressing) -> None:
    assert [json.loads(flanneld.render_network(contmec, cluster)) for cluster in ("a", "b")] == [
        {"Network": "172.16.0.0/16", "Backend": {"Type": "vxlan", "VNI": 1, "Port": 4789}},
        {"Network": "172.17.0.0/16", "Backend": {"Type": "vxlan", "VNI": 2, "Port": 8473}},
    ]


def test_flannel_has_the_clusters_backend() -> None:
    own = ["clusters.a.backend=host-gw", "clusters.b.backend=ipip"]
    addressing = Addressing(load(SCENARIOS / "contmec.yaml", own))
    told = [json.loads(flanneld.render_network(addressing, cluster))["Backend"] for cluster in ("a", "b")]
    assert told == [{"Type": "host-gw"}, {"Type": "ipip"}]
    assert list(flanneld.refused(addressing)) == []


def test_two_on_one_worker_share_no_file(contmec: Addressing) -> None:
    both = [flanneld.arguments(contmec, cluster, "worker-01") for cluster in ("a", "b")]
    files = [{word for word in words if "-file=" in word or "-path=" in word} for words in both]
    assert files[0] == {
        "--kubeconfig-file=/run/kubernetes/a/flanneld.conf",
        "--net-config-path=/run/kubernetes/a/net-conf.json",
        "--subnet-file=/run/flannel/subnet-a.env",
    }
    assert not files[0] & files[1]


def test_it_uses_the_underlay_and_writes_no_iptables_rules(contmec: Addressing) -> None:
    arguments = flanneld.arguments(contmec, "b", "worker-02")
    assert {"--iface=eth0", "--public-ip=192.168.56.14"} <= set(arguments)
    assert {"--ip-masq=false", "--iptables-forward-rules=false"} <= set(arguments)


def test_it_may_do_nothing_but_look_at_nodes_and_tell_its_own_address(contmec: Addressing) -> None:
    role, binding, _ = flanneld.render_manifests(contmec, "a")
    assert {(*rule["resources"], *rule["verbs"]) for rule in role["rules"]} == {
        ("nodes", "get", "list", "watch"),
        ("nodes/status", "patch"),
    }
    assert binding["subjects"] == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": flanneld.USER}
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_the_master_is_a_node_with_its_subnet_and_for_no_pods(contmec: Addressing) -> None:
    node = flanneld.render_manifests(contmec, "b")[-1]
    assert node["metadata"]["name"] == "master-02"
    assert node["spec"] == {
        "podCIDR": "172.17.0.0/24",
        "podCIDRs": ["172.17.0.0/24"],
        "unschedulable": True,
    }


MACS = {"master-01": "02:00:00:00:00:01", "worker-01": "02:00:00:00:00:02", "worker-02": "02:00:00:00:00:03"}
ADDRESSES = {"master-01": "192.168.56.11", "worker-01": "192.168.56.13", "worker-02": "192.168.56.14"}


class Kernel(RecordingNode):
    """A node of cluster a as its tools show it: what flanneld has made, or some of it."""

    def __init__(self, name: str, file: str) -> None:
        super().__init__(name)
        self.file = file
        self.mtu = 1450
        self.without = ""  # a remote node that is not known yet
        self.ended = ""  # what a component left

    @property
    def ran(self) -> list[str]:
        return [" ".join(command) for command in self.commands]

    def answer(self, asked: Asked) -> Result:
        return in_batch(asked, self.tell)

    def tell(self, asked: Asked) -> Result:
        remotes = [(i, n) for i, n in enumerate(MACS) if n not in (self.name, self.without)]
        vtep = {"dev": "flannel.1"}
        match asked.argv:
            case ["cat", "/run/flannel/subnet-a.env"]:
                return Result(0 if self.file else 1, self.file, "")
            case ["ip", "-d", "-j", "address", *_]:
                made = {"id": 1, "port": 4789, "local": ADDRESSES[self.name], "link": "eth0"}
                link = {"ifname": "flannel.1", "flags": ["UP"], "address": MACS[self.name], "mtu": self.mtu}
                own = {"local": f"172.16.{list(MACS).index(self.name)}.0", "prefixlen": 32}
                kind = {"info_kind": "vxlan", "info_data": made}
                return shown([{**link, "linkinfo": kind, "addr_info": [own]}] if self.file else [])
            case ["ip", "-j", "route", *_]:
                return shown(
                    [{"dst": f"172.16.{i}.0/24", "gateway": f"172.16.{i}.0", **vtep} for i, _ in remotes]
                )
            case ["ip", "-j", "neighbour", *_]:
                return shown([{"dst": f"172.16.{i}.0", "lladdr": MACS[n], **vtep} for i, n in remotes])
            case ["bridge", "-j", "fdb", *_]:
                return shown(
                    [{"mac": MACS[n], "dst": ADDRESSES[n], "ifname": "flannel.1"} for _, n in remotes]
                )
            case ["ip", "-j", "rule", *_]:
                return shown([{"priority": 0, "src": "all", "table": "local"}])
            case ["sh", "-c", script, *_] if "ended" in script and "tail" in script:
                return said(self.ended)
            case ["tail", *_]:
                return said("watching for new subnet leases")
            case _:
                return said("")


@pytest.fixture
def joined(a: Overlay) -> dict[str, Kernel]:
    return {n: Kernel(n, a.subnet_env(n)) for n in MACS}


def test_nothing_is_lacking_where_all_is_as_the_testbed_makes_it(
    a: Overlay, joined: dict[str, Kernel]
) -> None:
    assert a.lacking({**joined}) == []


def test_what_is_lacking_is_said_with_its_node(a: Overlay, joined: dict[str, Kernel]) -> None:
    joined["worker-01"].without = "worker-02"
    assert a.lacking({**joined}) == [
        "worker-01: neighbour 172.16.2.0 at 02:00:00:00:00:03 on flannel.1",
        "worker-01: 02:00:00:00:00:03 behind 192.168.56.14 on flannel.1",
        "worker-01: a route to 172.16.2.0/24 via 172.16.2.0 on flannel.1",
    ]


def test_another_subnet_or_mtu_than_the_scenarios_is_not_taken(a: Overlay, joined: dict[str, Kernel]) -> None:
    joined["worker-01"].file = joined["worker-01"].file.replace("172.16.1.1/24", "172.16.7.1/24")
    joined["worker-02"].mtu = 1500
    words = a.lacking({**joined})
    assert words == [
        "worker-01: FLANNEL_SUBNET=172.16.1.1/24",
        "worker-02: a VTEP flannel.1 with VNI 1, UDP port 4789, 192.168.56.14 on eth0 "
        "and an MTU of 1450 bytes",
    ]


def test_until_there_is_a_vtep_nobody_can_have_its_address(a: Overlay, joined: dict[str, Kernel]) -> None:
    joined["worker-02"].file = ""
    words = a.lacking({**joined})
    assert "worker-02: FLANNEL_MTU=1450" in words
    assert "worker-01: neighbour 172.16.2.0 at a VTEP that is not there on flannel.1" in words


class Plane:
    """As much of a control plane as a flanneld needs."""

    def kubeconfig(self, subject: Subject) -> str:
        return f"as {subject.name}"


def begin(flannel: Flannel) -> None:
    flannel.up(cast(ControlPlane, Plane()))


def flannel(addressing: Addressing, kernels: Mapping[str, Kernel]) -> Flannel:
    return Flannel(addressing, "a", {**kernels}, Path("/programs/flanneld"))


def test_one_is_started_on_each_node_and_told_its_name(
    contmec: Addressing, joined: dict[str, Kernel]
) -> None:
    begin(flannel(contmec, joined))
    for name, kernel in joined.items():
        (started,) = [words for words in kernel.ran if "/programs/flanneld" in words]
        assert f" NODE_NAME={name} /programs/flanneld --kube-subnet-mgr " in started
        assert "/run/kubernetes/a/flanneld env" in started


def test_one_that_ends_is_an_error_with_its_last_words(
    contmec: Addressing, joined: dict[str, Kernel]
) -> None:
    joined["worker-02"].file, joined["worker-02"].ended = "", "1\nfailed to acquire lease\n"
    with pytest.raises(ComponentError) as caught:
        begin(flannel(contmec, joined))
    assert str(caught.value) == ("flanneld of cluster a on worker-02 ended with 1: failed to acquire lease")


def test_one_that_does_not_finish_is_an_error_that_says_what_is_lacking(
    contmec: Addressing, joined: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "JOINED_SECONDS", 0.0)
    joined["worker-02"].without = "master-01"
    with pytest.raises(ComponentError) as caught:
        begin(flannel(contmec, joined))
    assert str(caught.value) == (
        "not there after 0 s, on worker-02: neighbour 172.16.0.0 at 02:00:00:00:00:01 on flannel.1; "
        "last words of flanneld of cluster a: watching for new subnet leases"
    )


def test_what_is_lost_later_is_a_fault(contmec: Addressing, joined: dict[str, Kernel]) -> None:
    one = flannel(contmec, joined)
    assert one.faults() == []
    joined["master-01"].mtu = 1400
    (fault,) = one.faults()
    assert fault.startswith("the overlay of cluster a lacks, on master-01: a VTEP flannel.1 with VNI 1")
