"""What the owner of a link decides: how much each sender may send to it.

A node owns its downlink. Senders tell it, every 20 ms or so, what each of their classes towards it sends and
has waiting, and it answers with a ceiling a class: receivers' grants, as EyeQ has them (Jeyakumar and others,
"EyeQ: Practical Network Performance Isolation at the Edge", NSDI 2013), work conserving as ElasticSwitch is
(Popa and others, SIGCOMM 2013). First what is promised and in use is reserved, then what nobody reported is
taken off, and what is left is divided by max-min fairness ("water-filling"; Bertsekas and Gallager, *Data
Networks*, 6.5.2) between the nodes that send, and a node's part between its claims: its best effort is one,
and what a promised class takes beyond its guarantee.

The sum of all is a little below the link, so that its port's queue stays empty. A promise that wakes meets a
full link until senders have heard of it, one or two rounds.

Nothing here reads a clock or a socket. Times are monotonic and in seconds, rates are bits per second of the
wire.
"""

from __future__ import annotations

from itertools import islice
from math import inf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping
    from typing import TypeVar

    Sender = str  # a node's address
    Key = TypeVar("Key", bound=Hashable)

# What of a link is divided: the rest lets the port's queue drain, and takes the floors.
MARGIN = 0.97
# Best effort's least: of the link each sender, and of the link all together.
FLOOR, FLOORS = 0.001, 0.02
# With what somebody starts that has said nothing lately: of the link each, and all together.
START, STARTS = 0.005, 0.01
# What a class that does not wait is thought to want, in rates of its own: best effort; what is reserved of a
# guarantee; what is beyond one. Whoever wants more is soon seen to wait, and nobody else has what is not
# used.
GROWS, GROWS_WITHIN, GROWS_BEYOND = 1.25, 1.1, 1.02
# A rate this near to its reservation has all of its guarantee reserved.
NEAR = 0.95
# How long an unused reservation takes to go, all of it (seconds).
DECAY = 0.2
# A class of which nothing was seen for so long has stopped; at low rates two packets' time, and never more
# than the other (seconds). After it the promise counts as idle.
STOPS, STOPS_AT_LAST = 0.019, 0.1
# A class that waited is thought to want all it can get for so long; and for so long it is remembered, by a
# part of what it had: TCP in a retransmission time-out looks idle (RFC 6298: a second at first).
HUNGRY, REMEMBERED, REMEMBERED_PART = 0.1, 1.0, 0.1
# What waits longer than this at its ceiling waits in earnest, even if nothing waited a round before
# (seconds).
WAITS = 0.005
# Senders that were not heard for so long are foreign.
SILENT = 0.3
# After a promise woke on a full link, what was sent too much waits in the port: it is counted for so long, up
# to a port's queue (both seconds), and then so much of the link is left for it to drain.
OVERLOAD, QUEUE, DRAIN = 0.05, 0.01, 0.1
# With nothing under way for so long the link is asleep (seconds).
ASLEEP = 2.0
# Time constants by which rates follow what was measured (seconds): what a class sends, what arrives of a
# source that says nothing, and what arrives of one that reports: that one's is a difference of two.
_FOLLOWS, _FOREIGN, _UNREPORTED = 0.03, 0.03, 0.1
# Packets before segmentation: in 10 ms one alone is 52 Mbit/s (bits; GSO_LEGACY_MAX_SIZE, linux/netdevice.h).
_PACKET = 8 * 65536
# What is sent at once when nobody has anything to say: two full frames, a handshake or an ARP (bits). Less
# wakes no promise.
_WAKES = 8 * 3000
# What may arrive beyond what was reported: headers that one end counts, and packets between two rounds.
_NOISE = 1.05
# The rounds over which reports and arrivals may be apart.
_APART = 4
# Between two reports, as they count (seconds).
_SHORTEST, _LONGEST = 0.004, 0.1
# Claims of one sender that are heard.
MOST_CLAIMS = 1024
_LARGEST = 1 << 40  # bytes that may wait


