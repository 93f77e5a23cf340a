"""Nodes on which somebody lives: what STATUS, `examine` and the first ADD refuse, and what they take."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.links import without_carrier
from tests.system.plugin.conftest import REFERENCE, Document, Node, network
from tests.system.plugin.test_installation import ask, listed
from tests.system.plugin.test_uplink import SET_SPEED
from tests.system.plugin.uplinks import ledger, on_uplink

UNSUITABLE, NOT_AVAILABLE, INVALID = 109, 50, 7
SUBNET = "172.16.1.0/24"
needs_reference = pytest.mark.skipif(
    not all((REFERENCE / name).exists() for name in ("bridge", "host-local")),
    reason=f"the reference plugins are not in {REFERENCE}",
)


@pytest.fixture(autouse=True)
def loopback(node: Node) -> Iterator[None]:
    file = node.plugin.parent / "loopback"
    file.write_text("")
    file.chmod(0o755)
    yield
    file.unlink()


def everything(node: Node) -> list[str]:
    # Neither counters nor what packets put into sets.
    looks = ("ip -br link", "ip route", "nft -s -t list ruleset", "tc qdisc")
    return [without_carrier(node.run(*look.split())) for look in looks]


def refused(node: Node, configuration: Document, *words: str) -> None:
    """STATUS, `examine` and ADD say the same, and nothing is made."""
    node.add_pod_namespace("refused")
    before = everything(node)
    added, status = node.call("ADD", "refused", configuration), node.call("STATUS", "", configuration)
    examined, said = ask(node, "examine", listed(configuration))
    assert (added.get("code"), status.get("code"), examined) == (UNSUITABLE, NOT_AVAILABLE, 1), said
    assert added["msg"] == status["msg"] == said.removeprefix("concorde: ").strip()
    for text in words:
        assert text in added["msg"]
    assert everything(node) == before
    assert node.leases(configuration["name"]) == []
    node.run("ip", "netns", "delete", "refused")


def taken(node: Node, configuration: Document) -> list[str]:
    """STATUS, `examine` and ADD take it, with no pod and with some; what `examine` notes."""
    examined, said = ask(node, "examine", listed(configuration))
    assert examined == 0, said
    for pod in ("taken-1", "taken-2"):
        assert node.call("STATUS", "", configuration) == {}
        node.add_pod_namespace(pod)
        result = node.call("ADD", pod, configuration)
        assert "code" not in result, result
    assert node.call("STATUS", "", configuration) == {}
    assert ask(node, "examine", listed(configuration)) == (0, said)
    return [line.removeprefix("note: ") for line in said.splitlines()[1:] if "gc_thresh3" not in line]


def lines(node: Node, *commands: str) -> None:
    node.run("ip", "-batch", "-", stdin="".join(f"{command}\n" for command in commands))


class Flannel:
    """The network that a node had before: `bridge` and `host-local`, with pods that run."""

    def __init__(self, node: Node, kind: str = "bridge") -> None:
        self.node = node
        ipam = {"type": "host-local", "subnet": SUBNET, "dataDir": "/run/host-local"}
        own = {"bridge": "cni0", "isGateway": True} if kind == "bridge" else {}
        self.kind = REFERENCE / kind
        self.network: Document = {"cniVersion": "1.0.0", "name": "cbr0", "type": kind, "ipam": ipam, **own}

    def attach(self, pod: str) -> Document:
        self.node.add_pod_namespace(pod)
        result = self.node.call("ADD", pod, self.network, plugin=self.kind)
        assert "code" not in result, result
        return result

    def reaches(self, pod: str, other: Document) -> None:
        address = str(other["ips"][0]["address"]).partition("/")[0]
        self.node.in_pod(pod, "ping", "-c", "1", "-W", "10", address)
        self.node.in_pod(pod, "ping", "-c", "1", "-W", "10", "172.16.1.1")


@needs_reference
@pytest.mark.long(one_in=0)
def test_pods_that_run_keep_their_network_where_another_bridge_has_the_subnet(node: Node) -> None:
    """The shipped manifest on a node of flannel's own network."""
    flannel = Flannel(node)
    first, second = flannel.attach("F-1"), flannel.attach("F-2")
    flannel.reaches("F-1", second)
    refused(node, network(), f"cni0 has 172.16.1.1/24, of these pods' subnet {SUBNET}", "drain this node")
    # No better by its own name: who has an address there nobody has told us.
    refused(node, network(bridge="cni0"), "the bridge cni0 has ports of others")
    flannel.reaches("F-1", second)
    flannel.reaches("F-2", first)
    # What the words say to do: a later pod of that network, and concorde behind it.
    third = flannel.attach("F-3")
    chained = network(subnet=None, cniVersion="1.0.0", prevResult=third)
    assert node.call("ADD", "F-3", chained) == third
    flannel.reaches("F-3", first)
    flannel.reaches("F-1", third)
    assert len({result["ips"][0]["address"] for result in (first, second, third)}) == 3
    # A runtime's STATUS does not tell that it is behind another; nor does a file of which it has the MTU.
    node.run("sh", "-c", f"mkdir /run/flannel; echo 'FLANNEL_SUBNET=172.16.1.1/24\nFLANNEL_MTU=1450' > {ENV}")
    for file in (None, ENV):
        assert node.call("STATUS", "", network(subnet=None, bridge=None, subnetFile=file)) == {}
    refused(node, network("cluster-b", subnet=None, subnetFile=ENV, bridge="cni-b"), "cni0 has 172.16.1.1/24")


