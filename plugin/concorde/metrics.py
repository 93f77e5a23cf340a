"""`concorde metrics`: what is promised on this node, and what its classes count, for a monitoring system.

It reads the ledger, of which it changes nothing, and asks the kernel. Classes on the uplink
take no privilege to see. Those within pods, where ceilings and enforcement `pod` are kept, take
CAP_SYS_ADMIN, and what the guard has counted takes CAP_NET_ADMIN; without them the rest is told, and how
many classes were not seen.

What it prints is OpenMetrics text, as far as node_exporter's textfile collector reads it too. That reads
Prometheus' own format, which knows of OpenMetrics' types only counter and gauge, and takes `# EOF` for a
comment; a timestamp, or another type, would have it refuse the file (prometheus/common,
expfmt/text_parse.go). Sources: OpenMetrics 1.0, sections "ABNF" and "Text format"; linux/rtnetlink.h (struct
tcmsg), linux/gen_stats.h; iproute2's tc/tc_util.c, print_tcstats2_attr().
"""

from __future__ import annotations

from struct import unpack_from
from time import time

from edge import netlink as nl

from . import VERSION, files, locks, state_files, strict_json
from .cni import CniError
from .leases import INGRESS
from .node import htb
from .node.records import of_tree, promised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .leases import Terms
    from .node.records import Entry, Tree

    Promises = dict[tuple[str, str, str], Terms]  # by the attachment
    Labels = tuple[tuple[str, str], ...]

GAUGE, COUNTER = "gauge", "counter"
END = "# EOF\n"
_POD_CLASS = "1:1"
_LONGEST = 1 << 20  # of what an agent's loop tells (bytes)
# It tells so at least every five seconds, while it has a part (seconds).
_OF_LATE = 30
_KINDS = {htb.CONTROL: "control", htb.DEFAULT: "default"}
_PROMISE, _BEST_EFFORT = "pod", "best-effort"
_BASIC, _QUEUE, _PACKETS = 1, 3, 8  # TCA_STATS_BASIC, _QUEUE, _PKT64 (Linux 5.5)


class Counters:
    """What one class has sent, dropped, and has waiting: bytes of layer 2, and packets."""

    def __init__(
        self, sent_bytes: int, sent_packets: int, dropped: int, backlog_bytes: int, backlog_packets: int
    ) -> None:
        self.sent_bytes = sent_bytes
        self.sent_packets = sent_packets
        self.dropped = dropped
        self.backlog_bytes = backlog_bytes
        self.backlog_packets = backlog_packets


def of_classes(index: int) -> dict[str, Counters]:
    """Each class of HTB of an interface, given by its number, by its name as tc writes that: `c0de:10`.

    None where there is no such interface. Raises OSError.
    """
    asked = nl.tcmsg(index)
    found = {}
    for message in nl.ask(nl.RTM_GETTCLASS, nl.DUMP, asked):
        (handle,) = unpack_from("=I", message, 8)
        attributes = nl.attributes(message, nl.TCMSG)
        if attributes[nl.TCA_KIND] == b"htb\0":  # a TBF shows a class too, which counts nothing
            found[_text(handle)] = _counters(attributes)
    # HTB's own count lacks what a class's queue takes to make room for others, as fq_codel does.
    for message in nl.ask(nl.RTM_GETQDISC, nl.DUMP, asked):
        its, _, parent = unpack_from("=iII", message, 4)
        if its == index and _text(parent) in found:
            own = found[_text(parent)]
            own.dropped = max(own.dropped, _counters(nl.attributes(message, nl.TCMSG)).dropped)
    return found


def _text(handle: int) -> str:
    return f"{handle >> 16:x}:{handle & 0xFFFF:x}"


def _counters(attributes: nl.Attributes) -> Counters:
    stats = nl.attributes(attributes[nl.TCA_STATS2])
    sent, packets = unpack_from("=QI", stats[_BASIC])
    if _PACKETS in stats:
        (packets,) = unpack_from("=Q", stats[_PACKETS])
    waiting, backlog, dropped = unpack_from("=III", stats[_QUEUE])
    return Counters(sent, packets, dropped, backlog, waiting)


class Family:
    """A metric with all its samples; a counter's name is without `_total`."""

    def __init__(self, name: str, kind: str, says: str) -> None:
        self.name = name
        self.kind = kind
        self.says = says
        self.samples: list[tuple[str, int]] = []

    def add(self, labels: str, value: int) -> None:
        """One more sample; the labels as labelled() writes them."""
        self.samples.append((labels, value))