class Claim:
    """What a sender reports of one of its classes towards the owner of a link.

    `guarantee` is 0 for best effort, `rate` what it sent over its last interval (bits per second of the
    wire), `waiting` what is queued (bytes). `limited` says that it is held back elsewhere: by its uplink, or
    by another owner's ceiling.
    """

    __slots__ = ("guarantee", "limited", "rate", "waiting")

    def __init__(
        self, guarantee: float = 0.0, rate: float = 0.0, waiting: float = 0, limited: bool = False
    ) -> None:
        self.guarantee = guarantee
        self.rate = rate
        self.waiting = waiting
        self.limited = limited


def max_min(free: float, demands: Mapping[Key, float]) -> dict[Key, float]:
    """Divide `free` by max-min fairness; a demand may be infinite.

    Nobody gets more than it demands, and nobody's part can grow but at the cost of one that has no more.
    """
    parts: dict[Key, float] = {}
    left = max(free, 0.0)
    waiting = len(demands)
    for key in sorted(demands, key=demands.__getitem__):
        parts[key] = max(min(demands[key], left / waiting), 0.0)
        left -= parts[key]
        waiting -= 1
    return parts


def by_senders(free: float, demands: Mapping[Sender, Mapping[Key, float]]) -> dict[Sender, dict[Key, float]]:
    """Divide `free` between senders, and each one's part between its claims, by max-min fairness.

    So nobody has more for naming more claims. What nobody demands, all get alike.
    """
    parts = _divided(free, {sender: sum(its.values()) for sender, its in demands.items() if its})
    return {sender: _divided(part, demands[sender]) for sender, part in parts.items()}


