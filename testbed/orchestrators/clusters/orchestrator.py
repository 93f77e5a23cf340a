"""A scenario on clusters that exist already: its pods are made there, and nothing else is touched."""

from __future__ import annotations

import os
from typing import Any

from testbed.clusters import kubeconfigs
from testbed.clusters.survey import ask, facts, survey
from testbed.orchestrators.clusters.pods import Pods
from testbed.providers.helpers.provider import Nodes
from testbed.scenario import Scenario, ScenarioError, Traffic, addressing
from testbed.supplies.images import TRAFFIC
from testbed.testbed import Progress, Testbed

IMAGE = "CONCORDE_BENCH_IMAGE"  # an environment variable: the pods' image, if not the testbed's own


class ExistingTestbed(Testbed):
    """A scenario on clusters that exist; only pods are its own. See Testbed."""

    __test__ = False

    def __init__(self, scenario: Scenario, given: str) -> None:
        """Look at the clusters. Raises LookupError and ScenarioError for all that speaks against a run."""
        asking = kubeconfigs.clients(scenario, given)
        self._ground, faults = survey(scenario, {name: ask(client) for name, client in asking.items()})
        if faults:
            raise ScenarioError(f"scenario {scenario.name}", faults)
        image = os.environ.get(IMAGE, TRAFFIC)
        nodes = Nodes(scenario, self._ground, asking, image)
        pods = self._pods = Pods(nodes, self._ground, asking, image)
        super().__init__(scenario, nodes, lambda *_: pods)
        self._nodes = nodes

    @property
    def facts(self) -> dict[str, Any]:
        """What the APIs say of the clusters, for the recording."""
        return facts(self.scenario, self._ground)

    def up(self, progress: Progress = lambda _: None) -> None:
        """Make the pods. On failure nothing stays. Raises RuntimeError with what failed and why."""
        try:
            progress("a way to the clusters' nodes")
            self.provider.up()
            self.scenario = self.provider.scenario
            progress("pods")
            self.orchestrator = self._pods
            self._pods.up(progress)
            self.containers = self._pods.contain({})
            self.networks = {}
            self.scenario = self._nodes.scenario = self._pods.scenario
        except BaseException:
            self.provider.down()
            raise

    def interface_of(self, name: str) -> str:
        """Return the interface by which a pod or container sends: a container has its node's."""
        if name in self.scenario.containers:
            return addressing.uplink(self.scenario, self.scenario.node_of(name))
        return super().interface_of(name)

    def address_for(self, traffic: Traffic) -> str:
        """Return where the sender of a transfer finds its receiver: containers have their node's address."""
        return self.place(traffic.destination).address