def labelled(labels: Labels) -> str:
    """Labels as they stand behind a name; those that are empty are left out, which means the same."""
    written = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels if value)
    return f"{{{written}}}" if written else ""


def text(families: Iterable[Family]) -> str:
    """All of it; families without a sample are left out."""
    lines = []
    for family in families:
        if not family.samples:
            continue
        lines.append(f"# TYPE {family.name} {family.kind}\n# HELP {family.name} {_escaped(family.says)}\n")
        name = family.name + ("_total" if family.kind == COUNTER else "")
        lines += [f"{name}{labels} {value}\n" for labels, value in family.samples]
    return "".join(lines) + END


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
        self.ingress = _gauge(
            "concorde_ingress_bits_per_second", "What it receives is guaranteed, as it was given."
        )
        self.ingress_promised = _gauge(
            "concorde_downlink_promised_bits_per_second", "What all guarantees of what is received take."
        )
        self.ingress_free = _gauge(
            "concorde_downlink_free_bits_per_second", "What may still be promised of what is received."
        )
        self.takes_part = _gauge(
            "concorde_fabric_agent", "Whether an agent divides what arrives by this link: 1, or 0."
        )
        self.nodes = _gauge("concorde_fabric_nodes", "Nodes that grant what is sent to them.")
        self.reserved = _gauge(
            "concorde_fabric_reserved_bits_per_second", "What promises take of what may arrive, on the wire."
        )
        self.foreign = _gauge(
            "concorde_fabric_foreign_bits_per_second", "What arrives and no agent told of, on the wire."
        )
        self.unreserved = _gauge(
            "concorde_fabric_free_bits_per_second", "What is left to be granted to all others, on the wire."
        )
        self.granted = _gauge(
            "concorde_fabric_ceil_bits_per_second", "What a class may send for now, on the wire."
        )
        self.messages = _counter(
            "concorde_fabric_refused_messages", "Messages of other nodes' agents that were not believed."
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
        for name, value in {"rate": rate, "ceil": ceil, **vars(counters)}.items():
            vars(self)[name].add(labels, value)


class Watch:
    """What an agent tells of itself: the differences of its last look and when that was, and its repairs."""

    def __init__(self) -> None:
        self.differences = 0
        self.repairs = 0
        self.compared = 0  # seconds since 1970; 0 before the first look


def collect(state: str, watch: Watch | None = None) -> str:
    """All metrics of a state directory's node, as text. Raises CniError 11, 107, 108 and OSError."""
    trees, entries, promises = _read(state)
    limited = [entry for entry in entries if entry.key in promises and promises[entry.key].rate is not None]
    within, unseen = _of_pods(limited) if limited else ({}, 0)
    counted = {tree.uplink: _of_uplink(tree) for tree in trees}
    refused, fabric = _refused(entries), of_fabric(state)
    return render(trees, entries, promises, counted, within, unseen, refused, watch, fabric)


def render(
    trees: list[Tree],
    entries: list[Entry],
    promises: Promises,
    uplinks: dict[str, dict[str, Counters]],
    within: dict[str, Counters],
    unseen: int,
    refused: dict[tuple[str, str, str], int],
    watch: Watch | None = None,
    fabric: dict[str, Any] | None = None,
) -> str:
    """The text.

    `uplinks` are each one's classes by name, `within` those of pods by the node's end of their link,
    `refused` are packets by the attachment, `fabric` is what the agent's loop tells, if there is one.
    """
    families = Families()
    families.version.add(labelled((("version", VERSION),)), 1)
    for network in sorted({entry.network for entry in entries}):
        count = sum(entry.network == network for entry in entries)
        families.attachments.add(labelled((("network", network),)), count)
    families.unseen.add("", unseen)
    for tree in trees:
        _tell_uplink(families, tree, of_tree(tree, entries), uplinks.get(tree.uplink, {}))
        if tree.fabric is not None:
            _tell_fabric(families, tree.uplink, fabric)
    _tell_attachments(families, entries, promises, within, refused)
    if watch is not None and watch.compared:
        families.differences.add("", watch.differences)
        families.repairs.add("", watch.repairs)
        families.compared.add("", watch.compared)
    return text(families)


def _tell_attachments(
    families: Families,
    entries: list[Entry],
    promises: Promises,
    within: dict[str, Counters],
    refused: dict[tuple[str, str, str], int],
) -> None:
    for entry in entries:
        terms, counters = promises.get(entry.key), within.get(entry.end)
        if terms is not None and terms.guarantee is not None:
            families.guarantee.add(labelled(_who(entry)), terms.guarantee)
        if terms is not None and terms.answers is not None:
            families.answers.add(labelled(_who(entry)), terms.answers)
        if terms is not None and terms.ingress is not None:
            families.ingress.add(labelled(_who(entry)), terms.ingress)
        if terms is not None and terms.rate is not None and counters is not None:
            labels = _class_labels("pod", entry.interface, _POD_CLASS, entry)
            families.add_class(labels, terms.rate, terms.rate, counters)
        if entry.key in refused:
            families.refused.add(labelled(_who(entry)), refused[entry.key])


def _tell_uplink(families: Families, tree: Tree, entries: list[Entry], uplink: dict[str, Counters]) -> None:
    total = promised(entries)
    device = labelled((("device", tree.uplink),))
    families.capacity.add(device, tree.capacity)
    families.reserve.add(device, tree.reserve)
    families.promised.add(device, total)
    families.free.add(device, max(0, tree.promisable - total))
    if tree.fabric is not None:  # elsewhere nothing is promised of what arrives
        received = promised(entries, INGRESS)
        families.ingress_promised.add(device, received)
        families.ingress_free.add(device, max(0, tree.downlink.promisable - received))
    of_pods: dict[int, Entry | None] = {minor: entry for entry in entries for minor in htb.minors(entry)}
    for minor, owner in {**of_pods, **dict.fromkeys(_KINDS)}.items():
        name = htb.handle(minor)
        if name in uplink:
            rate, ceil = htb.rates(tree, minor, total, owner)
            of_pod = _PROMISE if htb.of_pod(minor) == minor else _BEST_EFFORT
            labels = _class_labels("uplink", tree.uplink, name, owner, _KINDS.get(minor, of_pod))
            families.add_class(labels, rate, ceil, uplink[name])


def _tell_fabric(families: Families, uplink: str, told: dict[str, Any] | None) -> None:
    device = ("device", uplink)
    families.takes_part.add(labelled((device,)), int(told is not None))
    if told is None:
        return
    families.nodes.add(labelled((device,)), len(told["nodes"]))
    link = told["downlink"]
    families.reserved.add(labelled((device,)), link["reserved"])
    families.foreign.add(labelled((device,)), link["foreign"])
    families.unreserved.add(labelled((device,)), link["free"])
    for name, ceil in told["ceilings"].items():
        families.granted.add(labelled((device, ("class", name))), ceil)
    for reason, count in told["refused"].items():
        families.messages.add(labelled((device, ("reason", reason))), count)


def _class_labels(at: str, device: str, name: str, owner: Entry | None, kind: str = _PROMISE) -> str:
    of = _who(owner) if owner is not None else ()
    return labelled((("at", at), ("device", device), ("class", name), ("kind", kind), *of))


def _who(entry: Entry) -> Labels:
    namespace, slash, pod = entry.pod.partition("/")
    if not slash:  # no runtime told
        namespace, pod = "", entry.container
    return ("network", entry.network), ("namespace", namespace), ("pod", pod), ("port", entry.end)


def _read(state: str) -> tuple[list[Tree], list[Entry], Promises]:
    """What the ledger says of trees, attachments and promises. Raises CniError and OSError."""
    from .configuration import node_directory
    from .node import ledger

    book = ledger.Ledger(node_directory(state), reading=True)
    return book.trees(), book.entries(), {key: lease.terms for key, lease in book.leases().items()}


def of_fabric(state: str) -> dict[str, Any] | None:
    """What the agent's loop told of late; None if there is no such loop, or it has no part in a fabric."""
    from .configuration import node_directory

    directory = node_directory(state)
    if not locks.is_present(directory, state_files.FABRIC_LOCK):
        return None
    try:
        told = strict_json.decode(files.read(f"{directory}/{state_files.FABRIC_STATE}", _LONGEST))
    except (OSError, ValueError, CniError):
        return None
    return told if time() - told["at"] < _OF_LATE else None


def _of_uplink(tree: Tree) -> dict[str, Counters]:
    from . import rtnetlink

    with nl.Ignoring(rtnetlink.NO_SUCH_DEVICE):  # CHECK says that the uplink is missing
        return of_classes(rtnetlink.index_of(tree.uplink))
    return {}


def _of_pods(entries: list[Entry]) -> tuple[dict[str, Counters], int]:
    """The class within each pod by the node's end of its link, and how many could not be looked at."""
    from . import namespaces

    ends = namespaces.other_ends()
    theirs = {port: ends[port] for port in (entry.end for entry in entries) if port in ends}
    try:
        classes_of = namespaces.within(theirs, of_classes)
    except PermissionError:
        classes_of = {}
    found = {port: classes[_POD_CLASS] for port, classes in classes_of.items() if _POD_CLASS in classes}
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
