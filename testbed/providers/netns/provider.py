"""Brings up nodes and devices, network namespaces in a sandbox, and plugs them into switches there."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from testbed.access.batch import Step, take
from testbed.access.local import ENVIRONMENT
from testbed.access.place import Feature, InNamespace, Place, in_parallel
from testbed.links import segments, underlay
from testbed.links.ports import hardware_address
from testbed.links.segments import Device
from testbed.links.trunks import ALL, RELAY, Cable, Running, Trunk, trunks
from testbed.providers import Provider
from testbed.providers.netns import limits
from testbed.providers.netns.processes import RUN
from testbed.providers.netns.sandbox import Entrance, Sandbox, node_directory
from testbed.scenario import Scenario, connections
from testbed.scenario.addressing import Addressing, Found
from testbed.scenario.links import Link

WITHOUT_NETEM = "this kernel has no netem (CONFIG_NET_SCH_NETEM; modprobe sch_netem)"
HERE = "/proc/self/ns/net"
SETTLE = [sys.executable, "-I", "-S", str(Path(__file__).with_name("settle.py"))]


class NetnsProvider(Provider):
    """Brings up a scenario's nodes in a sandbox, where all have this machine's clock and processors."""

    def __init__(self, addressing: Addressing, name: str = RUN, transfers: bool = True) -> None:
        """Raise LookupError if this machine is too small for the scenario, or cannot make its trunks.

        Without its ``transfers``, devices answer at the ports of these, too.
        """
        limits.demand(addressing.scenario)
        self._means = chosen_means(addressing.scenario)
        self._addressing = addressing
        self._name = name
        self._taken = connections.sent(addressing.scenario) if transfers else {}
        self.sandbox: Sandbox | None = None
        self.nodes: dict[str, Entrance] = {}
        self.hops: list[Entrance] = []
        self.trunks: list[Running] = []
        self.devices: dict[str, Device] = {}

    def counters(self) -> Iterable[tuple[Link, str, str]]:
        """As for all."""
        return underlay.counters(self._addressing)

    def up(self) -> Found:
        """Start the sandbox, make nodes, trunks and devices, and plug the cables into the switches."""
        scenario = self._addressing.scenario
        self.sandbox = box = Sandbox.start(self._name)
        self.hops = [box.switch]  # one place has all of them
        places = [*scenario.nodes, *scenario.devices]
        box.add_nodes(places)
        self.nodes = {name: box.node(name) for name in scenario.nodes}
        self.devices = {
            name: Device(box.node(name), scenario, self._taken.get(name, ())) for name in scenario.devices
        }
        namespaces = {name: _network(name) for name in places}
        links = underlay.render_switch(self._addressing, namespaces, self._means)
        links += segments.render_switches(scenario, namespaces)
        box.switch.run(["ip", "-batch", "-"], stdin=links)
        rates = underlay.render_rates(self._addressing, self._means) + segments.render_rates(scenario)
        if rates:
            box.switch.run(["tc", "-batch", "-"], stdin=rates)
        self.trunks = in_parallel(lambda one: one[1].start(one[0], box.switch), self._means.items())
        others = mates(scenario, _limit())
        in_parallel(lambda name: self._connect(name, others.get(name, ())), scenario.nodes)
        in_parallel(lambda device: device.up(), self.devices.values())
        return Found()

    @property
    def hub(self) -> Entrance:
        """Where the switch is; see testbed.providers.Together."""
        if self.sandbox is None:
            raise RuntimeError("the nodes are not up")
        return self.sandbox.switch

    def inside(self, place: Place) -> str:
        """Return the path of a network namespace; see testbed.providers.Together."""
        path = _network(place.name) if place.name in self.nodes else _path(place)
        if path is None:
            raise LookupError(f"{place.name} has no network namespace of its own")
        return path

    def settle(self, networks: Sequence[Place]) -> None:
        """Settle the switch, the nodes and these networks; see testbed.providers.netns.settle."""
        assert self.sandbox is not None
        inside = [path for network in networks if (path := _path(network)) is not None]
        paths = [HERE, *map(_network, [*self.nodes, *self.devices]), *inside]
        self.sandbox.switch.run(SETTLE, stdin="\n".join(paths))
        others = [network for network in networks if _path(network) is None]
        in_parallel(lambda network: network.run(SETTLE, stdin=HERE), others)

    def down(self) -> None:
        """End the sandbox and with it all it holds."""
        if self.sandbox is not None:
            self.sandbox.stop()
            self.sandbox, self.hops = None, []

    def _connect(self, name: str, others: Iterable[str]) -> None:
        text = underlay.render_uplink(self._addressing, name)
        text += render_neighbours(self._addressing, name, others)
        in_segments = segments.gateway_steps(self._addressing.scenario, name)
        take(self.nodes[name], [Step(["ip", "-batch", "-"], text), *in_segments])


def _network(node: str) -> str:
    """Return the path, within the sandbox, of a node's network namespace."""
    return f"{node_directory(node)}/ns/net"


