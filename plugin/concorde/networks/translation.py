"""What a pod sends on to a device by the kernel alone: its annotation, and nft's text for it.

The annotation is a list, or `@NAME` of one that another program keeps on the node: that may change while the
pod runs (see renewal.py).

Only declared ports, only what comes by the pod's first interface, only to the device; what else would be
forwarded is dropped, so such a pod is no router into the segment, and nothing that a device begins gets by.
"""

from __future__ import annotations

from .. import addresses, files, names, pod_annotations, strict_json
from ..cni import TRY_AGAIN, CniError, in_words, shown
from ..configuration import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

FORWARD = pod_annotations.OURS + "forward"
REACH = pod_annotations.OURS + "reach"  # of the same form: what the pod's own programs may reach by a gateway
TABLE = "ip concorde-networks"
_PATH = pod_annotations.path(FORWARD)
_PROTOCOLS = ("TCP", "UDP")
_KEYS = ("protocol", "port", "address", "targetPort")
_MOST = 1000
_LONGEST = 1 << 18  # bytes of a kept list; more than the API lets an annotation have
REMOVED = f"add table {TABLE}\ndelete table {TABLE}\n"  # whether it was there or not


class Forward:
    """Packets to a port of the pod go to a device's; `path` is where in the configuration that stands."""

    def __init__(self, path: str, protocol: str, port: int, address: int, target: int) -> None:
        self.path = path
        self.protocol = protocol
        self.port = port
        self.address = address
        self.target = target

    @property
    def document(self) -> dict[str, Any]:
        """The same as an annotation has it, with nothing left out."""
        address = addresses.dotted(self.address)
        return {"protocol": self.protocol, "port": self.port, "address": address, "targetPort": self.target}

    @property
    def element(self) -> str:
        """Whither a packet to the port goes, as nft writes an element of a map."""
        address = addresses.dotted(self.address)
        return f"{self.protocol.lower()} . {self.port} : {address} . {self.target}"

    @property
    def device(self) -> str:
        """The device's address, protocol and port, as nft writes a key of them."""
        return f"{addresses.dotted(self.address)} . {self.protocol.lower()} . {self.target}"


def forwards(annotation: object, name: str = FORWARD) -> list[Forward]:
    """What the annotation of that name declares: a JSON list of objects. Raises CniError 7 with the path."""
    path = pod_annotations.path(name)
    if annotation is None:
        return []
    if not isinstance(annotation, str):
        raise invalid(path, f"{shown(annotation)} is not a string")
    try:
        listed = strict_json.value(annotation)
    except ValueError as error:
        raise invalid(path, f"is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(listed, list) or len(listed) > _MOST:
        raise invalid(path, f"{shown(listed)} is not a list of at most {_MOST}")
    found = of_list(listed, path)
    taken: set[tuple[str, int]] = set()
    for one in found:
        if (one.protocol, one.port) in taken:
            raise invalid(f"{one.path}.port", f"{one.protocol} port {one.port} is given twice")
        taken.add((one.protocol, one.port))
    return found


def kept_at(annotation: object, directory: str, namespace: str) -> str:
    """Where the list is that an annotation names, as `@NAME`; empty if it is one itself.

    Raises CniError 7.
    """
    if not isinstance(annotation, str) or not annotation.startswith("@"):
        return ""
    name = annotation[1:]
    if not names.is_identifier(name) or not names.is_identifier(namespace):
        raise invalid(_PATH, f"{shown(annotation)} is not the name of a list")
    return f"{directory}/{namespace}/{name}.json"


def kept(path: str) -> list[Forward]:
    """The list of a file. Raises CniError 11 if there is none, 7 if it cannot be one."""
    try:
        found = forwards(files.read(path, _LONGEST).decode(errors="replace"))
    except (OSError, ValueError) as error:
        raise CniError(TRY_AGAIN, f"{_PATH}: {path}: {in_words(error)}") from error
    if not found:
        raise invalid(_PATH, f"{path}: is empty")
    return found


def of_list(listed: list[Any], path: str = _PATH) -> list[Forward]:
    """The same of a list, as a record has it. Raises CniError 7 with the path."""
    return [_of_object(f"{path}[{at}]", one) for at, one in enumerate(listed)]


def _of_object(path: str, given: object) -> Forward:
    if not isinstance(given, dict):
        raise invalid(path, f"{shown(given)} is not an object")
    for key in given:
        if key not in _KEYS:
            raise invalid(f"{path}.{shown(key)[1:-1]}", "is not supported")
    protocol, address = given.get("protocol", _PROTOCOLS[0]), given.get("address")
    if protocol not in _PROTOCOLS:
        raise invalid(f"{path}.protocol", f"{shown(protocol)} is not one of " + ", ".join(_PROTOCOLS))
    port = _port(f"{path}.port", given.get("port"))
    target = _port(f"{path}.targetPort", given.get("targetPort", port))
    try:
        number = addresses.parse(address if isinstance(address, str) else "")
    except ValueError as error:
        raise invalid(f"{path}.address", f"{shown(address)} {error}") from error
    return Forward(path, protocol, port, number, target)


def _port(path: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 65535:
        raise invalid(path, f"{shown(value)} is not an integer from 1 to 65535")
    return value


def table(interface: str, further: Iterable[str], declared: Sequence[Forward]) -> str:
    """The pod's table, in place of one that is there; to be one transaction.

    `further` are the interfaces that lead to devices. Who is no client of a declared port gets past none of
    its chains: a packet is let on only if it was rewritten here, or answers one that was.
    """
    ways = ", ".join(f'"{name}"' for name in sorted(set(further)))
    ports = ", ".join(one.element for one in declared)
    return f"""{REMOVED}\
table {TABLE} {{
    map ports {{
        type inet_proto . inet_service : ipv4_addr . inet_service
        elements = {{ {ports} }}
    }}
    chain prerouting {{
        type nat hook prerouting priority -100; policy accept;
        iifname "{interface}" fib daddr type local dnat ip to meta l4proto . th dport map @ports
    }}
    chain postrouting {{
        type nat hook postrouting priority 100; policy accept;
        oifname {{ {ways} }} ct status dnat masquerade
    }}
    chain forward {{
        type filter hook forward priority 0; policy drop;
        iifname "{interface}" oifname {{ {ways} }} ct direction original ct status dnat accept
        iifname {{ {ways} }} oifname "{interface}" ct direction reply ct status dnat accept
    }}
    chain input {{
        type filter hook input priority 0; policy accept;
        iifname {{ {ways} }} ct state new drop
    }}
}}
"""
