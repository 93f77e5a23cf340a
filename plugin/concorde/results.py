"""What ADD answers: the specification's Success object, in the version the runtime asked for."""

from __future__ import annotations

from . import addresses, names
from .cni import at_least

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leases import Link


def of_link(
    version: str, link: Link, netns: str, dns: dict[str, Any] | None, default: bool
) -> dict[str, Any]:
    """The result of an ADD that made an interface (CNI specification, section 5).

    `default` says whether the pod's default route goes there.
    """
    gateway = addresses.dotted(link.subnet.gateway)
    bridge: dict[str, Any] = {"name": link.bridge}
    host: dict[str, Any] = {"name": link.host_veth, "mac": addresses.host_mac(link.address)}
    pod: dict[str, Any] = {"name": link.interface, "mac": addresses.pod_mac(link.address), "sandbox": netns}
    if at_least(version, "1.1.0"):
        for end in (host, pod):
            end["mtu"] = link.mtu
    address = {
        "address": f"{addresses.dotted(link.address)}/{link.subnet.prefix}",
        "gateway": gateway,
        "interface": 2,
    }
    return {
        "cniVersion": version,
        "interfaces": [bridge, host, pod],
        "ips": [_ip(version, address)],
        "routes": [{"dst": "0.0.0.0/0", "gw": gateway}] if default else [],
        "dns": dns or {},
    }


def of_previous(version: str, previous: dict[str, Any]) -> dict[str, Any]:
    """The previous plugin's result, passed on in the version in use."""
    result = {**previous, "cniVersion": version}
    if isinstance(result.get("ips"), list):
        result["ips"] = [_ip(version, ip) if isinstance(ip, dict) else ip for ip in result["ips"]]
    return result


def entries_of(result: Any, key: str) -> list[dict[str, Any]]:
    """The objects that another plugin's result lists under a key; what is none is left out."""
    entries = result.get(key) if isinstance(result, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def sandbox_of(result: Any, interface: str) -> str:
    """The file of the pod's network namespace as a result has it, or nothing."""
    for entry in entries_of(result, "interfaces"):
        sandbox = entry.get("sandbox")
        if entry.get("name") == interface and isinstance(sandbox, str) and names.is_path(sandbox):
            return sandbox
    return ""


def _ip(version: str, ip: dict[str, Any]) -> dict[str, Any]:
    # Up to 0.4.0 each address says its IP version; 1.0.0 dropped the key.
    plain = {key: value for key, value in ip.items() if key != "version"}
    if at_least(version, "1.0.0"):
        return plain
    return {"version": "6" if ":" in str(ip.get("address")) else "4", **plain}
