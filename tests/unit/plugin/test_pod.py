"""What enforcement `pod` asks of tc in the pod, and what it takes back."""

from __future__ import annotations

import errno

import pytest
from concorde import addresses, namespaces, rtnetlink, shaping, tools
from concorde.cni import CHECK_FAILED, CniError
from concorde.configuration import Configuration
from concorde.enforcements import pod
from concorde.leases import Lease, Link, Terms

from tests.unit.plugin.node.examples import entry
from tests.unit.plugin.node.kernels import NotingKernel, failure
from tests.unit.plugin.test_netlink_messages import FakeKernel

NETWORK = Configuration({"name": "net"})
SUBNET = addresses.parse_subnet("172.16.1.0/24")
LINK = Link("eth0", 1450, SUBNET.network + 2, SUBNET, "cni-a", "veth1")
NETNS = "/proc/self/ns/net"  # some path that is there
SLOW, FAST = 20_000_000, 10**9  # of packets shortened to 5,000 bytes, and of whole ones
CLASS = "tc -j class show dev eth0"
WHOLE = 1 << 16, 1


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> NotingKernel:
    has(monkeypatch, WHOLE)
    return NotingKernel(monkeypatch)


def has(monkeypatch: pytest.MonkeyPatch, root: tuple[int, int] | OSError | None) -> None:
    """Let the interface have a root HTB, or none, or be gone."""

    def root_htb(_index: int, _kernel: FakeKernel) -> tuple[int, int] | None:
        if isinstance(root, OSError):
            raise root
        return root

    monkeypatch.setattr(namespaces, "opened", lambda _netns: FakeKernel())
    monkeypatch.setattr(rtnetlink, "root_htb", root_htb)


def lease(rate: int | None = FAST, link: Link | None = LINK, burst: int | None = 10_000) -> Lease:
    return Lease("A-1", "eth0", Terms("pod", rate, None, rate, burst), link)


@pytest.mark.parametrize(("rate", "limit"), [(FAST, []), (SLOW, ["5000"])])
def test_a_rate_is_a_class_and_a_slow_one_shortens_packets(
    rate: int, limit: list[str], noting: NotingKernel
) -> None:
    pod.install(NETWORK, lease(rate), entry(), NETNS)
    assert noting.asked[0] == ("batch", "tc", shaping.batch("eth0", rate, 10_000), NETNS)
    assert noting.asked[1:] == [
        ("batch", "ip", f"link set dev eth0 gso_max_size {size}\n", NETNS) for size in limit
    ]


@pytest.mark.parametrize(("rate", "burst"), [(None, 10_000), (FAST, None)])
def test_without_a_rate_or_a_burst_nothing_is_done(
    rate: int | None, burst: int | None, noting: NotingKernel
) -> None:
    pod.install(NETWORK, lease(rate, burst=burst), entry(), NETNS)
    assert noting.asked == []


DELETE = ("batch", "tc", "qdisc delete dev eth0 root handle 1:\n", NETNS)


@pytest.mark.parametrize(("line", "undone"), [(0, []), (1, []), (2, [DELETE])])
def test_what_failed_half_way_is_undone(
    line: int, undone: list[tuple[str, ...]], noting: NotingKernel
) -> None:
    noting.failing["batch", "tc", shaping.batch("eth0", FAST, 10_000)] = failure("Error", line)
    with pytest.raises(tools.CommandError):
        pod.install(NETWORK, lease(), entry(), NETNS)
    assert noting.asked[1:] == undone


def test_a_class_whose_packets_cannot_be_shortened_is_undone(noting: NotingKernel) -> None:
    noting.failing["batch", "ip"] = failure()
    with pytest.raises(tools.CommandError):
        pod.install(NETWORK, lease(SLOW), entry(), NETNS)
    assert noting.asked[-1] == DELETE


@pytest.mark.parametrize(("rate", "restored"), [(FAST, []), (SLOW, ["65536"])])
def test_an_interface_of_another_plugin_gets_back_what_it_had(
    rate: int, restored: list[str], noting: NotingKernel
) -> None:
    pod.remove(NETWORK, lease(rate, None), NETNS)
    assert noting.asked[0] == DELETE
    assert [asked[2] for asked in noting.asked[1:]] == [
        f"link set dev eth0 gso_max_size {size}\n" for size in restored
    ]


@pytest.mark.parametrize(
    ("one", "netns"),
    [(lease(None, None), NETNS), (lease(FAST, LINK), NETNS), (lease(FAST, None), "/nowhere")],
)
def test_where_there_is_nothing_to_undo_nothing_is_asked(
    one: Lease, netns: str, noting: NotingKernel
) -> None:
    pod.remove(NETWORK, one, netns)
    assert noting.asked == []


GONE = OSError(errno.ENODEV, "No such device")
NOT_OURS = (None, (2 << 16, 1), (1 << 16, 2), GONE)


@pytest.mark.parametrize("root", NOT_OURS)
def test_an_interface_that_is_gone_or_somebody_elses_is_left(
    root: tuple[int, int] | OSError | None, noting: NotingKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    has(monkeypatch, root)
    pod.remove(NETWORK, lease(FAST, None), NETNS)
    assert noting.asked == []


@pytest.mark.parametrize("root", [WHOLE, *NOT_OURS])
def test_a_check_wants_the_qdisc(
    root: tuple[int, int] | OSError | None, noting: NotingKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shaping, "rates_of_class", lambda shown: ("1Gbit", "1Gbit"))
    has(monkeypatch, root)
    if root == WHOLE:
        pod.check(NETWORK, lease(), NETNS)
        assert noting.asked[-1] == ("run", *CLASS.split(), NETNS)
        return
    with pytest.raises(
        CniError, match="No such device" if root is GONE else "has no root qdisc htb 1:"
    ) as caught:
        pod.check(NETWORK, lease(), NETNS)
    assert caught.value.code == CHECK_FAILED


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "is missing; expected 1Gbit for both"),
        (("1Gbit", "2Gbit"), "has rate 1Gbit, ceil 2Gbit; expected"),
        (("2Gbit", "1Gbit"), "has rate 2Gbit, ceil 1Gbit; expected"),
    ],
)
def test_a_check_wants_the_rate(
    found: tuple[str, str] | None, words: str, noting: NotingKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shaping, "rates_of_class", lambda shown: found)
    with pytest.raises(CniError, match=words) as caught:
        pod.check(NETWORK, lease(), NETNS)
    assert caught.value.code == CHECK_FAILED
    pod.check(NETWORK, lease(None), NETNS)
