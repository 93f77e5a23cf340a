"""Pod networks whose daemons tell each other what they know by the API of the cluster that they join.

They are started once there is an API, each with a name of its own and the rights of its own node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.access.components import Component
from testbed.access.place import Node, in_parallel
from testbed.access.steps import Step, take
from testbed.kubernetes import manifests
from testbed.kubernetes.certificates import Subject
from testbed.kubernetes.control_plane import ControlPlane, directory_of, endpoint
from testbed.kubernetes.manifests import Manifest, name_of
from testbed.overlays.daemons import Find, Joining
from testbed.overlays.pod_network import Api
from testbed.overlays.registry import of_cluster
from testbed.scenario.addressing import Addressing


def clusters(addressing: Addressing) -> Iterable[str]:
    """Return the clusters whose networks have a use for an API."""
    names = addressing.scenario.clusters
    return [name for name in names if of_cluster(addressing, name).rights(name)]


class ByApi:
    """One cluster's network, joined by daemons that ask the cluster's API."""

    def __init__(self, addressing: Addressing, cluster: str, nodes: Mapping[str, Node], find: Find) -> None:
        self._addressing, self.cluster = addressing, cluster
        self._nodes = {name: nodes[name] for name in addressing.scenario.clusters[cluster].nodes}
        directory, (address, port) = directory_of(cluster), endpoint(addressing, cluster)
        self._api = Api(
            f"https://{address}:{port}", f"{directory}/overlay.pem", f"{directory}/overlay.crt", name_of
        )
        self._network = of_cluster(addressing, cluster).by_api(self._api)
        self._joining = Joining({cluster: self._network}, addressing, nodes, find)

    @property
    def components(self) -> list[Component]:
        """What must be running."""
        return self._joining.components

    @property
    def manifests(self) -> list[Manifest]:
        """What the API must be told first: who may do what, and the master as a node with a subnet."""
        rights = {name: self._network.rights(name_of(name)) for name in self._nodes}
        allowed = [one for name, rules in rights.items() for one in manifests.allowed(_user(name), rules)]
        return [*allowed, manifests.master(self._addressing, self.cluster)]

    def up(self, control_plane: ControlPlane) -> None:
        """Start the daemons, and wait until they have joined all nodes. Raises ComponentError."""
        in_parallel(lambda name: self._identify(name, control_plane), self._nodes)
        self._joining.up()

    def faults(self) -> list[str]:
        """Return, in words, what has ended, and what is no longer there of all that joins the nodes."""
        return self._joining.faults()

    def _identify(self, name: str, control_plane: ControlPlane) -> None:
        """Let a node's daemons be known to the API, and the API to them."""
        take(
            self._nodes[name],
            [
                Step(["mkdir", "-p", directory_of(self.cluster)]),
                Step(["tee", self._api.identity], control_plane.identity(Subject(_user(name)))),
                Step(["tee", self._api.authority], control_plane.certificate),
            ],
        )


def _user(node: str) -> str:
    return f"overlay:{name_of(node)}"
