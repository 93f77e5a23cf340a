"""How much waits on the uplink for neighbours that have not answered, as `ip -batch` text.

Linux keeps 101 packets for each address it asks for, and throws all of them away in one go when nobody has
answered for three seconds (neigh_invalidate, net/core/neighbour.c). Does a pod send to 250 such addresses,
that stops a processor for a tenth of a second, and with it whoever was promised something. RFC 1122, 2.3.2.2,
asks for one packet; three is what Linux kept before 3.3.
"""

from __future__ import annotations

MOST = 3  # packets for each address


def read(shown: str, uplink: str) -> dict[str, int]:
    """How many packets may wait there, by table (`arp_cache`, `ndisc_cache`), from `ip -j ntable show`."""
    import json  # not above: ADD and DEL render, and read nothing

    return {
        table["name"]: int(table["queue"])
        for table in json.loads(shown or "[]")
        if table.get("dev", "") == uplink and "queue" in table
    }


def change(table: str, uplink: str, packets: int) -> str:
    """Let no more packets than that wait for each address."""
    return f"ntable change name {table} dev {uplink} queue {packets}\n"


def as_made(shown: str, uplink: str) -> str:
    """Give the uplink what the kernel gives every new interface; `shown` is `ip -j ntable show`'s."""
    usual = read(shown, "")
    return "".join(
        change(table, uplink, usual[table])
        for table, packets in read(shown, uplink).items()
        if packets == MOST and table in usual
    )
