"""One call of the plugin: what the runtime put into the environment and on standard input."""

from __future__ import annotations

import os

from . import names
from .cni import (
    INVALID_ENVIRONMENT,
    IO_FAILURE,
    UNDECODABLE,
    UNKNOWN_CONTAINER,
    VERB_SINCE,
    CniError,
    shown,
)
from .configuration import invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Attachment = tuple[str, str]  # container and interface

# A node's thousand attachments, listed for GC, take about 0.1 MiB.
_MOST_INPUT = 4 << 20
VALID = "cni.dev/valid-attachments"
# The specification's first text had this one; libcni gives both (containernetworking/cni#1103).
KEYS = (VALID, "cni.dev/attachments")
_NS_GET_NSTYPE, _CLONE_NEWNET = 0xB703, 0x40000000  # linux/nsfs.h, linux/sched.h


class Request:
    """An operation on one attachment (ADD, DEL, CHECK) or on the network (GC, STATUS)."""

    def __init__(
        self, document: dict[str, Any], container: str, interface: str, netns: str, pod: str = ""
    ) -> None:
        self.document = document
        self.pod = pod
        self.container = container
        self.interface = interface
        self.netns = netns

    @property
    def version(self) -> str:
        """The protocol version in use: that of the configuration."""
        version: str = self.document["cniVersion"]
        return version


def command(environment: Mapping[str, str]) -> str:
    """The operation. Raises CniError 4."""
    verb = environment.get("CNI_COMMAND", "")
    if verb != "VERSION" and verb not in VERB_SINCE:
        raise CniError(INVALID_ENVIRONMENT, f"CNI_COMMAND: {shown(verb)} is not an operation")
    return verb


def read_input() -> bytes:
    """All of standard input. Raises CniError 5 and 6."""
    content = b""
    try:
        while len(content) <= _MOST_INPUT:
            part = os.read(0, 1 << 20)
            if not part:
                return content
            content += part
    except OSError as error:
        raise CniError(IO_FAILURE, f"standard input: {error.strerror}") from error
    raise CniError(UNDECODABLE, f"standard input is longer than {_MOST_INPUT} bytes")


def request(verb: str, environment: Mapping[str, str], document: dict[str, Any]) -> Request:
    """Check the parameters the operation takes (CNI specification, section 2).

    Raises CniError 3 when the namespace is gone, 4 naming the variable.
    """
    if verb in ("GC", "STATUS"):
        return Request(document, "", "", "")
    container = environment.get("CNI_CONTAINERID", "")
    if not names.is_identifier(container):
        raise CniError(INVALID_ENVIRONMENT, f"CNI_CONTAINERID: {shown(container)} is not a container id")
    interface = environment.get("CNI_IFNAME", "")
    if not names.is_interface(interface) or (interface == "lo" and verb == "ADD"):
        raise CniError(INVALID_ENVIRONMENT, f"CNI_IFNAME: {shown(interface)} is not an interface name")
    netns = environment.get("CNI_NETNS", "")
    if netns and not names.is_path(netns):
        raise CniError(INVALID_ENVIRONMENT, f"CNI_NETNS: {shown(netns)} is not a plain absolute path")
    if verb == "DEL":
        netns = _pod_namespace(netns) if netns else ""
    else:
        _require_pod_namespace(netns)
    return Request(document, container, interface, netns, pod_name(environment.get("CNI_ARGS", "")))


def pod_name(arguments: str) -> str:
    """Namespace and name of the pod in CNI_ARGS, as containerd and CRI-O give them, or nothing.

    Only for people to read: what is no name is left out.
    """
    parts = [argument(arguments, f"K8S_POD_{key}") for key in ("NAMESPACE", "NAME")]
    return "/".join(parts) if all(map(names.is_identifier, parts)) else ""


def argument(arguments: str, name: str) -> str:
    """What CNI_ARGS have under a name, or nothing."""
    return dict(pair.partition("=")[::2] for pair in arguments.split(";")).get(name, "")


def valid_attachments(document: dict[str, Any]) -> set[Attachment]:
    """What any of the keys lists that GC is given. Raises CniError 7."""
    given = [key for key in KEYS if key in document]
    if not given:
        raise invalid(VALID, "must be given: a list, or null when there are none")
    return {attachment for key in given for attachment in _listed(key, document[key])}


def _listed(key: str, entries: object) -> list[Attachment]:
    if entries is None:  # how Go, and so libcni, writes a list that has nothing
        return []
    if not isinstance(entries, list):
        raise invalid(key, f"{shown(entries)} is not a list")
    for entry in entries:
        if not isinstance(entry, dict) or not (
            _is(names.is_identifier, entry.get("containerID"))
            and _is(names.is_interface, entry.get("ifname"))
        ):
            raise invalid(key, f"{shown(entry)} has no valid containerID and ifname")
    return [(entry["containerID"], entry["ifname"]) for entry in entries]


def _is(rule: Callable[[str], bool], value: object) -> bool:
    return isinstance(value, str) and rule(value)


def _require_pod_namespace(netns: str) -> None:
    if not netns:
        raise CniError(INVALID_ENVIRONMENT, "CNI_NETNS: missing")
    try:
        problem = _unfit(netns)
    except OSError as error:
        raise CniError(UNKNOWN_CONTAINER, f"CNI_NETNS: {netns}: {error.strerror}") from error
    if problem:
        raise CniError(INVALID_ENVIRONMENT, f"CNI_NETNS: {netns} is {problem}")


def _pod_namespace(netns: str) -> str:
    """The same path, or nothing if no pod has its namespace there any more."""
    try:
        return "" if _unfit(netns) else netns
    except OSError:
        return ""


def _unfit(netns: str) -> str:
    """In words, why a path is no pod's network namespace, or nothing. Raises OSError."""
    own = os.stat("/proc/self/ns/net")
    # First by its name only: to open a pipe or a device may take for ever, or do something.
    found = os.stat(netns)
    if found.st_dev != own.st_dev:
        return "not a namespace"  # they are all files of one file system, the kernel's own
    if found.st_ino == own.st_ino:
        # Shaping or addresses meant for a pod would land on the node's own interface.
        return "the node's own namespace"
    import fcntl  # every call that comes so far will lock something

    descriptor = os.open(netns, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return "" if fcntl.ioctl(descriptor, _NS_GET_NSTYPE) == _CLONE_NEWNET else "not a network namespace"
    finally:
        os.close(descriptor)
