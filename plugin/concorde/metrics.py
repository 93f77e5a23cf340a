"""`concorde metrics`: what is promised on this node, and what its classes count, for a monitoring system.

It reads the ledger and the stores, of which it changes nothing, and asks the kernel. Classes on the uplink
take no privilege to see. Those within pods, where ceilings and enforcement `pod` are kept, take
CAP_SYS_ADMIN, and what the guard has counted takes CAP_NET_ADMIN; without them the rest is told, and how
many classes were not seen.
"""

from __future__ import annotations

import os

from . import VERSION, openmetrics
from .node import htb
from .node.records import promised
from .openmetrics import COUNTER, GAUGE, Family

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .leases import Terms
    from .node.counters import Counters
    from .node.records import Entry, Tree

    Promises = dict[tuple[str, str, str], Terms]  # by the attachment

_POD_CLASS = "1:1"
_KINDS = {htb.CONTROL: "control", htb.DEFAULT: "default"}
_PROMISE, _BEST_EFFORT = "pod", "best-effort"


class Families:
    """All metrics there are."""

    def __init__(self) -> None:
        self.version = _gauge("concorde_build_info", "The version of the plugin; always 1.")
        self.attachments = _gauge("concorde_attachments", "Pods' interfaces that are attached.")
        self.unseen = _gauge(
            "concorde_unseen_classes", "Classes within pods that could not be looked at (CAP_SYS_ADMIN)."
        )
        self.capacity = _gauge("concorde_uplink_capacity_bits_per_second", "What the wire carries.")
        self.reserve = _gauge("concorde_uplink_reserve_bits_per_second", "Kept for control traffic.")
        self.promised = _gauge("concorde_uplink_promised_bits_per_second", "What all guarantees take.")
        self.free = _gauge("concorde_uplink_free_bits_per_second", "What may still be promised.")
        self.guarantee = _gauge("concorde_guarantee_bits_per_second", "The guarantee as it was given.")
        self.answers = _gauge(
            "concorde_answers_bits_per_second", "What acknowledgements are guaranteed, as it was given."
        )
        self.rate = _gauge("concorde_class_rate_bits_per_second", "What a class is sure of, as it counts.")
        self.ceil = _gauge("concorde_class_ceil_bits_per_second", "What a class never exceeds, as it counts.")
        self.sent_bytes = _counter("concorde_class_sent_bytes", "Bytes of layer 2 a class has sent.")
        self.sent_packets = _counter("concorde_class_sent_packets", "Packets a class has sent.")
        self.dropped = _counter("concorde_class_dropped_packets", "Packets a class had no room for.")
        self.backlog_bytes = _gauge("concorde_class_backlog_bytes", "Bytes that wait in a class.")
        self.backlog_packets = _gauge("concorde_class_backlog_packets", "Packets that wait in a class.")

        self.refused = _counter("concorde_refused_packets", "Packets of a pod that the guard dropped.")
        self.differences = _gauge(
            "concorde_differences", "Where the kernel differed from the ledger when the agent last looked."
        )
        self.repairs = _counter("concorde_repairs", "Differences that the agent has repaired.")
        self.compared = _gauge(
            "concorde_last_compare_timestamp_seconds", "When the agent last compared kernel and ledger."
        )

    def __iter__(self) -> Iterator[Family]:
        return iter(vars(self).values())

    def add_class(self, labels: str, rate: int, ceil: int, counters: Counters) -> None:
        """One class: rates in bits per second, and what the kernel counted."""
        self.rate.add(labels, rate)
        self.ceil.add(labels, ceil)
        self.sent_bytes.add(labels, counters.sent_bytes)
        self.sent_packets.add(labels, counters.sent_packets)
        self.dropped.add(labels, counters.dropped)
        self.backlog_bytes.add(labels, counters.backlog_bytes)
        self.backlog_packets.add(labels, counters.backlog_packets)


class Watch:
    """What an agent tells of itself: the differences of its last look and when that was, and its repairs."""

    def __init__(self) -> None:
        self.differences = 0
        self.repairs = 0
        self.compared = 0  # seconds since 1970; 0 before the first look


def collect(state: str, watch: Watch | None = None) -> str:
    """All metrics of a state directory's node, as text. Raises CniError 11, 107, 108 and OSError."""
    tree, entries, promises = _read(state)
    limited = [entry for entry in entries if entry.key in promises and promises[entry.key].rate is not None]
    within, unseen = _of_pods(limited) if limited else ({}, 0)
    return render(tree, entries, promises, _of_uplink(tree), within, unseen, _refused(entries), watch)


