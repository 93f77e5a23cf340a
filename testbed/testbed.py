"""A scenario brought to life: nodes, networks, containers and pods, ready for traffic."""

from __future__ import annotations

from collections.abc import Callable

from testbed.networks import containers, flannel, underlay
from testbed.nodes import InNamespace, Node, Place, in_parallel
from testbed.orchestrators import ORCHESTRATORS, Orchestrator, PodPlace
from testbed.providers import PROVIDERS, Provider
from testbed.scenario import Scenario, Traffic

Progress = Callable[[str], None]

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

    def __init__(self, scenario: Scenario, provider: Provider, orchestrator: str = "cni") -> None:
        self.scenario = scenario
        self.provider = provider
        self._orchestrator_name = orchestrator
        self._orchestrator: Orchestrator | None = None
        self.containers: dict[str, InNamespace] = {}

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes that are up, by name."""
        return dict(self.provider.nodes)

    @property
    def pods(self) -> dict[str, PodPlace]:
        """The running pods, by name."""
        return dict(self._orchestrator.pods) if self._orchestrator else {}

    def up(self, progress: Progress = lambda _: None) -> None:
        """Bring everything up; on failure nothing stays. Raises RuntimeError with what failed and why."""
        try:
            progress("nodes and underlay")
            self.provider.up()
            progress("pod and container networks")
            self.containers = {name: self._container(name) for name in self.scenario.containers}
            in_parallel(self._network, self.scenario.nodes)
            progress("pods")
            self._orchestrator = ORCHESTRATORS[self._orchestrator_name](self.scenario, self.nodes)
            self._orchestrator.up()
            if self.scenario.underlay.rate is not None:
                self._settle()
        except BaseException:
            self.provider.down()
            raise

    def down(self) -> None:
        """Take everything down."""
        self.provider.down()

    def check(self) -> list[str]:
        """Return, in words, every way in which the pods' networks are not as they were made."""
        return self._orchestrator.check() if self._orchestrator else ["the testbed is not up"]

    def place(self, name: str) -> PodPlace:
        """Return the pod or container of this name."""
        return self.pods[name] if name in self.pods else self.containers[name]

    def address_for(self, traffic: Traffic) -> str:
        """Return where the sender of a transfer finds its receiver.

        A container on another node is behind the published port of its node.
        """
        destination = traffic.destination
        if destination in self.scenario.containers:
            node = self.scenario.node_of(destination)
            if node != self.scenario.node_of(traffic.source):
                return str(underlay.addresses(self.scenario)[node].ip)
        return self.place(destination).address

    def _network(self, name: str) -> None:
        """Give one node its overlays and its container network."""
        scenario, node = self.scenario, self.provider.nodes[name]
        own_containers = containers.on_node(scenario, name)
        links = flannel.render_links(scenario, name)
        if own_containers:
            links += containers.render_links(scenario, name)
        node.run(["ip", "-batch", "-"], stdin=links)
        node.run(["bridge", "-batch", "-"], stdin=flannel.render_forwarding(scenario, name))
        node.run(["tee", "/proc/sys/net/ipv4/ip_forward"], stdin="1\n")
        node.run(["mkdir", "-p", "/run/flannel"])
        for cluster in flannel.clusters_of(scenario, name):
            text = flannel.render_subnet_file(scenario, cluster, name)
            node.run(["tee", flannel.subnet_file(cluster)], stdin=text)
        if own_containers:
            node.run(["nft", "-f", "-"], stdin=containers.render_translation(scenario, name))
        for container in own_containers:
            inside = containers.render_inside(scenario, container)
            self.containers[container].run(["ip", "-batch", "-"], stdin=inside)

    def _settle(self) -> None:
        """Let traffic wait for its class at all times: otherwise the senders are measured, not guarantees."""
        places: list[Place] = [self.place(n) for n in (*self.scenario.pods, *self.scenario.containers)]
        places += [*self.nodes.values(), *self.provider.between]
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


def assemble(scenario: Scenario, provider: str, orchestrator: str) -> Testbed:
    """Return a testbed of these parts, not yet up. Raises LookupError for a part there is not."""
    for kind, name, known in (
        ("provider", provider, PROVIDERS),
        ("orchestrator", orchestrator, ORCHESTRATORS),
    ):
        if name not in known:
            raise LookupError(f"no {kind} {name!r} ({kind}s: {', '.join(known)})")
    return Testbed(scenario, PROVIDERS[provider](scenario), orchestrator)
