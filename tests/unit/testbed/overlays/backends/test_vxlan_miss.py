"""What a node is given that knows of the others what its kernel asked for, and what must be there then."""

from __future__ import annotations

import json

import pytest

from edge.overlay import settings
from testbed import resources
from testbed.access.place import Result
from testbed.overlays.backends.vxlan_miss import Resolved
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import Api
from testbed.scenario import ScenarioError, networks
from tests.doubles import Asked, RecordingNode, said
from tests.unit.testbed.builders import addressed

BOTH = ("clusters.a.backend=vxlan-miss", "clusters.b.backend=vxlan-miss")


def overlay(cluster: str = "a", *overrides: str) -> Resolved:
    return Resolved(addressed("contmec", *BOTH, *overrides), cluster)


def of_generation(l2: str, l3: str) -> Resolved:
    return overlay("a", f"clusters.a.resolve={{l2: {l2}, l3: {l3}}}")


def told(one: Resolved, node: str) -> settings.Settings:
    """Return what a node's resolver reads."""
    daemon = one.daemons(node)[-1]
    (text,) = daemon.files.values()
    return settings.parse(text)


def test_by_miss_all_pods_are_neighbours_of_a_device_that_says_what_it_misses() -> None:
    assert overlay().links("worker-01") == (
        "link add flannel.1 address 0e:01:c0:a8:38:0d mtu 1450 type vxlan id 1 dev eth0 local 192.168.56.13 "
        "dstport 8472 nolearning proxy l2miss\n"
        "link set flannel.1 addrgenmode none\n"
        "link set flannel.1 up\n"
        "address add 172.16.1.0/16 dev flannel.1\n"
    )
    assert overlay().forwarding("worker-01") == ""
    files = overlay().files("worker-01")
    assert files["/proc/sys/net/ipv4/neigh/flannel.1/app_solicit"] == "3\n"
    assert "FLANNEL_MTU=1450\n" in files["/run/flannel/subnet-a.env"]


@pytest.mark.parametrize(
    ("l2", "l3", "flags", "prefix"),
    [("ahead", "miss", "", 16), ("ahead", "ahead", "", 32), ("miss", "ahead", " l2miss", 32)],
)
def test_what_is_made_ahead_is_not_asked_for(l2: str, l3: str, flags: str, prefix: int) -> None:
    lines = of_generation(l2, l3).links("worker-01").splitlines()
    assert lines[0].endswith(f"nolearning{flags}")
    assert lines[-1] == f"address add 172.16.1.0/{prefix} dev flannel.1"
    asked = "/proc/sys/net/ipv4/neigh/flannel.1/app_solicit" in of_generation(l2, l3).files("worker-01")
    assert asked == (l3 == "miss")


def test_each_node_has_a_resolver_and_the_master_an_etcd() -> None:
    names = {node: [one.name for one in overlay().daemons(node)] for node in ("master-01", "worker-01")}
    assert names == {
        "master-01": ["etcd of cluster a's overlay", "resolver of cluster a"],
        "worker-01": ["resolver of cluster a"],
    }
    etcd, resolver = overlay().daemons("master-01")
    assert (etcd.package, etcd.argv[0]) == ("etcd-server", "etcd")
    assert "--listen-client-urls=http://192.168.56.11:4001" in etcd.argv
    assert resolver.brings == resources.EDGE
    assert resolver.argv[:4] == ["/usr/bin/python3", "-IS", str(resources.EDGE), "resolver"]
    assert resolver.argv[4] in resolver.files


def test_two_clusters_share_neither_port_nor_directory() -> None:
    a, b = overlay("a"), overlay("b")
    assert (told(a, "worker-01").store, told(b, "worker-01").store) == (
        "http://192.168.56.11:4001",
        "http://192.168.56.12:4003",
    )
    assert (a.directory, b.directory) == ("/run/overlay/a", "/run/overlay/b")
    assert 4001 in overlay().addressing.control_ports("worker-01")
    assert 4003 in overlay().addressing.control_ports("worker-01")


def test_a_resolver_is_told_what_the_scenario_says() -> None:
    found = told(overlay("a", "clusters.a.resolve={l2: ahead, refresh: answer}"), "worker-02")
    assert (found.device, found.vni) == ("flannel.1", 1)
    assert (str(found.network), str(found.subnet)) == ("172.16.0.0/16", "172.16.2.0/24")
    assert str(found.address) == "192.168.56.14"
    assert (found.generation, found.refresh) == (("ahead", "miss"), "answer")


