"""What makes pods of different nodes of a cluster reach each other; one module a kind: ``backends``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Protocol

from testbed.access.place import Feature, Node


@dataclass(frozen=True)
class Daemon:
    """A program that runs on a node for as long as the pod network is to work there."""

    name: str  # as messages call it: BIRD of cluster a
    directory: str  # on the node: its log, and what is known of its process
    argv: Sequence[str]
    package: str = ""  # of Debian, if the programs of argv and ready are its (testbed.supplies.packages)
    files: Mapping[str, str] = field(default_factory=dict)  # path -> text; written before it starts
    brings: Path | None = None  # a directory of ours in argv, to be there where nodes have files of their own
    env: Mapping[str, str] = field(default_factory=dict)
    ready: Sequence[str] = ()  # a command that says something once the daemon is; tried again until then
    reload: Sequence[str] = ()  # a command that makes it read changed files; none: it need not be told
    leave: Sequence[str] = ()  # one that tells the others, once it has ended, that its node is no more there


@dataclass(frozen=True)
class Api:
    """A cluster's API, in which daemons can keep what they tell each other."""

    server: str  # URL
    identity: str  # paths, on each node, of PEM files: who asks, with the key; and who vouches for the server
    authority: str
    name_of: Callable[[str], str]  # what a node of the scenario is called there


class PodNetwork(Protocol):
    """One cluster's pod network, as it is made on the cluster's nodes."""

    def links(self, node: str) -> str:
        """Return the ``ip -batch`` text that makes a node's devices, routes and neighbours."""

    def forwarding(self, node: str) -> str:
        """Return the ``bridge -batch`` text that is run after that."""

    def files(self, node: str) -> Mapping[str, str]:
        """Return the files that a node then needs, by their paths; CNI plugins read them."""

    def devices(self, node: str) -> Sequence[str]:
        """Return the names of the devices that it makes on a node."""

    def routes(self, node: str) -> Sequence[IPv4Network]:
        """Return the networks that a node then has routes into."""

    def daemons(self, node: str) -> Sequence[Daemon]:
        """Return what runs on a node, in the order in which it is started; after all of the above."""

    def rights(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the RBAC rules that daemons on a node need at a cluster's API, where it is called so.

        Nothing if they have no use for an API.
        """

    def by_api(self, api: Api) -> PodNetwork:
        """Return the same network with daemons that tell each other what they know by an API."""

    def flannel(self) -> Mapping[str, Any] | None:
        """Return what the real flanneld is told to make the same; None if it does not know this kind."""

    def features(self) -> Sequence[Feature]:
        """Return what the kernel must be able to, if not all kernels are."""

    def lacking(self, nodes: Mapping[str, Node]) -> list[str]:
        """Return, in words, each with its node, what should be on the cluster's nodes and is not.

        It is asked again and again until a testbed is up, and once more after the traffic. Raises
        CommandError for a node that cannot be reached.
        """
