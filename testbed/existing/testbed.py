"""A scenario on clusters that exist already: its pods are made there, and nothing else is touched."""

from __future__ import annotations

import os
from typing import Any

from testbed.existing import clusters
from testbed.existing.orchestrator import Pods
from testbed.existing.provider import Nodes
from testbed.existing.survey import CONFIGURATION, Answers, Ground, survey
from testbed.kubernetes.images import TRAFFIC
from testbed.networks import underlay
from testbed.scenario import Scenario, ScenarioError, Traffic
from testbed.testbed import Progress, Testbed

IMAGE = "CONCORDE_BENCH_IMAGE"  # an environment variable: the pods' image, if not the testbed's own


class ExistingTestbed(Testbed):
    """A scenario on clusters that exist; only pods are its own. See Testbed."""

    __test__ = False

    def __init__(self, scenario: Scenario, kubeconfigs: str) -> None:
        """Look at the clusters. Raises LookupError and ScenarioError for all that speaks against a run."""
        asking = clusters.clients(scenario, kubeconfigs)
        self._ground, faults = survey(scenario, {name: ask(client) for name, client in asking.items()})
        if faults:
            raise ScenarioError(f"scenario {scenario.name}", faults)
        image = os.environ.get(IMAGE, TRAFFIC)
        nodes = Nodes(scenario, self._ground, asking, image)
        super().__init__(scenario, nodes, "kubernetes")
        self._nodes = nodes
        self._pods = Pods(nodes, self._ground, asking, image)

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
            return underlay.uplink(self.scenario, self.scenario.node_of(name))
        return super().interface_of(name)

    def address_for(self, traffic: Traffic) -> str:
        """Return where the sender of a transfer finds its receiver: containers have their node's address."""
        return self.place(traffic.destination).address


def facts(scenario: Scenario, ground: Ground) -> dict[str, Any]:
    """Return what is known of the clusters, for the recording."""
    return {
        cluster: {
            "configuration": ground.networks[cluster],
            "nodes": {node: dict(m.facts) for (of, node), m in ground.machines.items() if of == cluster},
        }
        for cluster in scenario.clusters
    }


def ask(client: clusters.Outside) -> Answers:
    """Return what a cluster's API says of its nodes, and of how they keep guarantees."""
    configured = client.run(
        "get",
        "configmap",
        CONFIGURATION,
        f"--namespace={CONFIGURATION}",
        "--ignore-not-found",
        "--output=json",
    )
    found = configured.json() if configured.stdout.strip() else {}
    return Answers(client.get("nodes")["items"], found.get("data") or {})
