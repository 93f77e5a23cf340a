"""A scenario brought to life: nodes, networks, containers and pods, ready for traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from testbed.access.clocks import Clock
from testbed.access.place import InNamespace, Node, Place, in_parallel
from testbed.access.pods import PodPlace
from testbed.kubernetes.client import Client
from testbed.networks import containers, vxlan
from testbed.orchestrators import Orchestrator
from testbed.providers import Provider
from testbed.scenario import Scenario, Traffic, addressing

Progress = Callable[[str], None]
# What makes an orchestrator of a scenario and its nodes, which are up.
Orchestrate = Callable[[Scenario, Mapping[str, Node]], Orchestrator]
ENTRIES = "flannel's entries, made by the testbed"

# Where links have a rate, packets queue for them, and nodes that share processors then disturb TCP in two
# ways that machines of their own do not.
#
# The packets of a flow wait in the backlogs of several processors and overtake each other, which TCP takes
# for loss. So every interface steers a flow's packets to one processor (receive packet steering, kernel
# Documentation/networking/scaling.rst), and RACK, for which what is later than a fraction of the round trip -
# here a few microseconds - is lost (RFC 8985, section 6.2), is off (ip-sysctl: tcp_recovery).
#
# And a sender waits for a processor now and then, longer than the 3 MB last that Linux's usual buffers let it
# send ahead: 6 ms of 4 Gbit/s. With these buffers what waits is limited by the queue of its class.
SETTLE = """
cd /proc/sys/net/ipv4 || exit 1
echo 0 >tcp_recovery
echo "4096 131072 33554432" >tcp_rmem
echo "4096 65536 33554432" >tcp_wmem
mount -t sysfs sysfs /sys || exit 0
while read -r name value; do
    [ "$name" != Cpus_allowed: ] || all=$value
done </proc/self/status
for queue in /sys/class/net/*/queues/rx-*/rps_cpus; do
    echo "$all" >"$queue" || exit 0  # for root only
done 2>/dev/null
"""


class Testbed:
    """One scenario on one provider's nodes, its pods run by one orchestrator."""

    __test__ = False  # not a test case, whatever its name tells pytest

    def __init__(self, scenario: Scenario, provider: Provider, orchestrate: Orchestrate) -> None:
        self.scenario = scenario
        self.provider = provider
        self._orchestrate = orchestrate
        self.orchestrator: Orchestrator | None = None
        self.containers: Mapping[str, PodPlace] = {}
        self.networks: Mapping[str, Place] = {}

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes that are up, by name."""
        return dict(self.provider.nodes)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What is known of clusters that are not the testbed's own, for the recording."""
        return {}

    @property
    def overlay(self) -> str:
        """What made the entries between the nodes, for the recording."""
        return (self.orchestrator.overlay if self.orchestrator else None) or ENTRIES

    @property
    def clients(self) -> list[Client]:
        """What asks the clusters' APIs, where there are any."""
        return list(self.orchestrator.clients) if self.orchestrator else []

    @property
    def pods(self) -> dict[str, PodPlace]:
        """The running pods, by name."""
        return dict(self.orchestrator.pods) if self.orchestrator else {}

    def up(self, progress: Progress = lambda _: None) -> None:
        """Bring everything up; on failure nothing stays. Raises RuntimeError with what failed and why."""
        try:
            progress("nodes and underlay")
            self.provider.up()
            self.scenario = self.provider.scenario
            self.orchestrator = self.make_orchestrator()
            progress("container networks" if self.orchestrator.overlay else "pod and container networks")
            if not self.orchestrator.overlay:
                in_parallel(self._overlay, self.scenario.nodes)
            networks = {name: self._container(name) for name in self.scenario.containers}
            in_parallel(lambda name: self._network(name, networks), self.scenario.nodes)
            self.orchestrator.up(progress)
            self.containers = self.orchestrator.contain(networks)
            self.networks = {**self.orchestrator.networks, **networks}
            if self.scenario.underlay.rate is not None and self.provider.between:
                self._settle()
        except BaseException:
            self.provider.down()
            raise

    def make_orchestrator(self) -> Orchestrator:
        """Return what runs the pods on the nodes that are up."""
        return self._orchestrate(self.scenario, self.nodes)

    def down(self) -> None:
        """Take everything down."""
        if self.orchestrator is not None:
            self.orchestrator.down()
        self.provider.down()

    def clocks(self) -> Mapping[str, Clock]:
        """Compare the nodes' clocks with ours; without those that have ours."""
        return self.provider.clocks()

    def check(self) -> list[str]:
        """Return, in words, every way in which the pods' networks are not as they were made."""
        return self.orchestrator.check() if self.orchestrator else ["the testbed is not up"]

    def place(self, name: str) -> PodPlace:
        """Return the pod or container of this name."""
        return self.pods[name] if name in self.pods else self.containers[name]

    def interface_of(self, name: str) -> str:
        """Return the interface by which a pod or container sends."""
        return "eth0"

    def address_for(self, traffic: Traffic) -> str:
        """Return where the sender of a transfer finds its receiver.

        A container on another node is behind the published port of its node.
        """
        destination = traffic.destination
        if destination in self.scenario.containers:
            node = self.scenario.node_of(destination)
            if node != self.scenario.node_of(traffic.source):
                return str(addressing.addresses(self.scenario)[node].ip)
        return self.place(destination).address

    def _overlay(self, name: str) -> None:
        """Give one node what flannel would make there for each of its clusters."""
        scenario, node = self.scenario, self.provider.nodes[name]
        node.run(["ip", "-batch", "-"], stdin=vxlan.render_links(scenario, name))
        node.run(["bridge", "-batch", "-"], stdin=vxlan.render_forwarding(scenario, name))
        node.run(["mkdir", "-p", "/run/flannel"])
        for cluster in addressing.clusters_of(scenario, name):
            text = vxlan.render_subnet_file(scenario, cluster, name)
            node.run(["tee", addressing.subnet_file(cluster)], stdin=text)

    def _network(self, name: str, in_containers: Mapping[str, Place]) -> None:
        """Let one node forward, and give it its container network."""
        scenario, node = self.scenario, self.provider.nodes[name]
        node.run(["tee", "/proc/sys/net/ipv4/ip_forward"], stdin="1\n")
        own_containers = containers.on_node(scenario, name)
        if own_containers:
            node.run(["ip", "-batch", "-"], stdin=containers.render_links(scenario, name))
            node.run(["nft", "-f", "-"], stdin=containers.render_translation(scenario, name))
        for container in own_containers:
            inside = containers.render_inside(scenario, container)
            in_containers[container].run(["ip", "-batch", "-"], stdin=inside)

    def _settle(self) -> None:
        """Let traffic wait for its class at all times: otherwise the senders are measured, not guarantees.

        Only where nodes share processors; machines of their own stay as they are.
        """
        places = [*self.networks.values(), *self.nodes.values(), *self.provider.between]
        in_parallel(lambda place: place.run(["unshare", "--mount", "sh", "-c", SETTLE]), places)

    def _container(self, name: str) -> InNamespace:
        node = self.scenario.containers[name].node
        index = containers.on_node(self.scenario, node).index(name)
        return InNamespace(
            name=name,
            node=self.provider.nodes[node],
            namespace=f"/run/netns/{name}",
            address=str(containers.address(self.scenario, name).ip),
            host_interface=containers.host_interface(index),
        )
