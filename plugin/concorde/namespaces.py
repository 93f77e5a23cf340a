"""Pods' network namespaces as the kernel ties them to the node's ends of their links, and a look from within.

Runtimes keep them as files. Which of them a link leads to, the kernel says by the number that
this node's namespace has for each (rtnetlink(7); linux/net_namespace.h; Linux 4.0).
"""

from __future__ import annotations

import os
from struct import pack, unpack_from

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
_GETLINK, _GETNSID = 18, 90  # RTM_*
_NSID, _FD = 1, 3  # NETNSA_*
_IFNAME, _LINK, _LINK_NETNSID = 3, 5, 37  # IFLA_*
_CLONE_NEWNET = 0x40000000  # linux/sched.h


def other_ends() -> dict[str, End]:
    """Where the other end of each link is, by the link's name. Raises OSError."""
    files = _numbers()
    found = {}
    for message in rtnetlink.ask(_GETLINK, rtnetlink.DUMP, pack("=BxHiII", 0, 0, 0, 0, 0)):
        link = rtnetlink.attributes(message, 16)
        if _LINK_NETNSID in link and _LINK in link:
            file = files.get(unpack_from("=i", link[_LINK_NETNSID])[0])
            if file is not None:
                name = link[_IFNAME].rstrip(b"\0").decode(errors="replace")
                found[name] = file, unpack_from("=i", link[_LINK])[0]
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


def _numbers() -> dict[int, str]:
    kernel = rtnetlink.netlink(rtnetlink.ROUTE)
    try:
        return _numbers_told(kernel)
    finally:
        kernel.close()


def _numbers_told(kernel: socket) -> dict[int, str]:
    found = {}
    there = (directory for directory in DIRECTORIES if os.path.isdir(directory))
    for file in (f"{directory}/{name}" for directory in there for name in os.listdir(directory)):
        try:
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            body = pack("=Bxxx", 0) + rtnetlink.attribute(_FD, pack("=I", descriptor))
            for message in rtnetlink.ask_through(kernel, _GETNSID, 0, body):
                (number,) = unpack_from("=i", rtnetlink.attributes(message, 4)[_NSID])
                if number >= 0:
                    found[number] = file
        except OSError:
            continue  # no namespace
        finally:
            os.close(descriptor)
    return found


def _setns() -> Callable[[int], None]:
    """setns(2) for network namespaces: Python has had it since 3.12."""
    given: Callable[[int, int], None] | None = getattr(os, "setns", None)
    if given is not None:
        return lambda descriptor: given(descriptor, _CLONE_NEWNET)
    import ctypes  # 4 ms: not for calls that do without

    library = ctypes.CDLL(None, use_errno=True)

    def setns(descriptor: int) -> None:
        if library.setns(descriptor, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return setns
