"""What a node knows of a pod's attachment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.access.place import Node
from testbed.kubernetes.worker import RESULTS
from testbed.runtime.cni import (
    Attachment,
    CniError,
    NetworkList,
    Runtime,
    address,
    host_interface,
    own_interface,
)


@dataclass(frozen=True)
class Attached:
    """What libcni keeps of a pod's attachment, in the cell of its cluster and node."""

    cell: Node
    cached: Mapping[str, Any]

    @property
    def container(self) -> str:
        """The identity of the pod's sandbox."""
        identity: str = self.cached["containerId"]
        return identity

    @property
    def arguments(self) -> dict[str, str]:
        """The CNI_ARGS of its ADD."""
        return dict(self.cached["cniArgs"])

    @property
    def result(self) -> dict[str, Any]:
        """The last plugin's result."""
        result: dict[str, Any] = self.cached["result"]
        return result

    @property
    def namespace(self) -> str:
        """The path of the pod's network namespace, in the cell."""
        path: str = own_interface(self.result)["sandbox"]
        return path

    @property
    def host_interface(self) -> str:
        """The node's end of its pair; empty without one."""
        return host_interface(self.result)

    @property
    def address(self) -> str:
        """The pod's address."""
        return address(self.result)

    def complaint(self, network: NetworkList, directories: Sequence[str]) -> str | None:
        """Let the plugins, found in these directories, check it; return what they say is wrong."""
        attachment = Attachment(
            container_id=self.container,
            namespace=self.namespace,
            interface=self.cached["ifName"],
            capabilities=self.cached.get("capabilityArgs") or {},
            arguments=self.arguments,
        )
        try:
            Runtime(self.cell, tuple(directories)).check(network, attachment, self.result)
        except CniError as error:
            return str(error)
        return None


def read_results(cell: Node) -> Iterable[dict[str, Any]]:
    """Yield what libcni keeps in a cell of every attachment to a network of pods."""
    listed = cell.run(["find", RESULTS, "-type", "f", "-name", "*-eth0"], check=False).stdout.split()
    for file in listed:
        shown = cell.run(["cat", file], check=False)
        if shown.status == 0:
            yield json.loads(shown.stdout)
