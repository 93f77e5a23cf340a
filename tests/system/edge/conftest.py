"""What tests of overlays share: an etcd, a node with a VTEP, and testbeds of each generation of flannel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from testbed.access.place import Node
from testbed.assembly import assemble
from testbed.providers.netns.sandbox import Sandbox
from testbed.scenario import load
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests.paths import ROOT
from tests.system.edge import events

SCENARIO = ROOT / "scenarios" / "examples" / "vxlan-miss.yaml"


@pytest.fixture(scope="session")
def etcd() -> str:
    """The path of etcd."""
    try:
        return str(packages.find("etcd-server", "etcd"))
    except LookupError as error:
        pytest.skip(str(error))


@pytest.fixture
def box() -> Iterator[Sandbox]:
    started = Sandbox.start("tests.overlay")
    yield started
    started.stop()


@pytest.fixture
def resolved(etcd: str) -> Iterator[Callable[[str, str], Testbed]]:
    """What brings up the example with entries of both layers by miss or ahead."""
    del etcd  # which it needs
    up: list[Testbed] = []

    def bring_up(l2: str, l3: str, changes: Sequence[str] = ()) -> Testbed:
        resolve = f"clusters.a.resolve={{l2: {l2}, l3: {l3}}}"
        testbed = assemble(load(SCENARIO, [resolve, *changes]), "netns", "cni")
        testbed.up()
        up.append(testbed)
        return testbed

    yield bring_up
    for testbed in up:
        testbed.down()


def give_vtep(node: Node, l2: str, l3: str) -> None:
    """Make a node with an uplink, behind which nobody is but a few addresses, and flannel's device."""
    flags = "" if l2 == "ahead" else "proxy l2miss" if l3 == "miss" else "l2miss"
    prefix = 16 if l3 == "miss" else 32
    lines = [
        "link set lo up",
        "link add eth0 type veth peer name eth1",
        "link set eth1 up",
        "link set eth0 up",
        f"address add {events.HERE}/24 dev eth0",
        *(f"neighbour add {one} lladdr 0e:00:00:00:00:99 dev eth0 nud permanent" for one in events.ADDRESSES),
        f"link add flannel.1 address {events.OWN_MAC} mtu 1450 type vxlan id 1 dev eth0 "
        f"local {events.HERE} dstport 8472 nolearning {flags}",
        "link set flannel.1 addrgenmode none",
        "link set flannel.1 up",
        f"address add 10.1.1.0/{prefix} dev flannel.1",
    ]
    node.run(["ip", "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))
    node.run(["tee", "/proc/sys/net/ipv4/neigh/flannel.1/app_solicit"], stdin="3\n")