def render(
    tree: Tree | None,
    entries: list[Entry],
    promises: Promises,
    uplink: dict[str, Counters],
    within: dict[str, Counters],
    unseen: int,
    refused: dict[tuple[str, str, str], int],
    watch: Watch | None = None,
) -> str:
    """The text.

    `uplink` are its classes by name, `within` those of pods by the node's end of their link, `refused` are
    packets by the attachment.
    """
    told = Families()
    told.version.add(openmetrics.labelled((("version", VERSION),)), 1)
    for network in sorted({entry.network for entry in entries}):
        count = sum(entry.network == network for entry in entries)
        told.attachments.add(openmetrics.labelled((("network", network),)), count)
    told.unseen.add("", unseen)
    if tree is not None:
        _tell_uplink(told, tree, entries, uplink)
    for entry in entries:
        terms, counters = promises.get(entry.key), within.get(_port(entry))
        if terms is not None and terms.guarantee is not None:
            told.guarantee.add(openmetrics.labelled(_who(entry)), terms.guarantee)
        if terms is not None and terms.answers is not None:
            told.answers.add(openmetrics.labelled(_who(entry)), terms.answers)
        if terms is not None and terms.rate is not None and counters is not None:
            labels = _class_labels("pod", entry.interface, _POD_CLASS, entry)
            told.add_class(labels, terms.rate, terms.rate, counters)
        if entry.key in refused:
            told.refused.add(openmetrics.labelled(_who(entry)), refused[entry.key])
    if watch is not None and watch.compared:
        told.differences.add("", watch.differences)
        told.repairs.add("", watch.repairs)
        told.compared.add("", watch.compared)
    return openmetrics.text(told)


def _tell_uplink(told: Families, tree: Tree, entries: list[Entry], uplink: dict[str, Counters]) -> None:
    total = promised(entries)
    device = openmetrics.labelled((("device", tree.uplink),))
    told.capacity.add(device, tree.capacity)
    told.reserve.add(device, tree.reserve)
    told.promised.add(device, total)
    told.free.add(device, max(0, tree.promisable - total))
    of_pods: dict[int, Entry | None] = {minor: entry for entry in entries for minor in htb.minors(entry)}
    for minor, owner in {**of_pods, **dict.fromkeys(_KINDS)}.items():
        name = htb.handle(minor)
        if name in uplink:
            rate, ceil = htb.rates(tree, minor, total, owner)
            of_pod = _PROMISE if htb.of_pod(minor) == minor else _BEST_EFFORT
            labels = _class_labels("uplink", tree.uplink, name, owner, _KINDS.get(minor, of_pod))
            told.add_class(labels, rate, ceil, uplink[name])


def _class_labels(at: str, device: str, name: str, owner: Entry | None, kind: str = _PROMISE) -> str:
    of = _who(owner) if owner is not None else ()
    return openmetrics.labelled((("at", at), ("device", device), ("class", name), ("kind", kind), *of))


def _who(entry: Entry) -> openmetrics.Labels:
    namespace, slash, pod = entry.pod.partition("/")
    if not slash:  # no runtime told
        namespace, pod = "", entry.container
    return ("network", entry.network), ("namespace", namespace), ("pod", pod), ("port", _port(entry))


def _port(entry: Entry) -> str:
    return entry.port or entry.way


def _read(state: str) -> tuple[Tree | None, list[Entry], Promises]:
    """The ledger, and what each network's store says of promises. Raises CniError and OSError."""
    from .configuration import node_directory
    from .node import ledger

    book = ledger.Ledger(node_directory(state), reading=True)
    return book.tree(), book.entries(), _promises(state)


def _promises(state: str) -> Promises:
    from .store import Store, stores

    return {
        (network, lease.container, lease.interface): lease.terms
        for network, directory in (stores(state) if os.path.isdir(state) else ())
        for lease in Store(directory, reading=True).leases()
    }


def _of_uplink(tree: Tree | None) -> dict[str, Counters]:
    from . import rtnetlink
    from .node import counters

    if tree is None:
        return {}
    try:
        return counters.of_classes(rtnetlink.index_of(tree.uplink))
    except OSError as error:
        if error.errno != rtnetlink.NO_SUCH_DEVICE:
            raise
        return {}  # CHECK says that the uplink is missing


def _of_pods(entries: list[Entry]) -> tuple[dict[str, Counters], int]:
    """The class within each pod by the node's end of its link, and how many could not be looked at."""
    from . import namespaces
    from .node import counters

    ends = namespaces.other_ends()
    theirs = {port: ends[port] for port in map(_port, entries) if port in ends}
    try:
        seen = namespaces.within(theirs, counters.of_classes)
    except PermissionError:
        seen = {}
    found = {port: classes[_POD_CLASS] for port, classes in seen.items() if _POD_CLASS in classes}
    return found, len(entries) - len(found)


def _refused(entries: list[Entry]) -> dict[tuple[str, str, str], int]:
    """What `concorde ledger` shows as DROPPED; nothing where we may not ask."""
    from .node import report

    try:
        return report.dropped(entries)
    except PermissionError:
        return {}


def _gauge(name: str, says: str) -> Family:
    return Family(name, GAUGE, says)


def _counter(name: str, says: str) -> Family:
    return Family(name, COUNTER, says)
