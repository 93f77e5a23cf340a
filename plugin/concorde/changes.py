"""`concorde change`: another promise for a pod that runs. Nothing that it sends is dropped by that.

How a promise is counted stands in the network's configuration, and that in what runtimes keep of attachments.
The ledger remembers what the configuration says, for it goes on saying so.
"""

from __future__ import annotations

from . import cache, enforcements, guarantees, pod_annotations
from .cni import INVALID_CONFIGURATION, CniError, shown
from .configuration import Configuration, bits_per_second, node_directory
from .locks import AttachmentLock, NodeLock
from .node import attachments, ledger
from .node.messages import rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .cache import Kept
    from .node.ledger import Ledger
    from .node.records import Entry

PROMISE = pod_annotations.GUARANTEE.removeprefix(pod_annotations.OURS)


class Wanted:
    """A pod, and what it is to be promised (bits per second) of what it sends by an interface."""

    def __init__(self, pod: str, setting: str) -> None:
        """Read `default/web` and `egress-guarantee=2G` or `egress-guarantee.net1=2G`. Raises ValueError."""
        name, equals, quantity = setting.partition("=")
        promise, _, self.interface = name.partition(".")
        if not equals or promise != PROMISE:
            raise ValueError(f"{shown(setting)} is not {PROMISE}=RATE, such as {PROMISE}=2G")
        self.pod = pod
        try:
            self.guarantee = bits_per_second(quantity)
        except ValueError as error:
            raise ValueError(f"{name}: {shown(quantity)} {error}") from None


def change(state: str, caches: Iterable[str], wanted: Wanted) -> str:
    """Do it, and say what was.

    Raises CniError 7 for what cannot be asked, 105 where it does not fit, with the holders, and what ADD
    raises.
    """
    directory = node_directory(state)
    attachments.take_over(state)
    book = ledger.opened(directory)
    entry = _entry(book.entries() if book else [], wanted)
    assert book is not None
    kept = _kept(entry, cache.read(caches)[0])
    with AttachmentLock(f"{state}/{entry.network}", entry.container, entry.interface):
        before = book.find(entry.key)
        if before is None:
            raise _unasked(f"{entry.who} has just ended")
        with NodeLock(directory):
            _change(book, before, kept, wanted)
    was = "nothing" if before.guarantee is None else rate(before.guarantee)
    return f"{entry.who}: {PROMISE} {rate(wanted.guarantee)}, before {was}\n"


def _change(book: Ledger, before: Entry, kept: Kept, wanted: Wanted) -> None:
    configuration = Configuration(kept.document)
    enforcement = enforcements.load(configuration.enforcement)
    settings, lease = enforcement.on_uplink(configuration), book.lease(before.key)
    if settings is None or lease is None:
        problem = f"enforcement {configuration.enforcement} keeps no promise on the node's link"
        raise _unasked(f"{before.who}: {problem}")
    terms = lease.terms
    guarantees.require_within(wanted.guarantee, terms.answers, terms.ceiling, PROMISE)
    terms.guarantee = wanted.guarantee
    attachments.change(
        book, before, attachments.entry_of(configuration, lease, settings, kept.netns), settings
    )


def _entry(entries: list[Entry], wanted: Wanted) -> Entry:
    own = [entry for entry in entries if wanted.pod in (entry.pod, entry.container)]
    if not own:
        raise _unasked(f"no pod {shown(wanted.pod)} is attached to this node (concorde ledger names those)")
    found = [entry for entry in own if wanted.interface in ("", entry.interface)]
    if len(found) != 1:
        there = ", ".join(f"{PROMISE}.{entry.interface}" for entry in own)
        raise _unasked(f"{wanted.pod}: say of which interface: {there}")
    return found[0]


def _kept(entry: Entry, found: Iterable[Kept]) -> Kept:
    for one in found:
        if (one.document.get("name"), one.container, one.interface) == entry.key:
            return one
    raise _unasked(f"{entry.who}: no runtime's cache tells its network's configuration (--cache DIR)")


def _unasked(words: str) -> CniError:
    return CniError(INVALID_CONFIGURATION, words)