class Downlink:
    """Who may send how much to a node: the owner's view of its link.

    `capacity` is the link's (bits per second of the wire), `margin` the part of it that is divided.
    `promised` is what is promised of it in all; what senders want to have reserved beyond that is not
    believed. It may change. After divide(), `reserved`, `foreign` and `free` say what of the link (bits per
    second) went where.
    """

    def __init__(self, capacity: float, margin: float = MARGIN, promised: float = inf) -> None:
        self.capacity = capacity
        self.margin = margin
        self.promised = promised
        self.reserved = self.foreign = 0.0
        self.free = capacity * margin
        self._senders: dict[Sender, _Sender] = {}
        self._arrivals: dict[Sender, _Arrivals] = {}
        self._arrived_at: float | None = None
        self._active_at: float | None = None
        self._divided_at: float | None = None
        self._woke_at = -inf  # when a promise last met a full link
        self._queued = 0.0  # what waits in the port, as far as we know (bits)

    def report(self, sender: Sender, claims: Mapping[int, Claim], now: float) -> bool:
        """Replace what a sender said, by the minor numbers of its classes; one that is not there is idle.

        Return whether a promise woke on a full link: the others are to hear of it at once.
        """
        known = self._senders.get(sender)
        if known is None:
            known = self._senders[sender] = _Sender(now)
        known.report(claims, now, self.capacity)
        if known.active or self._active_at is None:
            self._active_at = now
        if not known.woke or self._sent() + known.woke <= self.capacity * self.margin:
            return False
        self._woke_at = now
        return True

    def arrived(self, rates: Mapping[Sender, float], now: float) -> None:
        """Take in what arrived here over the last interval, by the node that sent it (bits per second)."""
        since = _SHORTEST if self._arrived_at is None else _since(self._arrived_at, now)
        self._arrived_at = now
        if self._active_at is None or any(rate > FLOOR * self.capacity for rate in rates.values()):
            self._active_at = now
        for source in {**self._arrivals, **rates}:
            arrivals = self._arrivals.setdefault(source, _Arrivals())
            sender = self._senders.get(source)
            rate = _within(rates.get(source, 0.0), self.capacity)
            if sender is None:
                arrivals.follow(since, _FOREIGN, rate)
            else:
                arrivals.follow(since, _UNREPORTED, rate, sender.rate, sender.granted)
            if sender is None and arrivals.arrived < 1:
                del self._arrivals[source]

    def divide(self, now: float) -> dict[Sender, dict[int, float]]:
        """Return each sender's ceilings (bits per second) by the minor numbers of its classes.

        Best effort's is a small floor at least, a promised class's its guarantee: what is not there has that.
        """
        self._forget(now)
        usable = self.capacity * self.margin
        self.reserved = min(self._reserved(), usable)
        self.foreign = sum(
            arrivals.unreported() if source in self._senders else arrivals.arrived
            for source, arrivals in self._arrivals.items()
        )
        self.free = max(usable - self.reserved - self.foreign - self._draining(now), 0.0)
        start = self.capacity * min(START, STARTS / max(len(self._senders), 1))
        floor = self.capacity * min(FLOOR, FLOORS / max(len(self._senders), 1))
        return self._ceilings(self._parts(start, now), start, floor, now)

    def hurries(self, now: float) -> bool:
        """Say whether a promise woke on a full link just now: then rounds are to be short."""
        return now - self._woke_at < DECAY

    def asleep(self, now: float) -> bool:
        """Say whether nothing was sent to this node for a while, but for the chatter of nodes."""
        return self._active_at is None or now - self._active_at > ASLEEP

    def _all(self) -> Iterable[_Known]:
        return (known for sender in self._senders.values() for known in sender.known.values())

    def _forget(self, now: float) -> None:
        for address, sender in list(self._senders.items()):
            if now - sender.heard > SILENT:
                del self._senders[address]

    def _draining(self, now: float) -> float:
        """What is left free (bits per second) for the port's queue to drain after an overload."""
        since = _SHORTEST if self._divided_at is None else _since(self._divided_at, now)
        self._divided_at = now
        woken = sum(known.guarantee for known in self._all() if now - known.woke_at <= OVERLOAD)
        too_much = max(min(woken, self._sent() - self.capacity), 0.0) * since
        self._queued = min(self._queued + too_much, QUEUE * self.capacity)
        drains = min(self._queued / since, DRAIN * self.capacity)
        self._queued -= drains * since
        return drains

    def _sent(self) -> float:
        """What all say they send here, and what nobody reported."""
        return self.foreign + sum(sender.rate for sender in self._senders.values())

    def _reserved(self) -> float:
        """What is reserved for all. Beyond what is promised here only what is used is believed."""
        reserved = sum(known.reserved for known in self._all())
        if reserved <= self.promised:
            return reserved
        used = 0.0
        for address, sender in self._senders.items():
            of_it = sum(min(known.rate, known.guarantee) for known in sender.known.values())
            if self._arrived_at is not None:
                of_it = min(of_it, self._arrivals.get(address, _Arrivals()).most)
            used += of_it
        return min(reserved, max(self.promised, used))

    def _believed(self) -> dict[Sender, float]:
        """Which part of their guarantees senders are given, where more is claimed than is promised here.

        It is all of them, unless that leaves others less than what they may have been promised.
        """
        reserved = {
            address: sum(known.reserved for known in sender.known.values())
            for address, sender in self._senders.items()
        }
        if sum(reserved.values()) <= self.promised:
            return {}
        most = {address: min(its, self.promised) for address, its in reserved.items()}
        usable, all_of_it = self.capacity * self.margin, sum(most.values())
        believed = {}
        for address, sender in self._senders.items():
            claimed = sum(known.guarantee for known in sender.known.values() if known.awake)
            left = max(usable - all_of_it + most[address], 0.0)
            believed[address] = min(1.0, left / claimed) if claimed else 1.0
        return believed

    def _parts(self, start: float, now: float) -> dict[tuple[Sender, int | None], float]:
        """What of the free rate each claim gets: best effort's have no number."""
        demands = {address: sender.demands(start, now) for address, sender in self._senders.items()}
        return {
            (address, minor): part
            for address, parts in by_senders(self.free, demands).items()
            for minor, part in parts.items()
        }

    def _ceilings(
        self, parts: Mapping[tuple[Sender, int | None], float], start: float, floor: float, now: float
    ) -> dict[Sender, dict[int, float]]:
        ceilings: dict[Sender, dict[int, float]] = {}
        believed = self._believed()
        for address, sender in self._senders.items():
            part = max(parts.get((address, None), 0.0), floor)
            of_classes = sender.divided(part, start, now)
            for minor, known in sender.known.items():
                if known.guarantee:
                    own = known.guarantee * believed.get(address, 1.0)
                    of_classes[minor] = own + parts.get((address, minor), 0.0)
                known.give(of_classes[minor], now)
            sender.granted = sum(of_classes.values())
            ceilings[address] = {
                minor: ceiling
                for minor, ceiling in of_classes.items()
                if ceiling != sender.known[minor].guarantee
            }
        return ceilings


