"""Whom a hostile pod may claim to be, and whom it may send to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.measurement.attacks.frames import End


@dataclass(frozen=True)
class Tunnel:
    """An overlay of VXLAN that the attacker's node and another one have VTEPs of."""

    port: int  # UDP
    number: int  # VNI
    near: End  # of the attacker's node: hardware address of its VTEP, and the node's own address
    far: End  # of the other node


@dataclass(frozen=True)
class Scene:
    """Everybody who matters, each by hardware address and IPv4 address."""

    own: End
    neighbour: End  # a pod of the same node, that was promised something
    gateway: End  # of the pods there
    remote: str  # address of a pod on the other node
    nobody_here: Sequence[str] = ()  # addresses of the node's pods' networks that nobody has
    nobody_beyond: Sequence[str] = ()  # the same of other nodes, and of pods there
    on_link: Sequence[str] = ()  # addresses of the nodes' own network that nobody has
    tunnel: Tunnel | None = None  # none: pods' packets are routed as they are
    node_beyond: str = ""  # the other node's own address; empty: not known