def _path(place: Place) -> str | None:
    """Return the path, within the sandbox, of a network namespace that lies in a node's own mounts."""
    if isinstance(place, InNamespace) and isinstance(place.node, Entrance):
        return f"{node_directory(place.node.name)}/root{place.namespace}"
    return None


def chosen_means(scenario: Scenario) -> dict[Trunk, Cable]:
    """Return what makes each trunk: the first that can, which is found by trying.

    Raises LookupError with what this machine lacks.
    """
    return {trunk: _first_means(trunk) for trunk in trunks(scenario, underlay.SWITCH)}


def _first_means(trunk: Trunk) -> Cable:
    for means in ALL:
        if means.suits(trunk.settings) and (means.feature is None or has_feature(means.feature)):
            return means
    if RELAY.suits(trunk.settings):
        message = (
            f"delay: {WITHOUT_NETEM}, and our own relay needs /dev/net/tun, open to you "
            "(CONFIG_TUN; modprobe tun)"
        )
    else:
        field = next(name for name in ("jitter", "loss", "reorder") if getattr(trunk.settings, name))
        message = f"{field}: {WITHOUT_NETEM}, and our own relay can only delay; leave {field} out"
    raise LookupError(f"--provider netns: zones.{trunk.zone}.{message}")


@functools.cache
def has_feature(feature: Feature) -> bool:
    """Tell whether this machine has a feature, in a network of its own, which ends with that."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--net", *feature.command]
    return subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False).returncode == 0


# A machine's kernel keeps what all network namespaces learn by ARP in one table, of 1,024 entries if nobody
# has changed that (``gc_thresh3``, net/core/neighbour.c). 33 nodes of which each talks to all others fill it,
# as those of a BGP mesh do; then packets are lost, and not in this testbed alone. Permanent entries do not
# count.
NEIGHBOUR_LIMIT = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
NEIGHBOUR_SHARE = 0.5  # of the table that one testbed may fill: it is not the only one
# A full mesh of 200 nodes. Larger ones do not talk all to all, and so many entries would take their time.
MOST_NEIGHBOURS = 40_000


def mates(scenario: Scenario, limit: int) -> Mapping[str, Collection[str]]:
    """Return the nodes with which each shares a cluster, if they are too many for the kernel's table."""
    found: dict[str, set[str]] = {name: set() for name in scenario.nodes}
    for cluster in scenario.clusters.values():
        for name in cluster.nodes:
            found[name] |= {other for other in cluster.nodes if other != name}
    count = sum(map(len, found.values()))
    return found if limit * NEIGHBOUR_SHARE < count <= MOST_NEIGHBOURS else {}


def render_neighbours(addressing: Addressing, node: str, others: Iterable[str]) -> str:
    """Return the ``ip -batch`` text that tells a node the hardware addresses of others."""
    addresses = [addressing.address(other) for other in sorted(others)]
    return "".join(
        f"neighbour replace {address} lladdr {hardware_address(address)}"
        f" dev {addressing.uplink(node)} nud permanent\n"
        for address in addresses
    )


def _limit() -> int:
    return int(NEIGHBOUR_LIMIT.read_text(encoding="ascii")) if NEIGHBOUR_LIMIT.exists() else 1024
