"""What is compared: every backend, and settings of one that change what is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.studies.backends.probes.scenarios import MASTER
from testbed.scenario.networks import KINDS

# What can be measured of a datapath, in the order in which it is.
GUARANTEE: Final = "guarantee"
ROUND_TRIP: Final = "round-trip"
THROUGHPUT: Final = "throughput"
COST: Final = "cost"
FIRST: Final = "first"
NODES: Final = "nodes"
PARTS = (GUARANTEE, ROUND_TRIP, THROUGHPUT, COST, FIRST, NODES)


@dataclass(frozen=True)
class Datapath:
    """A backend with its settings."""

    name: str
    cluster: Mapping[str, Any]  # what its cluster says
    parts: Sequence[str] = PARTS

    def overrides(self, cluster: str) -> tuple[str, ...]:
        """Return what a scenario's cluster is to say, as for ``--set``."""
        return tuple(_settings(f"clusters.{cluster}", self.cluster))


def _bgp(name: str, **settings: Any) -> Datapath:
    return Datapath(f"bgp, {name}", {"backend": "bgp", "bgp": settings}, (NODES,))


def _misses(name: str, **settings: str) -> Datapath:
    return Datapath(f"vxlan-miss, {name}", {"backend": "vxlan-miss", "resolve": settings}, (FIRST,))


# Settings that matter for one question alone: a dead daemon, a mesh that grows as the square of its nodes,
# and flannel's second and third generation, of which less is left to be missed.
SETTINGS = (
    _misses("L3 by miss", l2="ahead", l3="miss"),
    _misses("all ahead", l2="ahead", l3="ahead"),
    _bgp("no graceful restart", graceful_restart=False),
    _bgp("route reflector", route_reflector=MASTER),
)


def known() -> dict[str, Datapath]:
    """Return all datapaths, by name: of the backends that are registered, each followed by its settings."""
    found: dict[str, Datapath] = {}
    for backend in KINDS:
        found[backend] = Datapath(backend, {"backend": backend})
        found |= {datapath.name: datapath for datapath in SETTINGS if datapath.cluster["backend"] == backend}
    return found


def _settings(path: str, values: Mapping[str, Any]) -> Sequence[str]:
    return [
        setting
        for key, value in values.items()
        for setting in (
            _settings(f"{path}.{key}", value)
            if isinstance(value, Mapping)
            else [f"{path}.{key}={str(value).lower() if isinstance(value, bool) else value}"]
        )
    ]