class _Sender:
    """What one sender said and was given."""

    def __init__(self, now: float) -> None:
        self.heard = now
        self.known: dict[int, _Known] = {}
        self.rate = 0.0  # all that it says it sends
        self.granted = 0.0  # all that it may send
        self.active = False  # anything of it, by its last report
        self.woke = 0.0  # what is promised to those of it that woke by that

    def report(self, claims: Mapping[int, Claim], now: float, capacity: float) -> None:
        """Take in what it says of all its classes."""
        since = _since(self.heard, now)
        self.heard = now
        self.rate = 0.0
        self.active, self.woke = False, 0.0
        for minor, claim in islice(claims.items(), MOST_CLAIMS):
            known = self.known.get(minor)
            if known is None:
                known = self.known[minor] = _Known()
            known.take(claim, since, now, capacity)
            self.rate += _within(claim.rate, capacity)
            self.active = self.active or known.active_at == now
            self.woke += known.guarantee if known.woke_at == now else 0.0
        if self.known.keys() != claims.keys():
            self._age(claims, since, now, capacity)

    def _age(self, claims: Mapping[int, Claim], since: float, now: float, capacity: float) -> None:
        """What is no longer reported is idle, and after a while forgotten."""
        for minor, known in list(self.known.items()):
            if minor in claims:
                continue
            known.rest(since, now, capacity)
            if not known.lasts(now) or len(self.known) > MOST_CLAIMS:
                del self.known[minor]

    def demands(self, start: float, now: float) -> dict[int | None, float]:
        """What of the free rate its claims could use; that of best effort has no number."""
        found: dict[int | None, float] = {
            minor: known.demand(start, now)
            for minor, known in self.known.items()
            if known.guarantee and known.awake
        }
        best_effort = self._best_effort(start, now)
        return {None: sum(best_effort.values()), **found} if best_effort else found

    def divided(self, part: float, start: float, now: float) -> dict[int, float]:
        """Best effort's part by its classes; most often there is one."""
        return _divided(part, self._best_effort(start, now))

    def _best_effort(self, start: float, now: float) -> dict[int, float]:
        return {minor: known.demand(start, now) for minor, known in self.known.items() if not known.guarantee}


