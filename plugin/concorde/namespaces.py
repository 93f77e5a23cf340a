"""Pods' network namespaces as the kernel ties them to the node's ends of their links, and a look from within.

Runtimes keep them as files. Which of them a link leads to, the kernel says by the number that
this node's namespace has for each (rtnetlink(7); linux/net_namespace.h; Linux 4.0).
"""

from __future__ import annotations

import os
from struct import pack, unpack_from

from edge import netlink as nl

from . import rtnetlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")
    End = tuple[str, int]  # the file of a namespace, and an interface's number there

# Where runtimes mount them: by default, and containerd with netns_mounts_under_state_dir.
DIRECTORIES = ("/run/netns", "/run/containerd/io.containerd.grpc.v1.cri/netns")
_OWN = "/proc/self/ns/net"
_NSID, _FD = 1, 3  # NETNSA_*
_CLONE_NEWNET = 0x40000000  # linux/sched.h


def other_ends() -> dict[str, End]:
    """Where the other end of each link is, by the link's name. Raises OSError."""
    files = _numbers()
    found = {}
    for _, link in rtnetlink.links():
        if nl.IFLA_LINK_NETNSID in link and nl.IFLA_LINK in link:
            file = files.get(unpack_from("=i", link[nl.IFLA_LINK_NETNSID])[0])
            if file is not None:
                name = nl.text(link[nl.IFLA_IFNAME])
                found[name] = file, unpack_from("=i", link[nl.IFLA_LINK])[0]
    return found


def within(ends: dict[str, End], look: Callable[[int], T]) -> dict[str, T]:
    """What `look` says of each end, asked in its namespace; without those that are gone.

    Raises PermissionError without CAP_SYS_ADMIN.
    """
    setns = _setns()
    found = {}
    own = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for name, (file, index) in ends.items():
            try:
                other = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # it has ended meanwhile
            try:
                setns(other)
                found[name] = look(index)
            except PermissionError:
                raise
            except OSError:
                continue
            finally:
                os.close(other)
    finally:
        setns(own)
        os.close(own)
    return found


def opened(netns: str) -> socket:
    """A socket to the kernel's routing, of another network namespace if one is given. Raises OSError."""
    return inside(netns, nl.opened) if netns else nl.opened()


def inside(netns: str, do: Callable[[], T]) -> T:
    """Do something in another network namespace, and return what comes of it. Raises OSError."""
    setns = _setns()
    own = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(other)
            try:
                return do()
            finally:
                setns(own)
        finally:
            os.close(other)
    finally:
        os.close(own)


def number(kernel: socket, netns: str, gives: bool = False) -> int:
    """This node's number for a namespace; -1 if it has none, unless it `gives` it one. Raises OSError."""
    descriptor = os.open(netns, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        body = pack("=Bxxx", 0) + nl.u32(_FD, descriptor)
        for again in (False, True):
            found = -1
            for message in nl.ask(nl.RTM_GETNSID, 0, body, kernel):
                (found,) = unpack_from("=i", nl.attributes(message, 4).get(_NSID, rtnetlink.NO_NUMBER))
            if found >= 0 or again or not gives:
                break
            nl.tell(nl.RTM_NEWNSID, 0, body + nl.attribute(_NSID, rtnetlink.NO_NUMBER), kernel)
        return found
    finally:
        os.close(descriptor)


def _numbers() -> dict[int, str]:
    found = {}
    there = (directory for directory in DIRECTORIES if os.path.isdir(directory))
    kernel = nl.opened()
    try:
        for file in (f"{directory}/{name}" for directory in there for name in os.listdir(directory)):
            try:
                found[number(kernel, file)] = file
            except OSError:
                continue  # it has ended meanwhile, or is no namespace
    finally:
        kernel.close()
    found.pop(-1, None)
    return found


def _setns() -> Callable[[int], None]:
    """setns(2) for network namespaces: Python has had it since 3.12."""
    given: Callable[[int, int], None] | None = getattr(os, "setns", None)
    if given is not None:
        return lambda descriptor: given(descriptor, _CLONE_NEWNET)
    try:
        from _ctypes import call_function, dlopen, dlsym  # half a millisecond; all of ctypes takes 4

        address = dlsym(dlopen(None, 0), "setns")  # type: ignore[arg-type]
    except ImportError:  # it is Python's own, and may go
        return _setns_by_ctypes

    def setns(descriptor: int) -> None:
        if call_function(address, (descriptor, _CLONE_NEWNET)):
            _setns_by_ctypes(descriptor)  # which is refused likewise, and says why

    return setns


def _setns_by_ctypes(descriptor: int) -> None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
