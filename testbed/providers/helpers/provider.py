"""Enters the nodes of clusters that exist: by a privileged pod on each, in the namespace of the run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.access.clocks import Clock
from testbed.access.local import ENVIRONMENT
from testbed.access.place import Node, Place, in_parallel
from testbed.access.remote import Remote
from testbed.clusters import kubeconfigs, manifests
from testbed.clusters.kubeconfigs import Outside
from testbed.clusters.namespaces import READY_SECONDS, Namespaces, lifetime
from testbed.clusters.survey import Ground, ask, needed, survey
from testbed.enforcements import registry as enforcements
from testbed.links.trunks import Running
from testbed.scenario import Scenario, ScenarioError
from testbed.scenario.addressing import UPLINK, Addressing
from testbed.scenario.found import Found
from testbed.supplies.images import TRAFFIC

IMAGE = "CONCORDE_BENCH_IMAGE"  # an environment variable: the pods' image there, if not the testbed's own

# From a helper into its node, whose programs are found as in the testbed's own nodes.
ENTRANCE = ("chroot", manifests.NODE, "env", f"PATH={ENVIRONMENT['PATH']}")


@dataclass(frozen=True)
class ExistingNode(Remote):
    """A node, entered by ``kubectl exec`` into its helper, whose root directory is then the node's."""

    @property
    def cgroup(self) -> str:
        """Nothing is made there."""
        return ""


class HelpersProvider:
    """The nodes with pods or containers of a scenario; see testbed.providers.Provider.

    It has the namespace that everything of the run is in, and the ways into its pods.
    """

    def __init__(
        self,
        scenario: Scenario,
        ground: Ground,
        clients: Mapping[str, Outside],
        image: str,
        seconds: int | None = None,
    ) -> None:
        """``seconds`` is how long all pods last at most, if not for a run."""
        self._scenario = scenario
        self.seconds = lifetime(scenario) if seconds is None else seconds
        self.ground = ground
        self.clients = clients
        self.image = image
        self._namespaces = Namespaces(clients.values(), self.seconds)
        self.entered: dict[tuple[str, str], ExistingNode] = {}  # by cluster and node
        self.nodes: dict[str, Node] = {}

    @property
    def hops(self) -> Sequence[Place]:
        """Whatever there is, it is not ours."""
        return []

    @property
    def trunks(self) -> Sequence[Running]:
        """None: the links are not ours."""
        return ()

    @property
    def hosts(self) -> Sequence[Place]:
        """Nothing that is known of."""
        return []

    def clocks(self) -> Mapping[str, Clock]:
        """Nothing: transfers begin when they are told, by our clock."""
        return {}

    def up(self) -> Found:
        """Make namespaces and helpers. Raises RuntimeError; LookupError while another run is under way."""
        self._namespaces.claim()
        in_parallel(self._help, self.clients)
        for (cluster, node), machine in self.ground.machines.items():
            client = self.clients[cluster]
            way = client.execution(manifests.helper_name(node))
            self.entered[cluster, node] = ExistingNode(node, client.place, [*way, *ENTRANCE])
            self.nodes.setdefault(node, self.entered[cluster, node])
            assert machine.address, f"the API tells no address of {machine.name}"
        return self._found()

    def settle(self, networks: Sequence[Place]) -> None:
        """Leave everything as it is: it is not ours."""

    def down(self) -> None:
        """Remove the namespaces that were made, with all that is in them."""
        self._namespaces.remove()

    def keep(self, name: str, state: str) -> None:
        """Let everything stay when this process ends, as a testbed of this name."""
        self._namespaces.keep(name, state)

    def way_into(self, name: str, client: Outside, pod: Mapping[str, Any]) -> tuple[Place, Sequence[str]]:
        """Return the way by the API; see Ways."""
        return client.place, client.execution(pod["metadata"]["name"])

    def _help(self, cluster: str) -> None:
        client = self.clients[cluster]
        machines = {node: m for (of, node), m in self.ground.machines.items() if of == cluster}
        helpers = [manifests.helper(n, m, self.image, self.seconds) for n, m in machines.items()]
        if machines:
            client.apply(helpers)
            client.wait_until_ready([manifests.helper_name(node) for node in machines], READY_SECONDS)

    def _found(self) -> Found:
        """Return the names and uplinks that the nodes really have."""
        names = list(needed(self._scenario))
        return Found(
            uplinks=dict(zip(names, in_parallel(self._uplink, names), strict=True)),
            names={name: self.ground.machine(name)[1].name for name in names},
        )

    def _uplink(self, name: str) -> str:
        """Return the device by which a node reaches another one, or its default route's."""
        others = [m.address for (_, node), m in self.ground.machines.items() if node != name]
        asked = ["get", others[0]] if others else ["show", "default"]
        routes: list[dict[str, Any]] = self.nodes[name].run(["ip", "-j", "route", *asked]).json()
        return routes[0]["dev"] if routes else UPLINK


def on_clusters(addressing: Addressing, given: str, seconds: int | None = None) -> HelpersProvider:
    """Look at the clusters that kubeconfigs lead to, and return a provider of their nodes.

    ``seconds`` is how long pods last there at most, if not for a run.

    Raises LookupError for kubeconfigs, ScenarioError for all that speaks against a testbed there.
    """
    scenario = addressing.scenario
    clients = kubeconfigs.clients(scenario, given)
    answers = {name: ask(client) for name, client in clients.items()}
    ground, faults = survey(scenario, enforcements.of(addressing), answers)
    if faults:
        raise ScenarioError(f"scenario {scenario.name}", faults)
    return HelpersProvider(scenario, ground, clients, os.environ.get(IMAGE, TRAFFIC), seconds)
