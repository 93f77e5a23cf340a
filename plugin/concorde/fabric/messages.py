"""What agents of nodes tell each other, and whether it is to be believed.

Datagrams of UDP, in network byte order, of at most 1,400 bytes:

    magic "CF", version 1, kind | sender's boot, sequence | receiver's boot, sequence as last seen
    part, parts, keys | of each key: its number (4 bytes), a MAC (16 bytes) | the body

*Whose it is.* A MAC is HMAC-SHA256 (RFC 2104) cut to 16 bytes, over both addresses, all but the MACs, and the
body. There is one for each key that the sender has: a node has one of each of its clusters. It is believed if
at least one is of a key that we have too, and all of those are right. Who has shown more of our keys must go
on to show them for a while, or whoever has one cluster's key could speak for a node of two.

*Whether it is of now.* Nobody's clock is compared. A boot is 8 bytes drawn at start. Whoever sends says the
newest that it has seen of the receiver, and that must have been sent by us a second ago at most; and its own
sequence must be above all that it has sent us before. A message that is not fresh changes nothing. It is
answered by a hello, which repeats what it said of itself: so one exchange after a start, or a silence, both
know.

*What does not fit* into one datagram goes in parts of one sequence, each authenticated by itself. A message
with a part missing is lost, as any may be; the next one comes a round later.

Times are monotonic and in seconds, rates bits per second of the wire. Nothing here sends or reads a clock.
"""

from __future__ import annotations

import hmac
import struct
from collections import deque

from edge.netlink import sockets

from .division import Claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

HELLO, REPORT, GRANT, BOTH = 0, 1, 2, 3
MOST_BYTES = 1400
# Parts of a message: room for 900 claims, or 2,000 ceilings. A node has 250 pods.
MOST_PARTS = 16
# Keys a node may have, since each is a MAC in every datagram.
MOST_KEYS = 8
# What was sent longer ago is no proof that a message is of now (seconds).
FRESH = 1.0
# Who has shown a key shows it again within this time, or it may do without (seconds).
SHOWN = 60.0
# Of each peer, this long between two hellos (seconds).
BETWEEN_HELLOS = 0.1
MOST_PEERS = 1000
# Why something was not believed.
REASONS = ("malformed", "key", "downgraded", "boot", "stale", "replayed")

_MAGIC, _VERSION = b"CF", 1
_HEAD = struct.Struct("!2sBB8sQ8sQBBB")
_KEY, _MAC = 4, 16
_CLAIM = struct.Struct("!H?QQI")  # class, limited, guarantee, rate (bits per second), waiting (bytes)
_CEILING = struct.Struct("!HQ")  # class, bits per second
_LASTS = struct.Struct("!H")  # milliseconds
_LENGTH = struct.Struct("!H")  # of a grant before a report (bytes)
_MOST_RATE, _MOST_WAITING = 2**64 - 1, 2**32 - 1
_UNKNOWN = bytes(8), 0  # what is said of a peer that was not heard yet
_MARK = 0.05  # between two sequences whose time of sending is known (seconds)
_MOST_RETIRED = 8


class Message:
    """What was believed: `kind`, and by it a report's `claims`, or a grant's `ceilings` (bits per second).

    `lasts` is how long these are good for (seconds).
    """

    __slots__ = ("ceilings", "claims", "kind", "lasts")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.claims: dict[int, Claim] = {}
        self.ceilings: dict[int, float] = {}
        self.lasts = 0.0


def report(claims: Mapping[int, Claim]) -> bytes:
    """A report's body: the sender's claims, by the minor numbers of its classes."""
    return b"".join(
        _CLAIM.pack(
            minor,
            claim.limited,
            int(min(claim.guarantee, _MOST_RATE)),
            int(min(claim.rate, _MOST_RATE)),
            int(min(claim.waiting, _MOST_WAITING)),
        )
        for minor, claim in claims.items()
    )


def grant(ceilings: Mapping[int, float], lasts: float) -> bytes:
    """A grant's body: the receiver of the message may send so much for `lasts` seconds."""
    rates = (_CEILING.pack(minor, int(min(rate, _MOST_RATE))) for minor, rate in ceilings.items())
    return _LASTS.pack(min(round(lasts * 1000), 2**16 - 1)) + b"".join(rates)


def both(reported: bytes, granted: bytes) -> bytes:
    """The body of what is a report and a grant: a datagram costs more than what it says."""
    return _LENGTH.pack(len(granted)) + granted + reported


