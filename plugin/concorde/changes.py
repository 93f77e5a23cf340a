"""`concorde change`: other promises for a pod that runs. Nothing that it sends is dropped by that, but
what waits in the class of a promise that is taken away.

How a promise is counted stands in the network's configuration, and that in what runtimes keep of attachments.
The ledger remembers what the configuration says, for it goes on saying so. What the pod has then is what ADD
would have given it with these annotations.
"""

from __future__ import annotations

from . import cache, enforcements, guarantees
from .cni import INVALID_CONFIGURATION, CniError, shown
from .configuration import Configuration, bits_per_second, node_directory
from .leases import EGRESS, INGRESS
from .locks import AttachmentLock, NodeLock
from .node import attachments, ledger
from .node.messages import rate
from .verbs.add import require_receiver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .cache import Kept
    from .node.ledger import Heard, Ledger
    from .node.records import Entry

_DIRECTIONS = {f"{direction}-guarantee": direction for direction in (EGRESS, INGRESS)}
_ANSWERS = "answers-guarantee"
FIXED = f"{_ANSWERS} stays as the pod began with it; without one, answers follow ingress-guarantee"
EXAMPLE = " or ".join(f"{promise}=RATE" for promise in _DIRECTIONS)


class Wanted:
    """A pod, and what it is to be promised of what it sends or receives by an interface, by direction."""

    def __init__(self, pod: str, settings: Iterable[str]) -> None:
        """Read `default/web`, and `egress-guarantee=2G` or `ingress-guarantee.net1=2G`.

        Without a rate it is as without an annotation. Raises ValueError.
        """
        self.pod = pod
        self.interface, self.promises = "", dict[str, str | None]()
        for setting in settings:
            name, equals, quantity = setting.partition("=")
            promise, _, interface = name.partition(".")
            direction = _DIRECTIONS.get(promise)
            if promise == _ANSWERS:
                raise ValueError(FIXED)
            if not equals or direction is None:
                raise ValueError(f"{shown(setting)} is not {EXAMPLE}, such as egress-guarantee=2G")
            try:
                if quantity:
                    bits_per_second(quantity)
            except ValueError as error:
                raise ValueError(f"{name}: {shown(quantity)} {error}") from None
            if direction in self.promises:
                raise ValueError(f"{promise} is given twice")
            if self.promises and interface != self.interface:
                raise ValueError(f"{name}: one call changes what one interface is promised")
            self.promises[direction], self.interface = quantity or None, interface


def change(state: str, caches: Iterable[str], wanted: Wanted, heard: Heard | None = None) -> str:
    """Do it, and say what was.

    `heard` is what the pod is annotated with, if that is why. Raises CniError 7 for what cannot be asked, 105
    where it does not fit, with the holders, and what ADD raises.
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
            after = _change(book, before, kept, wanted, heard)
    return "".join(
        f"{entry.who}: {way}-guarantee {_rate(after.promise(way))}, before {_rate(before.promise(way))}\n"
        for way in wanted.promises
    )


def _rate(promise: int | None) -> str:
    return "nothing" if promise is None else rate(promise)


def _change(book: Ledger, before: Entry, kept: Kept, wanted: Wanted, heard: Heard | None) -> Entry:
    configuration = Configuration(kept.document)
    enforcement = enforcements.load(configuration.enforcement)
    settings, lease = enforcement.on_uplink(configuration), book.lease(before.key)
    if settings is None or lease is None:
        problem = f"enforcement {configuration.enforcement} keeps no promise on the node's link"
        raise _unasked(f"{before.who}: {problem}")
    mtu = lease.mtu(configuration)
    keeps = enforcement.RESERVES, enforcement.RECEIVES
    said = book.changed().get(before.key, {})
    lease.terms = guarantees.terms_by_now(configuration, mtu, *keeps, lease.terms, said, wanted.promises)
    if wanted.promises.get(INGRESS):
        require_receiver(configuration, enforcement, lease.terms)
    after = attachments.entry_of(configuration, lease, settings, kept.netns)
    attachments.change(book, before, after, settings, heard)
    return after


def _entry(entries: list[Entry], wanted: Wanted) -> Entry:
    own = [entry for entry in entries if wanted.pod in (entry.pod, entry.container)]
    if not own:
        raise _unasked(f"no pod {shown(wanted.pod)} is attached to this node (concorde ledger names those)")
    found = [entry for entry in own if wanted.interface in ("", entry.interface)]
    if len(found) != 1:
        first = next(iter(wanted.promises))
        there = ", ".join(f"{first}-guarantee.{entry.interface}" for entry in own)
        raise _unasked(f"{wanted.pod}: say of which interface: {there}")
    return found[0]


def _kept(entry: Entry, found: Iterable[Kept]) -> Kept:
    for one in found:
        if (one.document.get("name"), one.container, one.interface) == entry.key:
            return one
    raise _unasked(f"{entry.who}: no runtime's cache tells its network's configuration (--cache DIR)")


def _unasked(words: str) -> CniError:
    return CniError(INVALID_CONFIGURATION, words)
