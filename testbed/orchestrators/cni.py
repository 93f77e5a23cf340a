"""Pods without Kubernetes: a network namespace each, attached as a container runtime does it, by CNI."""

from __future__ import annotations

from collections.abc import Mapping

from testbed import plugin
from testbed.cni import Attachment, CniError, Json, NetworkList, Runtime
from testbed.nodes import InNamespace, Node, in_parallel
from testbed.scenario import Scenario

NAMESPACES = "/run/netns"


class CniOrchestrator:
    """Runs pods as containerd would, minus the containers; see testbed.orchestrators.Orchestrator."""

    def __init__(self, scenario: Scenario, nodes: Mapping[str, Node]) -> None:
        self._scenario = scenario
        directories = (str(plugin.DIRECTORY), *plugin.REFERENCE_DIRECTORIES)
        self._runtimes = {name: Runtime(node, directories) for name, node in nodes.items()}
        self._results: dict[str, Json] = {}
        self.pods: dict[str, InNamespace] = {}

    def up(self) -> None:
        """Start every pod; one after another on each node and cluster, so that addresses follow names."""
        plugin.build()
        groups: dict[tuple[str, str], list[str]] = {}
        for name, pod in self._scenario.pods.items():
            groups.setdefault((pod.node, pod.cluster), []).append(name)
        in_parallel(self._start_all, groups.values())
        self.pods = {name: self._place(name) for name in self._scenario.pods}

    def check(self) -> list[str]:
        """Let the plugin check every pod; see Orchestrator."""
        return [fault for fault in in_parallel(self._check, self._scenario.pods) if fault]

    def down(self) -> None:
        """Remove every pod, plugin first, namespace after."""
        in_parallel(self._stop, list(self.pods))
        self.pods = {}

    def _start_all(self, names: list[str]) -> None:
        for name in names:
            self._start(name)

    def _start(self, name: str) -> None:
        runtime = self._runtime(name)
        runtime.node.run(["ip", "-batch", "-"], stdin=f"netns add {name}\n")
        runtime.node.run(["nsenter", f"--net={NAMESPACES}/{name}", "ip", "link", "set", "lo", "up"])
        try:
            self._results[name] = runtime.add(self._network(name), self._attachment(name))
        except CniError as error:
            raise CniError(f"pod {name} on {runtime.node.name}: {error}") from None

    def _check(self, name: str) -> str | None:
        try:
            self._runtime(name).check(self._network(name), self._attachment(name), self._results[name])
        except CniError as error:
            return f"pod {name}: {error}"
        return None

    def _stop(self, name: str) -> None:
        runtime = self._runtime(name)
        runtime.delete(self._network(name), self._attachment(name), self._results.pop(name))
        runtime.node.run(["ip", "netns", "delete", name])

    def _runtime(self, name: str) -> Runtime:
        return self._runtimes[self._scenario.pods[name].node]

    def _network(self, name: str) -> NetworkList:
        pod = self._scenario.pods[name]
        return plugin.network_list(self._scenario, pod.cluster, pod.node)

    def _attachment(self, name: str) -> Attachment:
        return Attachment(
            container_id=f"{self._scenario.name}-{name}",
            namespace=f"{NAMESPACES}/{name}",
            capabilities=plugin.capabilities(self._scenario, self._scenario.pods[name]),
            arguments={"IgnoreUnknown": "1", "K8S_POD_NAMESPACE": "default", "K8S_POD_NAME": name.lower()},
        )

    def _place(self, name: str) -> InNamespace:
        result = self._results[name]
        return InNamespace(
            name=name,
            node=self._runtime(name).node,
            namespace=f"{NAMESPACES}/{name}",
            address=result["ips"][0]["address"].partition("/")[0],
            # The node's end of the pair is the interface without a sandbox that is no bridge: the one that
            # stands before the pod's (CNI specification, section 5 "Result types", interfaces).
            host_interface=result["interfaces"][result["ips"][0]["interface"] - 1]["name"],
        )