def test_by_an_api_there_is_no_etcd() -> None:
    api = Api("https://192.168.56.11:6443", "/run/me.pem", "/run/authority.crt", str.lower)
    one = overlay().by_api(api)
    assert [daemon.name for daemon in one.daemons("master-01")] == ["resolver of cluster a"]
    found = told(one, "worker-01")
    assert (found.store, found.node) == (api.server, "worker-01")
    assert (found.identity, found.authority) == (api.identity, api.authority)
    patch = {"resources": ["nodes/status"], "resourceNames": ["worker-01"], "verbs": ["patch"]}
    assert one.rights("worker-01") == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], **patch},
    ]


def test_it_is_vxlan_to_all_who_calculate() -> None:
    addressing = overlay().addressing
    assert addressing.pod_mtu("a") == 1450
    assert networks.of(addressing.scenario.clusters["a"]).has_vtep
    assert overlay().flannel() is None


def test_two_clusters_of_a_node_need_vnis_of_their_own() -> None:
    with pytest.raises(ScenarioError, match=r"clusters\.b\.flannel\.vni: .*already has VNI 1"):
        overlay("a", "clusters.b.flannel.vni=1")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("clusters.a.resolve={l2: never}", r"clusters\.a\.resolve\.l2: input should be 'miss' or 'ahead'"),
        ("clusters.a.resolve={l4: miss}", r"clusters\.a\.resolve\.l4: no such field"),
    ],
)
def test_settings_that_cannot_be_are_named(override: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        overlay("a", override)


def test_other_backends_have_no_use_for_its_settings() -> None:
    words = r"clusters\.a\.resolve: backend vxlan does not use these settings"
    with pytest.raises(ScenarioError, match=words):
        addressed("contmec", "clusters.a.resolve={l2: ahead}")


def wanted(one: Resolved) -> set[str]:
    macs = {node: KernelState({"flannel.1": one.mac(node)}) for node in one.own.nodes}
    return set(one.wanted("worker-01", macs))


def test_by_miss_a_replica_of_all_leases_is_wanted_and_no_entry() -> None:
    found = wanted(overlay())
    assert found == {
        "a VTEP flannel.1 with VNI 1, UDP port 8472, 192.168.56.13 on eth0 and an MTU of 1450 bytes, "
        "and proxy, l2miss",
        "flannel.1 up",
        "address 172.16.1.0/16 on flannel.1",
        "a route to 172.16.0.0/16 on flannel.1",
        "172.16.0.0/24 at 0e:01:c0:a8:38:0b behind 192.168.56.11",
        "172.16.1.0/24 at 0e:01:c0:a8:38:0d behind 192.168.56.13",
        "172.16.2.0/24 at 0e:01:c0:a8:38:0e behind 192.168.56.14",
    }


def test_ahead_the_entries_are_wanted_that_flannel_makes_today() -> None:
    found = wanted(of_generation("ahead", "miss"))
    assert {word for word in found if "behind" in word and "/" not in word} == {
        "0e:01:c0:a8:38:0b behind 192.168.56.11 on flannel.1",
        "0e:01:c0:a8:38:0e behind 192.168.56.14 on flannel.1",
    }
    found = wanted(of_generation("ahead", "ahead"))
    assert "a route to 172.16.2.0/24 via 172.16.2.0 on flannel.1" in found
    assert "neighbour 172.16.2.0 at 0e:01:c0:a8:38:0e on flannel.1" in found
    assert "a route to 172.16.0.0/16 on flannel.1" not in found


def test_a_kernel_that_asks_by_arp_lacks_something() -> None:
    """Nothing is there but the sysctl, and on one node not even that."""

    class Bare(RecordingNode):
        def answer(self, asked: Asked) -> Result:
            mark = asked.argv[asked.argv.index("sh", 1) + 1]
            commands = asked.argv.count("cat") + sum(asked.argv.count(one) for one in ("ip", "bridge"))
            solicit = self.name != "worker-02" and "app_solicit" in " ".join(asked.argv)
            shown = "3" if solicit else ""
            return said(f"{0 if shown else 1}\n{shown}\n{mark}\n\n{mark}\n" * commands)

    one = overlay()
    nodes = {name: Bare(name) for name in one.own.nodes}
    lacking = one.lacking(nodes)
    assert "worker-01: flannel.1 up" in lacking
    file = "/proc/sys/net/ipv4/neigh/flannel.1/app_solicit"
    assert [words for words in lacking if file in words] == [f"worker-02: 3 in {file}"]


def test_the_settings_are_readable_as_they_are_written() -> None:
    (text,) = overlay().daemons("worker-01")[-1].files.values()
    assert json.loads(text)["report"] == "/run/overlay/a/leases"
