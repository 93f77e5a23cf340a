"""Pods without Kubernetes: a network namespace each, attached as a container runtime does it, by CNI."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

from testbed import resources
from testbed.access.batch import Step, take
from testbed.access.components import Component
from testbed.access.place import Apart, InNamespace, Node, Resolving, in_parallel, path_on
from testbed.enforcements.enforcement import Enforcement
from testbed.orchestrators import Orchestrator
from testbed.runtime import names, proxies
from testbed.runtime.cni import Attachment, CniError, Json, NetworkList, Runtime, address, host_interface
from testbed.scenario import services
from testbed.scenario.addressing import Addressing, Found
from testbed.supplies import packages

# What the runtime keeps of them. A machine's is in the run's directory there, if it was brought anything: who
# was not has plugins that need none of it.
ATTACHMENTS = "/run/cni-attachments"


def _socat() -> Path:
    return packages.find(proxies.PACKAGE, proxies.PROGRAM)


class CniOrchestrator(Orchestrator):
    """Runs pods as containerd would, minus the containers."""

    pods: dict[str, InNamespace]

    def __init__(self, addressing: Addressing, enforcement: Enforcement, nodes: Mapping[str, Node]) -> None:
        self._addressing, self._enforcement = addressing, enforcement
        self._scenario = addressing.scenario
        self._nodes = nodes
        self._runtimes: dict[str, Runtime] = {}
        self._results: dict[str, Json] = {}
        self._relays: dict[str, list[Component]] = {}  # of proxy pods
        self.add_s: dict[str, float] = {}
        self._show()

    def up(self, progress: Callable[[str], None], without: Collection[str] = ()) -> Found:
        """Start the pods; one after another on each node and cluster, so that addresses follow names."""
        progress("pods")
        self._enforcement.prepare()
        if self._addressing.proxies:
            resources.build_plugin()
        runners = dict.fromkeys(pod.node for pod in self._addressing.pods.values())
        self._runtimes = dict(zip(runners, in_parallel(self._provide, runners), strict=True))
        groups: dict[tuple[str, str], list[str]] = {}
        for name, pod in self._addressing.pods.items():
            if name not in without:
                groups.setdefault((pod.node, pod.cluster), []).append(name)
        # A cluster at a time: a node's first pod, of whatever cluster, finds out what all others go by.
        in_parallel(self._start_all, [groups[one] for one in sorted(groups, key=itemgetter(1))])
        in_parallel(self._keep, runners)
        self._show()
        return Found()

    def add(self, name: str) -> None:
        """Attach a pod; see Orchestrator. What was refused is taken away, as a runtime does."""
        try:
            self._start_all([name])
            self._keep(self._addressing.pods[name].node)
        except CniError:
            with suppress(CniError):
                self._detach(name, None)
            raise
        self._show()

    def remove(self, name: str) -> None:
        """Detach a pod; its namespace stays, empty; see Orchestrator."""
        in_parallel(lambda relay: relay.kill(), self._relays.pop(name, ()))
        self._detach(name, self._results[name])
        del self._results[name]
        self._show()

    def check(self) -> list[str]:
        """Let the plugin check every pod; see Orchestrator."""
        relays = [one for each in self._relays.values() for one in each]
        ended = in_parallel(lambda relay: relay.fault(), relays)
        return [fault for fault in (*ended, *in_parallel(self._check, self.pods)) if fault]

    def down(self) -> None:
        """Leave the pods to the end of their nodes, which is the end of all that the plugin made."""

    def _show(self) -> None:
        """Let everybody know the pods that are attached; each is its network."""
        attached = [name for name in self._addressing.pods if name in self._results]
        self.pods = {name: self._place(name) for name in attached}
        self.networks = self.pods

    def _provide(self, name: str) -> Runtime:
        """Return what calls the plugins on a node, once they and the pods' namespaces are there."""
        node, directories = self._nodes[name], list(resources.REFERENCE_PLUGINS)
        cache = None if isinstance(node, Apart) else ATTACHMENTS
        if self._enforcement.programs is not None:
            there = path_on(node, self._enforcement.programs)
            directories.insert(0, there)
            cache = cache or f"{Path(there).parent}/attachments"
        if self._addressing.proxies:
            directories.append(str(resources.BUILT_PLUGIN))
        self._make_namespaces(node)
        return Runtime(node, tuple(directories), cache)

    def _make_namespaces(self, node: Node) -> None:
        """Make the network namespaces of a node's pods, each with its loopback, as a runtime does."""
        pods = self._addressing.pods_on(node.name)
        steps = names.preparation(self._addressing, node.name)
        steps += [Step(["ip", "-batch", "-"], "".join(f"netns add {pod}\n" for pod in pods))]
        for pod in pods:
            enter = f"--net={self._addressing.namespace(pod)}"
            steps.append(Step(["nsenter", enter, "ip", "link", "set", "lo", "up"]))
        steps += proxies.preparation(self._addressing, node.name, self._enforcement.segment_plugin)
        take(node, steps)

    def _start_all(self, names: Sequence[str]) -> None:
        """Start the pods of one node and cluster."""
        runtime = self._runtime(names[0])
        for name in names:
            network, attachment = self._network(name), self._attachment(name)
            begin = time.monotonic()
            try:
                self._results[name] = runtime.add(network, attachment)
            except CniError as error:
                raise CniError(f"pod {name} on {runtime.node.name}: {error}") from None
            self.add_s[name] = time.monotonic() - begin
            if name in self._addressing.proxies:
                self._relays[name] = proxies.start_relays(self._addressing, self._network_of(name), _socat)

    def _keep(self, node: str) -> None:
        """Have the runtime of a node keep what is known of the pods there."""
        self._runtimes[node].keep(
            [
                (self._network(name), self._attachment(name), self._results[name])
                for name in self._addressing.pods_on(node)
                if name in self._results
            ]
        )

    def _detach(self, name: str, result: Json | None) -> None:
        self._runtime(name).delete(self._network(name), self._attachment(name), result)

    def _check(self, name: str) -> str | None:
        try:
            self._runtime(name).check(self._network(name), self._attachment(name), self._results[name])
        except CniError as error:
            return f"pod {name}: {error}"
        return None

    def _runtime(self, name: str) -> Runtime:
        return self._runtimes[self._addressing.pods[name].node]

    def _network(self, name: str) -> NetworkList:
        pod = self._addressing.pods[name]
        plain = self._enforcement.network_list(pod.cluster, pod.node)
        return proxies.network_list(plain, self._addressing, pod.cluster, [name])

    def _attachment(self, name: str) -> Attachment:
        plain = self._enforcement.attachment(name)
        is_proxy = name in self._addressing.proxies
        return proxies.attachment(plain, self._addressing, name) if is_proxy else plain

    def _network_of(self, name: str) -> InNamespace:
        """Return the network namespace of a pod that is attached, with its node's own files."""
        result = self._results[name]
        return InNamespace(
            name=name,
            node=self._runtime(name).node,
            namespace=self._addressing.namespace(name),
            address=address(result),
            host_interface=host_interface(result),
        )

    def _place(self, name: str) -> InNamespace:
        place, cluster = self._network_of(name), self._addressing.pods[name].cluster
        named = cluster in services.clusters(self._scenario)
        return Resolving(**vars(place), resolver=names.resolver(cluster)) if named else place