ENV = "/run/flannel/subnet.env"


@needs_reference
@pytest.mark.long(one_in=0)
def test_so_do_pods_that_are_routed_to(node: Node) -> None:
    flannel = Flannel(node, "ptp")
    flannel.attach("F-1")
    second = flannel.attach("F-2")
    refused(node, network(), "has 172.16.1.1/", "drain this node")
    flannel.reaches("F-1", second)


@pytest.mark.long(one_in=0)
def test_an_empty_bridge_that_was_left_over_is_in_the_way(node: Node) -> None:
    lines(node, "link add cni0 type bridge", "addr add 172.16.1.1/24 dev cni0", "link set cni0 up")
    refused(node, network(), "cni0 has 172.16.1.1/24")
    node.run("ip", "link", "delete", "cni0")
    assert taken(node, network()) == []


@pytest.mark.long(one_in=4)
@pytest.mark.parametrize(
    ("made", "words"),
    [
        (["addr add 172.16.1.7/32 dev lo"], "lo has 172.16.1.7/32"),
        (["addr add 172.16.1.9/16 dev eth0"], "eth0 has 172.16.1.9/16"),
        (["addr add 172.16.1.65/26 dev eth0"], "eth0 has 172.16.1.65/26"),
        (["route add 172.16.1.64/26 dev eth0"], "a route leads 172.16.1.64/26"),
        (["route add 172.16.1.5/32 dev eth0"], "a route leads 172.16.1.5/32"),
        (["route add 172.16.1.0/24 dev eth0"], "a route leads 172.16.1.0/24"),
        (["route add blackhole 172.16.1.64/26"], "to nowhere"),
    ],
)
def test_what_takes_pods_addresses_is_named(node: Node, made: list[str], words: str) -> None:
    lines(node, "link add eth0 type veth peer name eth0-peer", "link set eth0 up", *made)
    refused(node, network(), words)


@pytest.mark.long(one_in=8)
@pytest.mark.parametrize(
    "made",
    [
        ["addr add 172.16.0.1/12 dev eth0"],  # a network with all of them in it, as Docker's or an office's
        ["addr add 172.16.1.0/32 dev eth0"],  # a VTEP's address, as flannel makes it
        ["addr add 172.16.2.1/24 dev eth0"],
        ["route add 172.16.0.0/16 dev eth0"],
        ["route add 172.16.1.0/24 dev eth0 metric 32"],  # as BIRD's
        ["route add 172.16.1.64/26 dev eth0 table 100"],
        ["route add 172.16.2.0/24 dev eth0"],
    ],
)
def test_what_leaves_pods_their_addresses_is_not(node: Node, made: list[str]) -> None:
    lines(node, "link add eth0 type veth peer name eth0-peer", "link set eth0 up", *made)
    assert taken(node, network()) == []


def test_a_bridge_of_ours_that_stays_is_nobody_elses(node: Node) -> None:
    configuration = network()
    node.add_pod_namespace("A-1", "A-2")
    node.call("ADD", "A-1", configuration)
    node.call("DEL", "A-1", configuration)
    assert node.veths() == set()
    assert taken(node, configuration) == []
    # But for another network it is: two would give each address twice.
    refused(node, network("cluster-b", subnet=SUBNET), "cni-a has 172.16.1.1/24")


