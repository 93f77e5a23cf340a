"""The kernel's own count of what pods sent: a cross-check of iperf3, and proof that nothing went unshaped."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measurement.procfs import sent_bytes
from testbed.access import batch
from testbed.access.place import CommandError, Place

DEVICES = ["cat", "/proc/net/dev"]
QDISCS = ["tc", "-j", "-s", "qdisc", "show", "dev"]


@dataclass(frozen=True)
class Counters:
    """What an interface of a pod or node has sent so far."""

    interface_bytes: int  # layer 2
    class_bytes: int | None  # layer 2, through its HTB; None without one
    direct_packets: int  # packets that found no class and went out unshaped


def read(place: Place, interface: str = "eth0") -> Counters:
    """Read the counters of one place. Raises CommandError."""
    commands = [DEVICES, [*QDISCS, interface]]
    counted, shown = said_of_both = batch.look(place, commands)
    for command, said in zip(commands, said_of_both, strict=True):
        said.checked(place.name, command)
    sent = sent_bytes(counted.stdout)
    if interface not in sent:
        raise CommandError(place.name, DEVICES, 0, f"no {interface} among {', '.join(sent) or 'nothing'}")
    root = next((q for q in shown.json() if q.get("root") and q["kind"] == "htb"), None)
    if root is None:
        return Counters(sent[interface], None, 0)
    return Counters(sent[interface], root["bytes"], root["options"]["direct_packets_stat"])
