"""What wakes the loop: the kernel logs packets to nodes of the fabric, some a second at most, to a group.

Source: linux/netfilter/nfnetlink_log.h; net/netfilter/nfnetlink_log.c.
"""

from __future__ import annotations

from struct import pack

from edge import netlink as nl

from ..node.peers import LOG_GROUP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

_CONFIGURE = 4 << 8 | 1  # NFNL_SUBSYS_ULOG, NFULNL_MSG_CONFIG
_COMMAND, _MODE, _THRESHOLD = 1, 2, 5  # NFULA_CFG_*
_BIND = 1  # NFULNL_CFG_CMD_BIND
_META = 1  # NFULNL_COPY_META: nothing of the packet itself


def listen() -> socket | None:
    """What has something to read when a packet is logged; None where the kernel logs to nobody."""
    kernel = nl.opened(nl.NETFILTER)
    settings = (
        nl.attribute(_COMMAND, pack("B", _BIND)),
        nl.attribute(_MODE, pack("!IBx", 0, _META)) + nl.attribute(_THRESHOLD, pack("!I", 1)),
    )
    try:
        for attributes in settings:
            nl.tell(_CONFIGURE, 0, pack("!BBH", 0, 0, LOG_GROUP) + attributes, kernel)
    except OSError:
        kernel.close()
        return None
    kernel.setblocking(False)
    return kernel


def drain(kernel: socket) -> None:
    """Read all that is there, and forget it."""
    try:
        while True:
            kernel.recv(1 << 12)
    except OSError:
        pass