# The node of VirtualBox' usual form: a default route by one interface, the nodes' own network by the other.
TWO = (
    "link add eth0 type veth peer name eth0-peer",
    "link add eth1 type veth peer name eth1-peer",
    *(f"link set {name} up" for name in ("eth0", "eth0-peer", "eth1", "eth1-peer")),
    "addr add 10.0.2.15/24 dev eth0",
    "route add default via 10.0.2.2",
    "addr add 192.168.56.11/24 dev eth1",
)
VTEP = "link add flannel.1 type vxlan id 1 dstport 8472 nolearning"
BY = "by eth1"


@pytest.mark.long(one_in=8)
@pytest.mark.parametrize(
    "made",
    [
        [f"{VTEP} dev eth1", "link set flannel.1 up"],
        [f"{VTEP} dev eth1 local 192.168.56.11", "addr add 172.16.1.0/32 dev flannel.1"],
        [f"{VTEP} local 192.168.56.11"],
        [f"{VTEP} remote 192.168.56.12"],
        # Another cluster's by the other interface, which has not these pods' address.
        [
            f"{VTEP} dev eth1",
            "addr add 172.16.1.0/32 dev flannel.1",
            "link add flannel.2 type vxlan id 2 dstport 8473 dev eth0",
            "addr add 172.17.1.0/32 dev flannel.2",
        ],
    ],
)
def test_the_uplink_is_the_way_that_the_overlay_takes(node: Node, made: list[str]) -> None:
    lines(node, *TWO, *made)
    refused(
        node,
        on_uplink(uplink="eth0"),
        "the uplink is eth0, and packets of flannel.1 leave by eth1: write down uplink eth1",
    )
    assert taken(node, on_uplink(uplink=None)) == []
    assert [tree["uplink"] for tree in ledger(node)["trees"]] == ["eth1"]
    assert node.call("STATUS", "", on_uplink(uplink="eth1")) == {}


def test_an_overlay_that_tells_no_way_is_asked_about(node: Node) -> None:
    lines(node, *TWO, "link add flannel.1 type vxlan external dstport 8472")
    for verb in ("ADD", "STATUS"):
        node.run("sh", "-c", "ip netns add A-1 2>/dev/null || true")
        error = node.call(verb, "A-1" if verb == "ADD" else "", on_uplink(uplink=None))
        assert error["code"] == INVALID
        assert error["msg"] == (
            "uplink: missing, and the interface by which packets of flannel.1 leave is not known"
        )
    assert taken(node, on_uplink(uplink="eth0")) == []


@pytest.mark.long(one_in=0)
def test_overlays_by_two_ways_are_asked_about(node: Node) -> None:
    lines(node, *TWO, f"{VTEP} dev eth1", "link add flannel.2 type vxlan id 2 dstport 8473 dev eth0")
    error = node.call("STATUS", "", on_uplink(uplink=None))
    assert error["code"] == INVALID
    for words in ("flannel.1 leave by eth1", "flannel.2 leave by eth0", "write down"):
        assert words in error["msg"]
    assert taken(node, on_uplink(uplink="eth0")) == []


@pytest.mark.long(one_in=0)
def test_routes_tell_where_no_overlay_is_the_networks(node: Node) -> None:
    """host-gw by one interface, beside somebody else's VTEP on the other."""
    lines(node, *TWO, f"{VTEP} dev eth1", "route add 172.16.2.0/24 via 10.0.2.3")
    env = "FLANNEL_NETWORK=172.16.0.0/16\nFLANNEL_SUBNET=172.16.1.1/24\nFLANNEL_MTU=1500\n"
    node.run("sh", "-c", f"mkdir /run/flannel; cat > {ENV}", stdin=env)
    by_file = on_uplink(uplink="eth0", subnet=None, subnetFile=ENV)
    refused(node, {**by_file, "uplink": "eth1"}, "packets of eth0 leave by eth0: write down uplink eth0")
    assert taken(node, by_file) == []


@pytest.mark.long(one_in=0)
def test_an_uplink_below_the_overlays_own_is_one(node: Node) -> None:
    lines(
        node,
        *TWO,
        "link add br0 type bridge",
        "addr flush dev eth1",
        "link set eth1 master br0",
        "addr add 192.168.56.11/24 dev br0",
        "link set br0 up",
        f"{VTEP} dev br0",
    )
    assert taken(node, on_uplink(uplink="eth1")) == []


@pytest.fixture
def tap(node: Node) -> Node:
    """A node whose uplink is of 1 Gbit/s, by its driver."""
    node.run("ip", "tuntap", "add", "tap0", "mode", "tap")
    lines(node, "link set tap0 up", "addr add 192.168.9.1/24 dev tap0", "route add default via 192.168.9.2")
    node.run("/usr/bin/python3", "-c", SET_SPEED, "tap0", "1000")
    return node


