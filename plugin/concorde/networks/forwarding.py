"""Whether a pod forwards packets between its interfaces: a new namespace does where its machine does.

With a further interface such a pod would be a router into that network for all who reach its first. So it is
switched off before any is attached; what a definition's own plugins switch on (`tuning`) stays on.
Source: Linux, Documentation/networking/ip-sysctl.rst, `forwarding` and `devconf_inherit_init_net`.
"""

from __future__ import annotations

import os

from .. import namespaces
from ..cni import CHECK_FAILED, CniError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_ROOT = "/proc/sys/net"
_ALL = "all"  # writing it writes those of all interfaces, and of all to come


def on(netns: str) -> list[str]:
    """The switches of a pod that are on, such as `ipv4/conf/eth0`. Raises OSError."""
    return namespaces.inside(netns, lambda: [one for one in _switches() if _is_on(one)])


def switch(netns: str, wanted: Collection[str]) -> None:
    """Let these switches of a pod be on, and no others. Raises OSError."""
    namespaces.inside(netns, lambda: _switch(wanted))


def let(netns: str, interfaces: Collection[str]) -> None:
    """Let IPv4 packets that come by these be forwarded besides. Raises OSError."""
    switch(netns, {*on(netns), *(f"ipv4/conf/{name}" for name in interfaces)})


def check(netns: str, wanted: Collection[str]) -> None:
    """See to it that these are on, and no others. Raises CniError 104, OSError."""
    for one in sorted(set(wanted).symmetric_difference(on(netns))):
        name = f"net.{one.replace('/', '.')}.forwarding"
        raise CniError(CHECK_FAILED, f"{name} of the pod is {0 if one in wanted else 1}")


def _switch(wanted: Collection[str]) -> None:
    for one in _switches():
        if _is_on(one) != (one in wanted):
            with open(f"{_ROOT}/{one}/forwarding", "w") as file:
                file.write("1" if one in wanted else "0")


def _switches() -> Iterator[str]:
    """All of the namespace that asks, `all` of a family before its others."""
    for family in ("ipv4/conf", "ipv6/conf"):
        if os.path.isdir(f"{_ROOT}/{family}"):  # a kernel may have no IPv6
            for name in sorted(os.listdir(f"{_ROOT}/{family}"), key=lambda name: name != _ALL):
                yield f"{family}/{name}"


def _is_on(switch: str) -> bool:
    try:
        with open(f"{_ROOT}/{switch}/forwarding") as file:
            return file.read().strip() != "0"
    except FileNotFoundError:  # the interface has gone meanwhile
        return False
