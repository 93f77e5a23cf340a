"""CHECK: do the kernel, and the ledger, still say what ADD made them say?"""

from __future__ import annotations

import json

from .. import addresses, enforcements, guarantees, tools
from ..cni import CHECK_FAILED, CniError
from ..configuration import Configuration, invalid
from ..node import attachments, ledger
from ..results import entries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..leases import Link
    from ..requests import Request


def check(request: Request) -> None:
    """Compare lease, links, address, route and shaping with the previous result and the configuration.

    Raises CniError 104 at the first difference.
    """
    configuration = Configuration(request.document)
    previous = configuration.previous
    if previous is None:
        raise invalid("prevResult", "CHECK needs it")
    attachments.take_over(configuration.state)
    book = ledger.opened(configuration.node_directory)
    key = configuration.name, request.container, request.interface
    lease = book.lease(key) if book else None
    _require(lease is not None, f"{request.container} has no lease for {request.interface}")
    assert book is not None
    assert lease is not None
    enforcement = enforcements.load(configuration.enforcement)
    keeps = enforcement.RESERVES, enforcement.RECEIVES
    changed = book.changed().get(key, {})
    mtu = configuration.node_mtu()
    expected = guarantees.terms_by_now(configuration, mtu, *keeps, lease.terms, changed)
    _require(str(lease.terms) == str(expected), f"the lease says {lease.terms}; expected {expected}")
    try:
        if lease.link is not None:
            _check_previous(lease.link, previous)
            _check_node(lease.link)
            _check_pod(lease.link, previous, request.netns)
        enforcement.check(configuration, lease, request.netns)
        settings = enforcement.on_uplink(configuration)
        entry = attachments.entry_of(configuration, lease, settings, request.netns)
        attachments.check(entry, settings, configuration.node_directory)
    except tools.CommandError as failure:
        raise CniError(CHECK_FAILED, str(failure)) from failure


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise CniError(CHECK_FAILED, otherwise)


def _check_previous(link: Link, previous: dict[str, Any]) -> None:
    address = f"{addresses.dotted(link.address)}/{link.subnet.prefix}"
    listed = [ip.get("address") for ip in entries_of(previous, "ips")]
    _require(address in listed, f"the lease's address {address} is not in prevResult")


def _check_node(link: Link) -> None:
    veth = _shown("link", link.host_veth)
    _require(veth.get("master") == link.bridge, f"{link.host_veth} is not a port of {link.bridge}")
    _require("UP" in veth["flags"], f"{link.host_veth} is down")
    bridge = _shown("addr", link.bridge)
    gateway = (addresses.dotted(link.subnet.gateway), link.subnet.prefix)
    _require(gateway in _addresses(bridge), f"{link.bridge} has lost its address {gateway[0]}/{gateway[1]}")
    _require("UP" in bridge["flags"], f"{link.bridge} is down")


def _check_pod(link: Link, previous: dict[str, Any], netns: str) -> None:
    pod = _shown("addr", link.interface, netns)
    address = (addresses.dotted(link.address), link.subnet.prefix)
    _require(address in _addresses(pod), f"{link.interface} has lost its address {address[0]}/{address[1]}")
    _require("UP" in pod["flags"], f"{link.interface} is down")
    # A later plugin of the chain may have set another hardware address, and says so in its result.
    macs = [
        entry.get("mac")
        for entry in entries_of(previous, "interfaces")
        if entry.get("name") == link.interface and entry.get("sandbox")
    ]
    _require(pod["address"] in macs, f"{link.interface} has hardware address {pod['address']}, not {macs}")
    if any(route.get("dst") == "0.0.0.0/0" for route in entries_of(previous, "routes")):
        gateway = addresses.dotted(link.subnet.gateway)
        routes = json.loads(tools.run("ip", "-j", "route", "show", "default", netns=netns) or "[]")
        found = any(route.get("gateway") == gateway and route["dev"] == link.interface for route in routes)
        _require(found, f"{link.interface} has lost its default route via {gateway}")


def _shown(what: str, name: str, netns: str = "") -> dict[str, Any]:
    shown: list[dict[str, Any]] = json.loads(tools.run("ip", "-j", what, "show", "dev", name, netns=netns))
    return shown[0]


def _addresses(shown: dict[str, Any]) -> list[tuple[str, int]]:
    return [(entry.get("local"), entry.get("prefixlen")) for entry in shown.get("addr_info", ())]
