from __future__ import annotations

import pytest
from concorde import batches, links, routing, tools

from tests.unit.plugin.examples import LINK


def test_the_pair_is_made_in_the_pods_namespace_and_on_the_bridge() -> None:
    assert links.pair_batch(LINK, "/run/netns/pod", ipv6=True).splitlines() == [
        "link set dev cni-a addrgenmode none",
        "link set dev cni-a alias concorde type bridge mcast_snooping 0",
        "addr replace 172.16.1.1/24 brd + dev cni-a",
        "link set dev cni-a up",
        "link add name veth0123456789a address 0e:58:ac:10:01:02 mtu 1450 master cni-a type veth"
        " peer name eth0 address 0a:58:ac:10:01:02 mtu 1450 netns /run/netns/pod",
        "link property add dev veth0123456789a altname cni-a-172.16.1.2",
        "link set dev veth0123456789a addrgenmode none",
        "link set dev veth0123456789a up",
    ]


def test_the_pods_default_route_is_the_papers() -> None:
    assert links.default_route(LINK, "add") == "route add default via 172.16.1.1 dev eth0\n"
    assert "default" not in links.pod_batch(LINK, ipv6=True)


@pytest.mark.parametrize(
    ("default", "others", "verb"),
    [(None, False, "add"), (None, True, ""), (True, True, "prepend"), (False, False, "")],
)
def test_a_pod_gets_its_default_route_if_it_is_to_have_it(
    default: bool | None, others: bool, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(batches, "run", lambda *words: asked.append(words))
    monkeypatch.setattr(routing, "has_default", lambda _netns: others)
    assert links.configure(LINK, "/n", default) == bool(verb)
    added = [("ip", links.default_route(LINK, verb), "/n")] if verb else []
    assert asked == [("ip", links.pod_batch(LINK, links.has_ipv6()), "/n"), *added]


def test_a_kernel_without_ipv6_is_not_asked_about_it() -> None:
    made = links.pair_batch(LINK, "/run/netns/pod", ipv6=False) + links.pod_batch(LINK, ipv6=False)
    assert "addrgenmode" not in made
    assert made.count(" up\n") == 3


@pytest.mark.parametrize("room", [True, False])
def test_a_removal_tells_at_its_end_whether_it_failed(room: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*command: str) -> None:
        asked.append(command)
        if command[1] == "link delete dev busy\n":
            raise tools.CommandError(["ip", "link delete dev busy"], "Device or resource busy")

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(batches, "run", run)
    monkeypatch.setattr(links, "exists", lambda name: name != "gone")
    if not room:
        monkeypatch.setattr(links, "start_new_thread", no_thread)
    for name in ("gone", "a"):
        with links.Removal(name):
            pass
    removal = links.Removal("busy")
    removal.__enter__()
    with pytest.raises(tools.CommandError, match="busy"):
        removal.__exit__()
    assert asked == [("ip", "link delete dev a\n"), ("ip", "link delete dev busy\n")]
