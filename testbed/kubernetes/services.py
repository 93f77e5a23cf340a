"""Who serves a cluster's services: a proxy on each of its nodes, and beside its master who publishes hints.

Both are edge's programs, as any cluster gets them, and may do at the API what they may in any. Services are
objects of the API, and Kubernetes' own controller finds their endpoints by the labels of pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from edge.services import rules
from edge.services.annotations import wish
from edge.services.catalogue import SERVICES, SLICES, Catalogue, Name, Served, Where, name_of
from edge.services.endpoints import ZONE_LABEL
from edge.services.rules import Frame, State
from edge.watch import Listed
from testbed import resources
from testbed.access.batch import take, writing
from testbed.access.components import Component, ComponentError
from testbed.access.place import CommandError, Node, in_parallel
from testbed.kubernetes import endpoints, manifests
from testbed.kubernetes.client import Client
from testbed.kubernetes.control_plane import ControlPlane, Subject, directory_of, endpoint
from testbed.kubernetes.manifests import Manifest
from testbed.runtime import names
from testbed.runtime import services as objects
from testbed.scenario import reading, service_hints
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault, render_path
from testbed.supplies.versions import Version

# Accounts and rights: all but the workloads. The programs are started here.
RIGHTS = sorted((resources.EDGE / "deploy" / "services" / "manifests").glob("[123]*.yaml"))
NAMESPACE, PROXY, PUBLISHER = "concorde-services", "proxy", "hints"
READY_SECONDS = 300.0
AGREED_SECONDS = 5.0  # within which what changed last has come to the nodes
_Pods = Mapping[str, str]  # addresses of those that run, by name
_Documents = Sequence[dict[str, Any]]


class ClusterServices:
    """The services of one cluster."""

    def __init__(
        self,
        addressing: Addressing,
        cluster: str,
        nodes: Mapping[str, Node],
        client: Client,
        version: Version,
    ) -> None:
        own = addressing.scenario.clusters[cluster]
        self.cluster = cluster
        self._addressing, self._client = addressing, client
        self._names = [name for name, one in addressing.services.items() if one.cluster == cluster]
        self._version = (1, version.minor)
        self._frame = Frame(cluster, addressing.service_range(cluster))
        self._nodes = {name: nodes[name] for name in own.nodes}
        self._proxies = [self._proxy(node) for node in self._nodes.values()]
        self._publisher = self._publishing(nodes[own.master])

    @property
    def components(self) -> list[Component]:
        """What must be running."""
        return [*self._proxies, self._publisher]

    @property
    def manifests(self) -> list[Manifest]:
        """What the API must be told: what the programs may do, and the services."""
        return [
            *(reading.parse(file.read_text(encoding="utf-8")) for file in RIGHTS),
            *(
                objects.manifest(self._addressing, name, self._version, manifests.endpoint_label(name))
                for name in self._names
            ),
            *names.objects(self._addressing, self.cluster, self._version, manifests.name_of),
        ]

    def up(self, control_plane: ControlPlane) -> None:
        """Start the programs. Raises CommandError."""
        in_parallel(lambda one: self._start(one, control_plane), self.components)

    def wait(self, pods: _Pods) -> None:
        """Wait until all nodes lead to these pods, by their hints. Raises ComponentError or CommandError."""
        if lacking := self._lacking_after(READY_SECONDS, pods):
            raise ComponentError(lacking[0])

    def faults(self, pods: _Pods) -> list[str]:
        """Return, in words, in what a node's rules are not what the API says, or the API lacks a pod."""
        try:
            return self._lacking_after(AGREED_SECONDS, pods)
        except (ComponentError, CommandError) as error:
            return [str(error)]

    def _start(self, component: Component, control_plane: ControlPlane) -> None:
        authority = control_plane.authority
        account = PUBLISHER if component is self._publisher else PROXY
        subject = Subject(f"system:serviceaccount:{NAMESPACE}:{account}")
        files = {
            _identity(component.directory): authority.identify(subject),
            _authority(component.directory): authority.certificate,
        }
        take(component.place, writing(files))
        component.start()

    def _proxy(self, node: Node) -> Component:
        """Return a node's proxy: of zone and pods its Node tells it, as far as there is one."""
        told = ["--cluster", self.cluster, "--node", manifests.name_of(node.name)]
        told += ["--names", names.hosts(self.cluster)]
        return self._component("services' proxy", node, "services-proxy", told)

    def _publishing(self, master: Node) -> Component:
        text = service_hints.text_of_delays(self._addressing.scenario)
        told = ["--lease", f"{NAMESPACE}/{PUBLISHER}", *(("--delays", text) if text else ())]
        return self._component("publisher of hints", master, PUBLISHER, told)

    def _component(self, name: str, node: Node, program: str, told: Sequence[str]) -> Component:
        directory = f"{directory_of(self.cluster)}/{program}"
        address, port = endpoint(self._addressing, self.cluster)
        argv = [
            *("/usr/bin/python3", "-IS", str(resources.EDGE), program, *told),
            *("--services", str(self._frame.services)),
            *("--api", f"https://{address}:{port}"),
            *("--identity", _identity(directory), "--authority", _authority(directory)),
        ]
        return Component(f"{name} of cluster {self.cluster}", node, directory, argv)

    def _lacking_after(self, seconds: float, pods: _Pods) -> list[str]:
        """Return what lacks still after some time. Raises ComponentError if a program has ended."""

        def lacking() -> list[str]:
            words = list(self._lacking(pods))
            if words and (fault := next(filter(None, in_parallel(Component.fault, self.components)), None)):
                raise ComponentError(fault)
            return words

        return [f"services of cluster {self.cluster}: {words}" for words in endpoints.after(seconds, lacking)]

    def _lacking(self, pods: _Pods) -> Iterator[str]:
        """Yield in what API and nodes are not as they shall be. Raises CommandError."""
        found: dict[str, list[dict[str, Any]]] = {"Service": [], "EndpointSlice": [], "Node": []}
        for one in self._client.get("services,endpointslices,nodes", "--all-namespaces")["items"]:
            found[one["kind"]].append(one)
        services = {name_of(one): one for one in found["Service"]}
        for name in self._names:
            yield from self._unsettled(name, services, found["EndpointSlice"], pods)
        zones = {
            one["metadata"]["name"]: one["metadata"]["labels"].get(ZONE_LABEL, "") for one in found["Node"]
        }
        tables = dict(zip(self._nodes, in_parallel(self._table, self._nodes.values()), strict=True))
        for name, state in tables.items():
            api_name = manifests.name_of(name)
            where = Where(self._frame.services, api_name, zones.get(api_name, ""), self._version)
            if state is None:
                yield f"{name} lacks table ip {self._frame.table}"
            else:
                yield from _differences(name, state, served(where, found["Service"], found["EndpointSlice"]))

    def _unsettled(
        self, name: str, services: Mapping[Name, dict[str, Any]], slices: _Documents, pods: _Pods
    ) -> Iterator[str]:
        """Yield which pods of a service the API does not know to be ready, and whether it lacks hints."""
        addressing = self._addressing
        own = (manifests.NAMESPACE, manifests.name_of(name))
        if own not in services:
            yield f"there is no service {'/'.join(own)}"
            return
        built_in = wish(services[own], self._version).built_in
        ready = endpoints.ready(slices, own, hinted=not built_in)
        wanted = service_hints.slice_of(addressing, name, pods, pods)
        yield from endpoints.lacking(name, [one.address for one in wanted.endpoints], ready)
        (expected,) = service_hints.hinted(addressing, name, wanted).slices
        if any(one.hints for one in expected.endpoints) and not all(one.hints for one in ready):
            yield f"{name} lacks hints"

    def _table(self, node: Node) -> State | None:
        """Return what a node has of the cluster's services; nothing if it has no table."""
        shown = node.run(["nft", "-j", "-nn", "list", "table", "ip", self._frame.table], check=False)
        return rules.read(shown.json())[1] if shown.status == 0 else None