class Channel:
    """One agent's end of all its talks.

    `address` is the node's, as peers see it; `keys` are its clusters', in any order; `boot` is 8 random bytes
    of this start. `counted` says how often something was not believed, by reason.
    """

    def __init__(self, address: str, keys: Iterable[bytes], boot: bytes) -> None:
        """Raises ValueError if the address is none, and if keys or boot cannot be used."""
        self._own = _packed(address)
        # Of each key what all its MACs begin with is done: so they take half the time.
        self._keys = {_number(key): hmac.new(key, digestmod="sha256") for key in sorted(set(keys))}
        if not 1 <= len(self._keys) <= MOST_KEYS or len(self._keys) != len(set(keys)):
            raise ValueError(f"there must be from 1 to {MOST_KEYS} keys, whose numbers differ")
        if len(boot) != 8 or boot == _UNKNOWN[0]:
            raise ValueError("a boot has 8 bytes, not all 0")
        self._boot = boot
        # It starts at 1 and counts for all peers: who is forgotten and comes back still sees it grow.
        self._sequence = 0
        self._sent: deque[tuple[float, int]] = deque()  # when the first of some sequences was sent
        self._peers: dict[bytes, _Peer] = {}  # the last that was heard is last
        self._pending: dict[bytes, tuple[str, tuple[bytes, int]]] = {}  # hellos, and what they repeat
        self.counted = dict.fromkeys(REASONS, 0)

    def seal(self, peer: str, kind: int, body: bytes, now: float) -> list[bytes]:
        """Return the datagrams that tell a peer something.

        Raises ValueError if it is no address, or the body longer than MOST_PARTS datagrams.
        """
        known = self._peers.get(_packed(peer))
        return self._sealed(peer, kind, body, known.seen if known is not None else _UNKNOWN, now)

    def open(self, peer: str, datagram: bytes, now: float) -> Message | None:
        """Return what a peer said, if it is to be believed and whole. Whatever comes, it raises nothing.

        A hello tells that the peer could not tell whether our last message was of now: say it again.
        """
        try:
            return self._opened(peer, datagram, now)
        except _RefusedError as refused:
            self.counted[refused.reason] += 1
            return None

    def answers(self, now: float) -> list[tuple[str, bytes]]:
        """Return the hellos that are due: to whom, and the datagram."""
        due = []
        for address, (peer, said) in list(self._pending.items()):
            known = self._peers.get(address)
            if known is not None and now - known.greeted_at < BETWEEN_HELLOS:
                continue
            del self._pending[address]
            if known is not None:
                known.greeted_at = now
                due += [(peer, datagram) for datagram in self._sealed(peer, HELLO, b"", said, now)]
        return due

    def _sealed(self, peer: str, kind: int, body: bytes, seen: tuple[bytes, int], now: float) -> list[bytes]:
        room = MOST_BYTES - _HEAD.size - len(self._keys) * (_KEY + _MAC)
        parts = max(-(-len(body) // room), 1)
        if parts > MOST_PARTS:
            raise ValueError(f"a message of {len(body)} bytes has no room in {MOST_PARTS} datagrams")
        self._sequence += 1
        if not self._sent or now - self._sent[-1][0] >= _MARK:
            self._sent.append((now, self._sequence))
        ends = self._own + _packed(peer)
        datagrams = []
        for part in range(parts):
            head = _HEAD.pack(
                _MAGIC, _VERSION, kind, self._boot, self._sequence, *seen, part, parts, len(self._keys)
            )
            piece = body[part * room : (part + 1) * room]
            numbers = b"".join(self._keys)
            macs = (number + _mac(key, ends, head, numbers, piece) for number, key in self._keys.items())
            datagrams.append(head + b"".join(macs) + piece)
        return datagrams

    def _opened(self, peer: str, datagram: bytes, now: float) -> Message | None:
        if not _HEAD.size <= len(datagram) <= MOST_BYTES:
            raise _RefusedError("malformed")
        magic, version, kind, *rest = _HEAD.unpack_from(datagram)
        boot, sequence, our_boot, our_sequence, part, parts, keys = rest
        begin = _HEAD.size + keys * (_KEY + _MAC)
        fits = part < parts <= MOST_PARTS and 0 < keys <= MOST_KEYS and begin <= len(datagram)
        if magic != _MAGIC or version != _VERSION or kind > BOTH or not fits:
            raise _RefusedError("malformed")
        address = self._address(peer)
        shown = self._shown(address, datagram, keys)
        known = self._known(address)
        known.expect(shown, now)
        if our_boot != self._boot or not self._is_of_now(our_sequence, now):
            self._pending[address] = peer, (boot, sequence)
            raise _RefusedError("stale" if our_boot == self._boot else "boot")
        known.show(shown, now)
        body = known.take(boot, sequence, part, parts, datagram[begin:], now)
        return _decoded(kind, body) if body is not None else None

    def _address(self, peer: str) -> bytes:
        try:
            return _packed(peer)
        except ValueError:
            raise _RefusedError("malformed") from None

    def _shown(self, address: bytes, datagram: bytes, keys: int) -> list[bytes]:
        """The keys of ours by which it is authenticated."""
        step = _KEY + _MAC
        end = _HEAD.size + keys * step
        head, body = datagram[: _HEAD.size], datagram[end:]
        macs = {
            datagram[at : at + _KEY]: datagram[at + _KEY : at + step] for at in range(_HEAD.size, end, step)
        }
        numbers = b"".join(macs)
        ours = [number for number in macs if number in self._keys]
        ends = address + self._own
        if not ours or not all(
            hmac.compare_digest(macs[number], _mac(self._keys[number], ends, head, numbers, body))
            for number in ours
        ):
            raise _RefusedError("key")
        return ours

    def _known(self, address: bytes) -> _Peer:
        """A peer that is authenticated; who was not heard for longest is forgotten."""
        known = self._peers.pop(address, None) or _Peer()
        self._peers[address] = known
        if len(self._peers) > MOST_PEERS:
            forgotten = next(iter(self._peers))
            del self._peers[forgotten]
            self._pending.pop(forgotten, None)
        return known

    def _is_of_now(self, sequence: int, now: float) -> bool:
        """Whether we sent this within the time that counts as now."""
        while self._sent and now - self._sent[0][0] > FRESH:
            self._sent.popleft()
        return bool(self._sent) and self._sent[0][1] <= sequence <= self._sequence


class _RefusedError(Exception):
    """A datagram is not believed, and changes nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Peer:
    """What is known of the other end of a talk."""

    __slots__ = ("_boot", "_parts", "_parts_of", "_retired", "_sequence", "_shown", "greeted_at")

    def __init__(self) -> None:
        self.greeted_at = float("-inf")
        self._shown: dict[bytes, float] = {}  # by the number of a key, when it was shown last
        self._forget()

    def _forget(self) -> None:
        self._boot, self._sequence = _UNKNOWN
        self._retired: deque[tuple[bytes, float]] = deque(maxlen=_MOST_RETIRED)
        self._parts: dict[int, bytes] = {}
        self._parts_of = 0

    @property
    def seen(self) -> tuple[bytes, int]:
        """Its boot, and the newest sequence that was believed."""
        return self._boot, self._sequence

    def expect(self, keys: Collection[bytes], now: float) -> None:
        """Raises _RefusedError if it has shown one a while ago that is not among these."""
        if any(number not in keys and now - at < SHOWN for number, at in self._shown.items()):
            raise _RefusedError("downgraded")

    def show(self, keys: Collection[bytes], now: float) -> None:
        """Remember these. If one is new, what was believed before may be of somebody who lacks it."""
        if any(now - self._shown.get(number, float("-inf")) >= SHOWN for number in keys):
            self._forget()
        self._shown.update(dict.fromkeys(keys, now))

    def take(
        self, boot: bytes, sequence: int, part: int, parts: int, piece: bytes, now: float
    ) -> bytes | None:
        """Take in what is authentic and of now. Return the body once it is whole.

        Raises _RefusedError if it was whole before, or if something newer came.
        """
        if boot != self._boot:
            self._restarted(boot, now)
        if sequence <= self._sequence or sequence < self._parts_of:
            raise _RefusedError("replayed")
        if sequence > self._parts_of:
            self._parts, self._parts_of = {}, sequence
        self._parts[part] = piece
        if len(self._parts) < parts:
            return None
        body = b"".join(self._parts[at] for at in sorted(self._parts))
        self._parts, self._sequence = {}, sequence
        return body

    def _restarted(self, boot: bytes, now: float) -> None:
        """It has a new boot. What it sent in an older one could still be taken as of now, for a second."""
        if any(old == boot and now - at <= 2 * FRESH for old, at in self._retired):
            raise _RefusedError("boot")
        self._retired.append((self._boot, now))
        self._boot, self._sequence = boot, 0
        self._parts, self._parts_of = {}, 0


def _decoded(kind: int, body: bytes) -> Message:
    message = Message(kind)
    reported, granted = (body, b"") if kind == REPORT else (b"", body)
    try:
        if kind == BOTH:
            (length,) = _LENGTH.unpack_from(body)
            end = _LENGTH.size + length
            granted, reported = body[_LENGTH.size : end], body[end:]
        if kind == HELLO and body:
            raise _RefusedError("malformed")
        if kind in (GRANT, BOTH):
            (lasts,) = _LASTS.unpack_from(granted)
            message.lasts = lasts / 1000
            message.ceilings = dict(_CEILING.iter_unpack(granted[_LASTS.size :]))
        message.claims = {
            minor: Claim(guarantee, rate, waiting, limited)
            for minor, limited, guarantee, rate, waiting in _CLAIM.iter_unpack(reported)
        }
    except struct.error:
        raise _RefusedError("malformed") from None
    return message


def _packed(address: str) -> bytes:
    """An address as the kernel has it, so that it does not matter how it was written. Raises ValueError."""
    family = sockets.AF_INET6 if ":" in address else sockets.AF_INET
    try:
        return sockets.inet_pton(family, address)
    except (OSError, ValueError):
        raise ValueError(f"{address!r} is no address") from None


def _number(key: bytes) -> bytes:
    """What tells a key from others, and nothing of it."""
    return hmac.digest(key, b"concorde fabric: number of a key", "sha256")[:_KEY]


def _mac(key: hmac.HMAC, ends: bytes, head: bytes, numbers: bytes, body: bytes) -> bytes:
    its = key.copy()
    its.update(bytes((len(ends),)) + ends + head + numbers + body)
    return its.digest()[:_MAC]
