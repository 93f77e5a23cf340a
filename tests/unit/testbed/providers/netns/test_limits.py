"""Limits over readings; what this machine tells is read too."""

from __future__ import annotations

import pytest

from testbed.providers.netns import limits
from testbed.providers.netns.limits import Readings, exceeded
from testbed.scenario import Scenario
from tests.unit.testbed.builders import addressed

AMPLE = Readings(
    release=(6, 1),
    neighbours=1024,
    net_namespaces=10_000,
    mount_namespaces=10_000,
    processes=30_000,
    files=20_000,
    memory=16_000,
)


def scenario(nodes: int = 4, pods: int = 2) -> Scenario:
    """One cluster of these nodes, all pods on its first worker."""
    names = [f"n{number}" for number in range(nodes)]
    return Scenario.model_validate(
        {
            "name": "many",
            "nodes": {name: {} for name in names},
            "clusters": {"a": {"master": "n0", "workers": names[1:], "pod_cidr": "10.0.0.0/8"}},
            "pods": {f"P{number}": {"cluster": "a", "node": "n1"} for number in range(pods)},
            "containers": {"C": {"node": "n2"}},
            "flows": [{"from": "P0", "to": "P1"}],
        }
    )


def test_there_is_room() -> None:
    assert exceeded(scenario(nodes=1000), AMPLE) == []
    assert exceeded(scenario(nodes=1000), Readings(release=(6, 1))) == []  # the kernel tells nothing


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (
            {"net_namespaces": 7},
            "network namespaces: the scenario needs 8, there are 7 (sysctl user.max_net_namespaces)",
        ),
        (
            {"mount_namespaces": 4},
            "mount namespaces: the scenario needs 5, there are 4 (sysctl user.max_mnt_namespaces)",
        ),
        ({"processes": 260}, "processes: the scenario needs 261, there are 260 (sysctl kernel.pid_max"),
        ({"files": 256}, "open files: the scenario needs 257, there are 256 (ulimit -n)"),
        ({"memory": 4}, "MB of memory: the scenario needs 5, there are 4 (what is free, or the cgroup's"),
    ],
)
def test_what_is_one_too_few_is_said_and_what_is_just_enough_is_not(
    there: dict[str, int], words: str
) -> None:
    ((name, most),) = there.items()
    (limit,) = exceeded(scenario(), Readings(**{**vars(AMPLE), name: most}))
    assert str(limit).startswith(words)
    assert exceeded(scenario(), Readings(**{**vars(AMPLE), name: most + 1})) == []


def test_services_take_a_proxy_on_each_node_and_a_server_in_each_pod() -> None:
    of = scenario()
    served = Scenario.model_validate(
        {
            **of.model_dump(by_alias=True, exclude_none=True),
            "services": {"web": {"cluster": "a", "pods": ["P0", "P1"]}},
            "requests": [{"from": "P0", "to": "web", "rate": 1}],
        }
    )
    none = Readings(release=(6, 1), processes=0, files=0, memory=0)
    before, after = ({one.what: one.needed for one in exceeded(each, none)} for each in (of, served))
    assert after["processes"] - before["processes"] == 2 * len(of.nodes)
    assert after["open files"] - before["open files"] == 1 + 2
    assert after["MB of memory"] - before["MB of memory"] == len(of.nodes) * limits.PROXY_MB


def test_devices_take_a_namespace_each_and_a_thread_for_each_port() -> None:
    devices = addressed("examples/devices").scenario
    found = {one.what: one.needed for one in exceeded(devices, Readings((6, 1), *[0] * 6))}
    assert found["network namespaces"] == 1 + 3 + 3 + 3  # nodes, devices, pods with a connection's
    assert found["mount namespaces"] == 1 + 3 + 3
    served = 2 * 3  # a proxy of services on each node, and who looks on
    assert found["processes"] == 1 + 3 + 3 * 3 + 5 + served + limits.PASSING_PROCESSES
    relays = addressed("examples/devices", "connections.cam.mode=relay").scenario
    (relaying,) = (one for one in exceeded(relays, Readings((6, 1), *[0] * 6)) if one.what == "processes")
    assert relaying.needed == found["processes"] + 2 * 3


def test_a_bridge_has_a_port_for_each_pod_of_a_cluster_on_a_node() -> None:
    assert exceeded(scenario(pods=1023), AMPLE) == []
    (limit,) = exceeded(scenario(pods=1024), AMPLE)
    assert str(limit) == (
        "ports of a bridge, cluster a's on n1: the scenario needs 1,024, there are 1,023 "
        "(the kernel's BR_MAX_PORTS)"
    )


def test_each_zone_s_switch_has_a_port_for_its_trunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BRIDGE_PORTS", 4)
    (limit,) = exceeded(zoned(nodes=4), AMPLE)
    assert (limit.what, limit.needed) == ("ports of a bridge, the switch of zone north", 5)
    assert exceeded(zoned(nodes=3), AMPLE) == []


def test_what_a_trunk_holds_takes_memory() -> None:
    assert exceeded(zoned(rate="1G", delay=0.1), AMPLE) == []
    (limit,) = exceeded(zoned(rate="1T", delay=1.0), AMPLE)
    assert limit.what == "MB of memory"
    assert limit.needed > 2 * 1e12 / 8 / 1e6


def zoned(nodes: int = 4, **zone: object) -> Scenario:
    data = scenario(nodes).model_dump(by_alias=True)
    data["nodes"] = {name: {"zone": "north"} for name in data["nodes"]}
    return Scenario.model_validate({**data, "zones": {"north": zone}})


def test_permanent_neighbours_count_before_linux_5() -> None:
    old = Readings(**{**vars(AMPLE), "release": (4, 19)})
    assert exceeded(scenario(nodes=32), old) == []  # 32 * 31 = 992
    (limit,) = exceeded(scenario(nodes=33), old)
    assert (limit.what, limit.needed, limit.there) == ("permanent neighbours", 1056, 1024)


def test_this_machine_tells_what_it_allows() -> None:
    found = limits.read()
    assert found.release >= (3, 0)
    assert found.processes is not None
    assert 0 < found.processes < 2**22  # PID_MAX_LIMIT
    assert found.memory is not None
    assert found.memory > 10


def test_a_machine_that_is_too_small_is_no_machine_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "read", lambda: Readings(release=(6, 1), net_namespaces=3, processes=10))
    with pytest.raises(LookupError, match=r"(?s)^--provider netns: .*\nnetwork namespaces: .*\nprocesses: "):
        limits.demand(scenario())
