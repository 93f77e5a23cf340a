"""Offloaded packets that become frames where they enter an overlay, as `ip -batch` text.

HTB counts what a frame takes besides itself once for a packet that becomes many. What is too large for a
class's queue is taken apart there (htb.queue_kind()); what has several small segments and is not, is taken
apart only by a device that may send none with more than one (net/core/dev.c, gso_features_check). A VTEP is
such a device, it is before the tree, and it is no pod's.
"""

from __future__ import annotations

MOST = 1  # segments


def read(shown: str) -> dict[str, int]:
    """How many segments a packet of each device may have, from `ip -j -d link show type vxlan`."""
    import json  # not above: ADD and DEL render, and read nothing

    return {
        link["ifname"]: int(link["gso_max_segs"]) for link in json.loads(shown or "[]") if "ifname" in link
    }


def change(device: str) -> str:
    """Let a device send no packet of several segments."""
    return f"link set dev {device} gso_max_segs {MOST}\n"
