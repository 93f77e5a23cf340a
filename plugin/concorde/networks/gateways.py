"""The node's side of networks that lead through it: nft's text, from all pods' records; pure.

A definition whose bridge is a gateway makes the node a router. It stays closed for all but the pods that
were so attached: others neither get into the bridge nor to devices behind the node, and what a device, or an
attached pod in another's name, begins gets nowhere. A pod with declared ports reaches these alone; one
without anything but the cluster's ranges. What the pod's first interface comes by stays as it is.
"""

from __future__ import annotations

from .. import addresses, host_interfaces, names
from ..cni import CniError
from . import translation
from .routes import Way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .delegates import Network
    from .records import Record

TABLE = translation.TABLE
_DEFAULT_BRIDGE = "cni0"  # of the reference plugin
_SETS = {
    "gateways": "type ifname",
    "attached": "type ifname . ipv4_addr",
    "declared": "type ifname . ipv4_addr . ipv4_addr . inet_proto . inet_service",
    "cluster": "type ipv4_addr; flags interval; auto-merge",
    "closed": "type ipv4_addr; flags interval; auto-merge",
}
_CHAINS = """\
    chain forward {
        type filter hook forward priority -5; policy accept;
        ct state established,related accept
        iifname . ip saddr . ip daddr . meta l4proto . th dport @declared accept
        iifname . ip saddr @attached ip daddr != @cluster accept
        iifname @gateways drop
        oifname @gateways drop
        ip daddr @closed drop
        ip saddr @closed drop
    }
    chain input {
        type filter hook input priority -5; policy accept;
        ct state established,related accept
        iifname @gateways drop
        iifname != "lo" ip saddr @closed drop
    }
"""


def table(records: Iterable[Record]) -> str:
    """The node's table, in place of one that is there; without what there could be to close, none."""
    elements: dict[str, set[str]] = {name: set() for name in _SETS}
    for record in records:
        _add(elements, record)
    if not elements["gateways"] and not elements["closed"]:
        return translation.REMOVED
    sets = "".join(_set(name, elements[name]) for name in _SETS)
    return f"{translation.REMOVED}table {TABLE} {{\n{sets}{_CHAINS}}}\n"


def _set(name: str, elements: set[str]) -> str:
    listed = f" elements = {{ {', '.join(sorted(elements))} }};" if elements else ""
    return f"    set {name} {{ {_SETS[name]};{listed} }}\n"


def _add(elements: dict[str, set[str]], record: Record) -> None:
    declared = translation.of_list(record["forward"] or record.get("reach", []))
    elements["cluster"].update(record["cluster"])
    elements["closed"].update(record["segments"], (addresses.dotted(one.address) for one in declared))
    for network in record["networks"]:
        for gateway in _gateways(network).difference(record["host"]):
            elements["gateways"].add(f'"{gateway}"')
            for address in _addresses(network):
                way = f'"{gateway}" . {address}'
                if declared:
                    elements["declared"].update(f"{way} . {one.device}" for one in declared)
                else:
                    elements["attached"].add(way)


def _addresses(network: Network) -> list[str]:
    results = network.get("results")
    try:
        way = Way(network["interface"], results[-1] if results else {})
    except CniError:  # who attached it heard of that
        return []
    return [addresses.dotted(address) for address in way.addresses]


def _gateways(network: Network) -> set[str]:
    """The node's interfaces by which packets of such a network come to be routed."""
    first = network["plugins"][0]
    kind = first["type"]
    if kind == "ptp":
        results = network.get("results") or [{}]
        ends = host_interfaces.listed(results[0])
    elif kind == "concorde":
        ends = [str(first.get("bridge") or names.default_bridge(first["name"]))]
    elif first.get("isGateway") is True or first.get("isDefaultGateway") is True:
        ends = [str(first.get("bridge") or _DEFAULT_BRIDGE)]
    else:
        ends = []
    return {end for end in ends if names.is_interface(end)}
