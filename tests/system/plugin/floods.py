"""Whom the attacks of bench/studies/promise/attacks.py are about between two overlapped workers."""

from __future__ import annotations

from bench.studies.promise.attacks import Scene, Tunnel
from tests.system.plugin.frame_kinds import people
from tests.system.plugin.overlapped import PORT, VTEP

WHO = people("bridged")
UNDERLAY = "10.8."  # a second one of the near node's, which has room for so many
FEW = range(4, 254)  # of a subnet of 256, addresses that nobody has

SCENE = Scene(
    own=WHO["own"],
    neighbour=WHO["neighbour"],
    gateway=WHO["gateway"],
    remote=WHO["remote pod"][1],
    nobody_here=[f"{subnet}.{last}" for last in FEW for subnet in ("172.16.1", "172.17.1")],
    nobody_beyond=[f"{subnet}.{last}" for last in FEW for subnet in ("192.168.9", "172.16.2")],
    on_link=[f"{UNDERLAY}{third}.{last}" for third in range(2) for last in FEW],
    node_beyond=WHO["remote node"][1],
    # The other cluster's: what gets into that is in nobody's class.
    tunnel=Tunnel(
        port=PORT["b"],
        number=2,
        near=(VTEP["b"]["one"], WHO["node"][1]),
        far=(VTEP["b"]["two"], WHO["remote node"][1]),
    ),
)