def refused(addressing: Addressing) -> Iterator[Fault]:
    """Yield what an API does not take: an address is one service's."""
    of: dict[IPv4Address, str] = {}
    for name in addressing.services:
        address = addressing.service(name)
        other = of.setdefault(address, name)
        if other != name:
            words = (
                f"{render_path(('services', other))} has {address} already, and an API gives it to one alone"
            )
            yield Fault(("services", name, "address"), f"{words}; take another")


def served(where: Where, services: _Documents, slices: _Documents) -> dict[Name, Served]:
    """Return what a proxy somewhere does, of what an API says."""
    catalogue = Catalogue(where)
    catalogue.take(Listed(SERVICES, list(services)))
    catalogue.take(Listed(SLICES[0], list(slices)))
    return catalogue.changes()


def _differences(node: str, state: State, wanted: Mapping[Name, Served]) -> Iterator[str]:
    """Yield the ports for which a node chooses among others than it should."""
    held = {port: frozenset(targets) for port, targets in state.endpoints.items()}
    chosen = {port: one.chosen for each in wanted.values() for port, one in each.ports.items()}
    for port in sorted(held.keys() | chosen.keys()):
        if held.get(port) != chosen.get(port):
            yield f"on {node} {port} leads to {_listed(held.get(port))}, not {_listed(chosen.get(port))}"


def _listed(targets: frozenset[rules.Target] | None) -> str:
    return "nowhere" if targets is None else ", ".join(map(str, sorted(targets))) or "a refusal"


def _identity(directory: str) -> str:
    return f"{directory}/identity.pem"


def _authority(directory: str) -> str:
    return f"{directory}/authority.crt"
