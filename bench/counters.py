"""The kernel's own count of what pods sent: a cross-check of iperf3, and proof that nothing went unshaped."""

from __future__ import annotations

from dataclasses import dataclass

from bench.observer import sent_bytes
from testbed.nodes import Place


@dataclass(frozen=True)
class Counters:
    """What an interface of a pod or node has sent so far."""

    interface_bytes: int  # layer 2
    class_bytes: int | None  # layer 2, through its HTB; None without one
    direct_packets: int  # packets that found no class and went out unshaped


def read(place: Place, interface: str = "eth0") -> Counters:
    """Read the counters of one place. Raises CommandError."""
    sent = sent_bytes(place.run(["cat", "/proc/net/dev"]).stdout)[interface]
    qdiscs = place.run(["tc", "-j", "-s", "qdisc", "show", "dev", interface]).json()
    root = next((q for q in qdiscs if q.get("root") and q["kind"] == "htb"), None)
    if root is None:
        return Counters(sent, None, 0)
    return Counters(sent, root["bytes"], root["options"]["direct_packets_stat"])
