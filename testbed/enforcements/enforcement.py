"""What keeps the promises of one scenario's pods, as the rest of the testbed knows it; one module a kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from testbed.access.place import Place, PodPlace
from testbed.runtime.cni import Attachment, NetworkList
from testbed.scenario import Pod
from testbed.scenario.faults import Fault

# The paper's burst: 10 MiB at 1 Gbit/s (fig. 10), and as long at lower rates.
BURST = 10 * 2**20  # bytes
BURST_MILLISECONDS = 84  # how long that lasts at the least of the paper's rates, 1 Gbit/s

# A worker's bandwidth as an extended resource, so that the scheduler knows what fits on no node at all. It
# counts what guarantees count, in bits per second: a pod asks for exactly what its annotations say. Each
# cluster's scheduler sees the whole of an overlapped worker; what the other cluster holds there only the
# plugin's ledger knows, and has the last word.
RESOURCE = "concorde.contmec.dev/egress"


class Up(Protocol):
    """A testbed that is up, as far as an enforcement must know it."""

    @property
    def nodes(self) -> Mapping[str, Place]:
        """The nodes, by name."""

    @property
    def pods(self) -> Mapping[str, PodPlace]:
        """The running pods, by name."""


class Guarded(NamedTuple):
    """An interface by which packets may only leave through classes."""

    place: Place
    interface: str


@dataclass(frozen=True)
class Footprint:
    """What an enforcement makes on a node, beside the pods' own interfaces."""

    state: Sequence[str] = ()  # directories in which it keeps what it knows
    tables: Sequence[tuple[str, str]] = ()  # of nftables: family and name
    trees: Sequence[str] = ()  # interfaces of the node whose root qdisc is its own


class Enforcement(Protocol):
    """Keeps the promises of one scenario's pods."""

    @property
    def programs(self) -> Path | None:
        """The directory of CNI plugins that nodes must be brought, once ``prepare`` has made it."""

    @property
    def installed(self) -> bool:
        """Whether nodes that exist must have it installed, and configured as the scenario says."""

    def missing(self, here: bool) -> Iterable[Fault]:
        """Return what is missing to attach pods so, with the scenario's field that asks for it.

        ``here`` says whether the plugins are called on this machine; what others have is not known.
        """

    def refused(self, pods: Collection[str]) -> Iterable[Fault]:
        """Return the promises for which there is no room where all of these pods come, by arithmetic alone.

        It is what their plugins would refuse, pod by pod in the scenario's order.
        """

    def prepare(self) -> None:
        """Make what nodes are brought. Raises CalledProcessError."""

    def network_list(self, cluster: str, node: str) -> NetworkList:
        """Return the configuration of one cluster's pod network on one of its nodes."""

    def attachment(self, pod: str) -> Attachment:
        """Return a pod's attachment to its cluster's network, with what a runtime offers to plugins."""

    def annotations(self, pod: Pod) -> Mapping[str, str]:
        """Return what a pod's manifest says about its bandwidth."""

    def capacity(self, cluster: str, node: str) -> int | None:
        """Return what a worker can promise a cluster's pods, bits per second as guarantees count.

        None if that is not known.
        """

    def install(self, up: Up) -> None:
        """Do what is to be done once the pods are up. Raises CommandError."""

    def withdraw(self, up: Up) -> None:
        """Undo what ``install`` has done, while the pods stay as they are. Raises CommandError."""

    def check(self, up: Up) -> list[str]:
        """Return, in words, every way in which the kernel's state is not as it was installed."""

    def guarded(self, up: Up) -> Mapping[str, Guarded]:
        """Return every interface that must have classes, by what people call it."""

    def counters(self, up: Up) -> Mapping[str, str]:
        """Return what the kernel says of classes that no pod's own interface has, for the recording."""

    def footprint(self, node: str) -> Footprint:
        """Return what it makes on a node that runs pods."""


def offer(enforcement: Enforcement, cluster: str, node: str) -> dict[str, str]:
    """Return the resource a worker has to give a cluster; nothing if its link has no known rate."""
    rate = enforcement.capacity(cluster, node)
    return {} if rate is None else {RESOURCE: str(rate)}


def request(enforcement: Enforcement, pod: Pod) -> dict[str, str]:
    """Return the resource a pod's container must ask for; nothing where none is published."""
    if not pod.promised or enforcement.capacity(pod.cluster, pod.node) is None:
        return {}
    return {RESOURCE: str(pod.promised)}
