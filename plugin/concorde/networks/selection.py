"""The networks that a pod's annotation names, and what it asks of each; pure.

Source: Kubernetes Network Custom Resource Definition De-facto Standard 1.3, section 4 (Network Attachment
Selection Annotation).
"""

from __future__ import annotations

from .. import addresses, names, pod_annotations, strict_json
from ..cni import shown
from ..configuration import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NETWORKS = "k8s.v1.cni.cncf.io/networks"
_PATH = pod_annotations.path(NETWORKS)
# What may be asked of a delegate by a capability of the same name.
_CAPABILITIES = ("ips", "mac", "portMappings", "bandwidth")
_KEYS = {"name", "namespace", "interface", "cni-args", *_CAPABILITIES}
_MOST = 32
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


class Selection:
    """One network: its definition's namespace and name, the interface, and what is asked by capability.

    `path` is where in the configuration it stands, for errors; `arguments` are for the plugin (`args.cni`).
    """

    def __init__(self, path: str, namespace: str, name: str, interface: str) -> None:
        """Raises CniError 7."""
        self.path = path
        self.namespace = _required(f"{path}.namespace", namespace, "a namespace", names.is_identifier)
        self.name = _required(f"{path}.name", name, "the name of a network", names.is_identifier)
        self.interface = _required(f"{path}.interface", interface, "an interface name", names.is_interface)
        self.asked: dict[str, Any] = {}
        self.arguments: dict[str, Any] = {}


def selected(annotation: object, namespace: str, first: str) -> list[Selection]:
    """The networks, in order, for a pod of this namespace whose first interface has that name.

    Raises CniError 7 with the path.
    """
    if annotation is None:
        return []
    if not isinstance(annotation, str):
        raise invalid(_PATH, f"{shown(annotation)} is not a string")
    text = annotation.strip()
    parse = _of_json if text[:1] in ("[", "{") else _of_list
    found = parse(text, namespace) if text else []
    if len(found) > _MOST:
        raise invalid(_PATH, f"{len(found)} networks; the most are {_MOST}")
    taken = {first, "lo"}
    for one in found:
        if one.interface in taken:
            raise invalid(f"{one.path}.interface", f"{one.interface} is another interface of the pod")
        taken.add(one.interface)
    return found


def _of_list(text: str, namespace: str) -> list[Selection]:
    """Of `name`, `namespace/name`, and either with `@interface`, parted by commas."""
    found = []
    for at, part in enumerate(text.split(",")):
        where, mark, interface = part.strip().partition("@")
        before, slash, name = where.partition("/")
        given = (before, name) if slash else (namespace, before)
        found.append(Selection(f"{_PATH}[{at}]", *given, interface if mark else f"net{at + 1}"))
    return found


def _of_json(text: str, namespace: str) -> list[Selection]:
    try:
        listed = strict_json.value(text)
    except ValueError as error:
        raise invalid(_PATH, f"is not valid JSON: {str(error)[:200]}") from error
    if not isinstance(listed, list):
        raise invalid(_PATH, f"{shown(listed)} is not a list")
    return [_of_object(f"{_PATH}[{at}]", at, one, namespace) for at, one in enumerate(listed)]


def _of_object(path: str, at: int, given: object, namespace: str) -> Selection:
    if not isinstance(given, dict):
        raise invalid(path, f"{shown(given)} is not an object")
    for key in given:
        if key not in _KEYS:
            raise invalid(f"{path}.{shown(key)[1:-1]}", "is not supported")
    interface = given.get("interface", f"net{at + 1}")
    found = Selection(path, given.get("namespace", namespace), given.get("name", ""), interface)
    if "ips" in given:
        _require_ips(f"{path}.ips", given["ips"])
    if "mac" in given:
        _require_mac(f"{path}.mac", given["mac"])
    found.asked = {key: given[key] for key in _CAPABILITIES if key in given}
    found.arguments = given.get("cni-args", {})
    if not isinstance(found.arguments, dict):
        raise invalid(f"{path}.cni-args", f"{shown(found.arguments)} is not an object")
    return found


def _required(path: str, value: object, what: str, rule: Callable[[str], bool]) -> str:
    if not isinstance(value, str) or not rule(value):
        raise invalid(path, f"{shown(value)} is not {what}")
    return value


def _require_ips(path: str, given: object) -> None:
    if not isinstance(given, list) or not given:
        raise invalid(path, f"{shown(given)} is not a list of addresses")
    for at, value in enumerate(given):
        if not isinstance(value, str) or not _is_address(value):
            raise invalid(f"{path}[{at}]", f"{shown(value)} is not an address, such as 10.10.0.5/24")


def _is_address(text: str) -> bool:
    address, slash, prefix = text.partition("/")
    is_six = ":" in address
    try:
        (addresses.ipv6_number if is_six else addresses.parse)(address)
    except ValueError:
        return False
    is_number = prefix.isascii() and prefix.isdigit() and len(prefix) <= 3
    return not slash or (is_number and int(prefix) <= (128 if is_six else 32))


def _require_mac(path: str, given: object) -> None:
    parts = given.split(":") if isinstance(given, str) else []
    if len(parts) != 6 or not all(len(part) == 2 and _HEXADECIMAL.issuperset(part) for part in parts):
        raise invalid(path, f"{shown(given)} is not a hardware address")
    if int(parts[0], 16) & 1:
        raise invalid(path, f"{shown(given)} is the address of a group")