class _Known:
    """What is known of one class of a sender."""

    __slots__ = (
        "active_at",
        "awake",
        "ceiling",
        "guarantee",
        "hungry_at",
        "limited",
        "part",
        "rate",
        "reserved",
        "waits",
        "woke_at",
    )

    def __init__(self) -> None:
        self.guarantee = self.rate = self.reserved = self.ceiling = self.part = 0.0
        self.active_at = self.hungry_at = self.woke_at = -inf
        self.awake = self.waits = self.limited = False

    def take(self, claim: Claim, since: float, now: float, capacity: float) -> None:
        """Follow what was reported, `since` seconds after the last time."""
        rate = _within(claim.rate, capacity)
        waiting = _within(claim.waiting, _LARGEST)
        self.guarantee = _within(claim.guarantee, capacity)
        self.limited = claim.limited
        if rate or waiting:
            self.active_at = now
        elif self._stopped(now):
            self.awake = False
            self.reserved = self.rate = 0.0
        weight = _weight(since, _FOLLOWS)
        self.rate += (rate - self.rate) * weight
        pressed = self._pressed(waiting)
        self.waits = waiting > 0
        if pressed:
            self.hungry_at = now
        enough = rate * since >= min(_WAKES, self.guarantee * since / 2) > 0
        woken = not self.awake and (waiting > 0 or enough)
        if woken:
            self.awake, self.woke_at = True, now
        # One packet more or less is no change.
        near = self.rate - min(_PACKET / since * weight, self.guarantee / 4) > NEAR * self.reserved
        if woken or pressed or (near and self.awake):
            self.reserved = self.guarantee
        else:
            unused = self.reserved - self.guarantee * since / DECAY
            self.reserved = min(max(GROWS_WITHIN * self.rate, unused), self.guarantee)

    def rest(self, since: float, now: float, capacity: float) -> None:
        """It sends nothing, and nothing waits there; of who is idle by now that is no news."""
        if self.awake or self.waits or self.rate:
            self.take(Claim(self.guarantee, limited=self.limited), since, now, capacity)

    def lasts(self, now: float) -> bool:
        """Whether what it was makes a difference yet: of a promise that sleeps nothing does."""
        return self.awake if self.guarantee else now - self.active_at <= REMEMBERED

    def _stopped(self, now: float) -> bool:
        two_packets = 2 * _PACKET / self.rate if self.rate else 0.0
        return now - self.active_at > min(max(STOPS, two_packets), STOPS_AT_LAST)

    def _pressed(self, waiting: float) -> bool:
        """Whether it is our ceiling that keeps it from sending: something waits again, or for long."""
        return waiting > 0 and not self.limited and (self.waits or 8 * waiting > WAITS * self.ceiling)

    def demand(self, start: float, now: float) -> float:
        """What of the free rate it could use."""
        since = now - self.hungry_at
        if self.guarantee:
            hungry = since <= HUNGRY and not self.limited
            return inf if hungry else max(GROWS_BEYOND * self.rate - self.guarantee, 0.0)
        if since <= HUNGRY and not self.limited:
            return inf
        remembered = REMEMBERED_PART * self.part if since <= REMEMBERED else 0.0
        return max(GROWS * self.rate, remembered, start)

    def give(self, ceiling: float, now: float) -> None:
        """Remember what it was given, and what while it wanted all it could get."""
        self.ceiling = ceiling
        if now - self.hungry_at <= HUNGRY:
            self.part = ceiling


class _Arrivals:
    """What arrives from one source, beside what it says that it sends and what it was granted."""

    def __init__(self) -> None:
        self._now: tuple[float, ...] = (0.0, 0.0, 0.0)
        self._before: list[tuple[float, ...]] = []

    @property
    def arrived(self) -> float:
        """All that arrives of it."""
        return self._now[0]

    @property
    def most(self) -> float:
        """What may have arrived of it, by what was measured."""
        return _NOISE * self.arrived + _PACKET / _UNREPORTED

    def follow(
        self, since: float, constant: float, arrived: float, said: float = 0.0, granted: float = 0.0
    ) -> None:
        """Take in what was measured over an interval; all are followed in the same way, to be compared."""
        weight = _weight(since, constant)
        now = (arrived, said, granted)
        self._now = tuple(old + (new - old) * weight for old, new in zip(self._now, now))
        self._before = [*self._before[1 - _APART :], self._now]

    def unreported(self) -> float:
        """What arrives beyond what was reported or granted; a few percent and a packet are noise.

        Reports, grants and packets do not come at once. So the least of what arrived in the last rounds
        stands beside the most of the others.
        """
        if not self._before:
            return 0.0
        arrived = min(one[0] for one in self._before)
        said, granted = (max(one[at] for one in self._before) for at in (1, 2))
        return max(arrived - _NOISE * min(said, granted) - _PACKET / _UNREPORTED, 0.0)


def _divided(free: float, demands: Mapping[Key, float]) -> dict[Key, float]:
    """By max-min fairness; what nobody demands, all get alike: a demand is only a guess."""
    parts = max_min(free, demands)
    rest = max(free - sum(parts.values()), 0.0)
    return {key: part + rest / len(parts) for key, part in parts.items()}


def _within(value: float, most: float) -> float:
    """A number as it may be: none is below 0, or no number at all."""
    return value if 0 <= value <= most else most if value > most else 0.0


def _since(before: float, now: float) -> float:
    return min(max(now - before, _SHORTEST), _LONGEST)


def _weight(since: float, constant: float) -> float:
    """How much of the way to a new value is gone in a time: the first-order filter's, without exp()."""
    return since / (since + constant)
