"""A testbed's check finds what of an overlay is not there any more, whoever should have made it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from testbed.testbed import Testbed

SOLICIT = "/proc/sys/net/ipv4/neigh/flannel.1/app_solicit"
MAC = "0e:01:c0:a8:7a:66"  # of minion02's VTEP
BY_MISS = {"ip route delete 10.1.0.0/16 dev flannel.1": "a route to 10.1.0.0/16 on flannel.1"}
L2_AHEAD = {
    f"bridge fdb delete {MAC} dev flannel.1 self": f"{MAC} behind 192.168.122.102 on flannel.1",
}
AHEAD = {
    "ip route delete 10.1.2.0/24 dev flannel.1": "a route to 10.1.2.0/24 via 10.1.2.0 on flannel.1",
    "ip neigh delete 10.1.2.0 dev flannel.1": f"neighbour 10.1.2.0 at {MAC} on flannel.1",
}
TAKEN = {
    ("miss", "miss"): BY_MISS,
    ("ahead", "miss"): {**BY_MISS, **L2_AHEAD},
    ("ahead", "ahead"): {**L2_AHEAD, **AHEAD},
}


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize(("l2", "l3"), list(TAKEN))
def test_what_was_taken_away_is_named(l2: str, l3: str, resolved: Callable[[str, str], Testbed]) -> None:
    testbed = resolved(l2, l3)
    assert testbed.check() == []
    node = testbed.nodes["minion01"]
    # Or it would mend the rest.
    node.run(
        ["sh", "-c", "cd /run/overlay/a/resolver && kill -KILL $(cat pid); until [ -s ended ]; do :; done"]
    )
    if l3 == "miss":
        node.run(["tee", SOLICIT], stdin="0\n")
    for command in TAKEN[l2, l3]:
        node.run(command.split())
    ended, *lacking = testbed.check()
    assert ended.startswith("resolver of cluster a on minion01 ended with 137")
    prefix = "the network of cluster a lacks, on minion01: "
    unasked = [f"3 in {SOLICIT}"] if l3 == "miss" else []
    assert set(lacking) == {prefix + words for words in [*TAKEN[l2, l3].values(), *unasked]}


SHOWN = (
    ["ip", "-d", "-j", "link", "show", "dev", "flannel.1"],
    ["ip", "-j", "-4", "address", "show", "dev", "flannel.1"],
    ["ip", "-j", "route", "show", "dev", "flannel.1"],
    ["ip", "-j", "neigh", "show", "dev", "flannel.1"],
    ["bridge", "-j", "fdb", "show", "dev", "flannel.1"],
)


@pytest.mark.long(one_in=0)
def test_all_ahead_the_kernel_has_what_it_has_with_backend_vxlan(
    resolved: Callable[[str, str, Sequence[str]], Testbed],
) -> None:
    def states(testbed: Testbed) -> dict[str, list[list[str]]]:
        return {
            name: [sorted(json.dumps(one, sort_keys=True) for one in node.run(show).json()) for show in SHOWN]
            for name, node in testbed.nodes.items()
        }

    ahead = states(resolved("ahead", "ahead", ()))
    vxlan = states(resolved("ahead", "ahead", ["clusters.a.backend=vxlan", "clusters.a.resolve=null"]))
    assert ahead == vxlan
    assert all(len(routes) == len(entries) == 2 for _, _, routes, _, entries in ahead.values())