def test_no_more_than_the_driver_tells_can_be_promised(tap: Node) -> None:
    words = "capacity is 1.001 Gbit/s, and the driver of tap0 reports 1 Gbit/s: write down no more than that"
    refused(tap, on_uplink(uplink="tap0", capacity="1001M"), words)
    assert taken(tap, on_uplink(uplink="tap0", capacity="1G")) == []


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize(("capacity", "noted"), [("99M", True), ("100M", False), (None, False)])
def test_a_small_part_of_what_the_driver_tells_is_noted(tap: Node, capacity: str | None, noted: bool) -> None:
    notes = taken(tap, on_uplink(uplink="tap0", capacity=capacity))
    expected = (
        "capacity is 99 Mbit/s, which all of this node's traffic will have,"
        " and the driver of tap0 reports 1 Gbit/s"
    )
    assert notes == ([expected] if noted else [])


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize(("kind", "capacity"), [("veth", "100G"), ("veth", "1M"), ("tun", "100G")])
def test_a_speed_that_is_made_up_says_nothing(node: Node, kind: str, capacity: str) -> None:
    made = "tuntap add eth0 mode tap" if kind == "tun" else "link add eth0 type veth peer name eth0-peer"
    lines(node, made, "link set eth0 up")
    assert taken(node, on_uplink(capacity=capacity)) == []


KUBE_PROXY = (
    "-N KUBE-FORWARD",
    "-A FORWARD -m comment --comment forwarding -j KUBE-FORWARD",
    "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP",
    "-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT",
    "-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
)
DOCKER = (
    "-P FORWARD DROP",
    "-N DOCKER",
    "-N DOCKER-USER",
    "-A DOCKER-USER -j RETURN",
    "-A FORWARD -j DOCKER-USER",
    "-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-A FORWARD -o docker0 -j DOCKER",
    "-A FORWARD -i docker0 ! -o docker0 -j ACCEPT",
    "-A DOCKER -d 172.17.0.2/32 ! -i docker0 -o docker0 -p tcp --dport 80 -j ACCEPT",
)
FLANNEL = (
    "-N FLANNEL-FWD",
    "-A FORWARD -m comment --comment flanneld -j FLANNEL-FWD",
    "-A FLANNEL-FWD -s 172.16.0.0/16 -m comment --comment flanneld -j ACCEPT",
    "-A FLANNEL-FWD -d 172.16.0.0/16 -m comment --comment flanneld -j ACCEPT",
)
UFW = (
    "-P FORWARD DROP",
    "-N before",
    "-A FORWARD -j before",
    "-A before -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-A before -p icmp -m icmp --icmp-type 8 -j ACCEPT",
)


def outward(node: Node) -> None:
    """An interface to others, and one of them behind it, who forwards nothing."""
    lines(
        node,
        "netns add other",
        "link add eth0 type veth peer name eth0 netns other",
        "link set eth0 up",
        "addr add 192.168.9.1/24 dev eth0",
        "route add default via 192.168.9.2",
    )
    inside = "addr add 192.168.9.2/24 dev eth0\nlink set eth0 up\nroute add default via 192.168.9.1\n"
    node.run("ip", "-n", "other", "-batch", "-", stdin=inside)


def filtered(node: Node, program: str, rules: tuple[str, ...]) -> None:
    for rule in rules:
        node.run(program, *rule.split())


@pytest.fixture
def iptables(node: Node, request: pytest.FixtureRequest) -> str:
    program = str(request.param)
    try:
        node.run("sh", "-c", f"{program} -S FORWARD 2>&1")
    except AssertionError as error:
        pytest.skip(f"{program} does not work here: {error}")
    return program


EITHER = pytest.mark.parametrize("iptables", ["iptables-nft", "iptables-legacy"], indirect=True)


@EITHER
@pytest.mark.long(one_in=8)
@pytest.mark.parametrize(
    "rules",
    [("-P FORWARD DROP",), DOCKER, (*DOCKER, *KUBE_PROXY), UFW],
    ids=["policy", "docker", "both", "ufw"],
)
def test_a_filter_that_drops_what_pods_send_is_named(
    node: Node, iptables: str, rules: tuple[str, ...]
) -> None:
    outward(node)
    filtered(node, iptables, rules)
    accept = iptables.removesuffix("-nft")
    refused(node, network(), "what pods of 172.16.1.0/24 send is dropped by the policy of FORWARD", accept)
    # What the words say to do is enough; that it is so the kernel shows.
    for end in ("-s", "-d"):
        node.run(iptables, "-I", "FORWARD", end, SUBNET, "-j", "ACCEPT")
    assert taken(node, network()) == []
    node.in_pod("taken-1", "ping", "-c", "1", "-W", "10", "192.168.9.2")


@EITHER
@pytest.mark.long(one_in=8)
@pytest.mark.parametrize(
    "rules", [(*DOCKER, *KUBE_PROXY, *FLANNEL), KUBE_PROXY, FLANNEL], ids=["all", "kube-proxy", "flannel"]
)
def test_a_policy_alone_says_nothing(node: Node, iptables: str, rules: tuple[str, ...]) -> None:
    outward(node)
    filtered(node, iptables, rules)
    assert taken(node, network()) == []
    node.in_pod("taken-1", "ping", "-c", "1", "-W", "10", "192.168.9.2")


# As firewalld makes it, and what lets pods through there.
FIREWALLD = """
table inet firewalld {
  chain filter_FORWARD {
    type filter hook forward priority filter + 10; policy accept;
    ct state { established, related } accept
    ct status dnat accept
    iifname "lo" accept
    ct state invalid drop
    iifname "docker0" jump docker
    ip saddr { 10.0.0.0/8, 192.0.2.7 } ip daddr != 172.16.0.0/16 accept
    reject with icmpx admin-prohibited
  }
  chain docker { accept; }
}
"""


@pytest.mark.long(one_in=0)
def test_a_rule_that_refuses_is_named_and_the_remedy_with_its_table(node: Node) -> None:
    outward(node)
    node.run("nft", "-f", "-", stdin=FIREWALLD)
    remedy = "nft insert rule inet firewalld filter_FORWARD ip saddr 172.16.1.0/24 accept"
    refused(node, network(), "is dropped by a rule of filter_FORWARD of table inet firewalld", remedy)
    node.run(*remedy.split())
    # Who begins from outside gets no further than before, which may be meant.
    (note,) = taken(node, network())
    assert note.startswith("what others begin with pods of 172.16.1.0/24 is dropped by a rule of filter_F")
    node.in_pod("taken-1", "ping", "-c", "1", "-W", "10", "192.168.9.2")


@pytest.mark.long(one_in=0)
def test_what_nobody_reads_is_taken_for_let_through(node: Node) -> None:
    outward(node)
    table = "table inet firewalld {"
    known = f"{table}\n set known {{ type ipv4_addr; flags interval; elements = {{ 172.16.0.0/16 }}; }}"
    by_a_set = FIREWALLD.replace(table, known).replace("{ 10.0.0.0/8, 192.0.2.7 }", "@known")
    node.run("nft", "-f", "-", stdin=by_a_set.replace(" ip daddr != 172.16.0.0/16", ""))
    assert taken(node, network()) == []
    node.in_pod("taken-1", "ping", "-c", "1", "-W", "10", "192.168.9.2")


def test_a_kernel_or_nft_that_cannot_do_what_is_asked_is_named(node: Node) -> None:
    """The kernel by the version that it says to have, nft by one that takes no bridge's tables."""
    old = ["setarch", "--uname-2.6", str(node.plugin)]
    done = node.run("sh", "-c", f"{' '.join(old)} examine 2>&1 || true", stdin=listed(network()))
    assert "is too old: 5.11 or newer is needed" in done
    broken = (
        "#!/bin/sh\nfor word; do [ $word != --check ] || { cat >/run/checked;"
        ' echo "Error: Could not process rule: Operation not supported" >&2; exit 1; }; done\n'
        'exec /usr/sbin/nft "$@"\n'
    )
    node.run("sh", "-c", "mkdir /run/bin; cat > /run/bin/nft; chmod +x /run/bin/nft", stdin=broken)
    node.add_pod_namespace("A-1")
    for verb, code in (("ADD", UNSUITABLE), ("STATUS", NOT_AVAILABLE)):
        started = node.start(verb, "A-1" if verb == "ADD" else "", network(), path="/run/bin")
        answer: Any = json.loads(started.communicate()[0])
        assert answer["code"] == code
        assert "cannot make the guard's tables" in answer["msg"]
        assert "Operation not supported" in answer["msg"]
    for text in ("bridge concorde prerouting", "burst", "ip6 concorde"):
        assert text in node.run("cat", "/run/checked")
