"""What a node's kernel holds of one cluster's services, made to be as it should be."""

from __future__ import annotations

import errno
import json
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from struct import pack
from typing import Optional

from edge import netlink as nl
from edge.services import conntrack, rules
from edge.services.catalogue import Backends
from edge.services.rules import NOTHING, UDP, Frame, Port, State, Target

_GET_TABLE = 10 << 8 | 1  # NFNL_SUBSYS_NFTABLES, NFT_MSG_GETTABLE
_TABLE_NAME, _TABLE_HANDLE = 1, 4  # NFTA_TABLE_NAME, _HANDLE
BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
NFT_SECONDS = 120.0
# A packet may be under way by rules that are no more while flows are looked at: it begins such a flow anew.
AGAIN_SECONDS = 0.2
MOST_APART = 8  # addresses for which the kernel is asked one by one
_DAY = 86_400.0  # rules.DEPARTED, seconds


Alive = Mapping[Port, Collection[Target]]


class RulesError(Exception):
    """nft cannot do what it was told; the message says what it said."""


def is_bridged() -> bool:
    """Whether what one bridge forwards passes nftables: bridge-nf-call-iptables of this namespace."""
    try:
        return BRIDGED.read_text(encoding="ascii").strip() != "0"
    except OSError:
        return False  # there is no br_netfilter


class Node:
    """The table of one cluster. Its state is read when it is not known; whoever ends leaves it as it is.

    ``again`` is when flows are to be looked at once more (monotonic seconds), or 0.
    """

    def __init__(self, frame: Frame, log: Callable[[str], None]) -> None:
        self.frame = frame
        self.again = 0.0
        self._log = log
        self._layout = ""
        self._state: Optional[State] = None  # noqa: UP045 (nodes may have Python 3.9)
        self._departed: dict[Port, float] = {}  # servers that went, and when
        self._alive: Optional[Alive] = None  # of UDP  # noqa: UP045
        self._unsure: set[IPv4Network] = set()  # to where flows may go as they should not
        self._handle = b""
        self._chosen: dict[Port, frozenset[Target]] = {}  # from which the state's endpoints were arranged

    def apply(self, ports: Mapping[Port, Backends], servers: frozenset[Port]) -> bool:
        """Let new connections to ports go to what is chosen for each; tell whether anything was changed.

        Raises RulesError, and OSError if nft cannot be started or flows cannot be forgotten.
        """
        if self._state is None:
            self._layout, self._state = self._read()
        before = self._state
        after = State(
            {port: rules.arranged(before.endpoints.get(port, ()), one.chosen) for port, one in ports.items()},
            servers,
        )
        self._depart(before.servers - servers)
        if self._layout == self.frame.layout:
            text = rules.changes(self.frame, before, after)
        else:
            text = rules.whole(self.frame, after, self._departed)
            self._handle = b""
        if text:
            self._state, self._chosen = None, {}  # until it is known to be done
            nft(["-f", "-"], text)
            self._state, self._layout = after, self.frame.layout
            self._handle = self._handle or self._handle_now()
        self._chosen = {port: one.chosen for port, one in ports.items()}
        alive: Alive = {port: one.alive for port, one in ports.items() if port.protocol == UDP}
        if self._alive is None:
            self._unsure = {self.frame.services}
        else:
            self._unsure |= {IPv4Network(port.address) for port in _unsure(self._alive, alive)}
        self._alive = alive
        if self._unsure:
            self.again = time.monotonic() + AGAIN_SECONDS
            self._forget()
        return bool(text)

    def _arranged(self, port: Port, state: State, chosen: frozenset[Target]) -> tuple[Target, ...]:
        before = state.endpoints.get(port, ())
        return before if self._chosen.get(port) is chosen else rules.arranged(before, chosen)

    def look_again(self) -> None:
        """Let UDP flows go on with another endpoint that began while the rules changed. Raises OSError."""
        self.again = 0.0
        self._forget()
        self._unsure = set()

    def look(self) -> bool:
        """Look whether the table is there that was written, and forget what it held if not; tell if so.

        Raises OSError.
        """
        if self._state is None or self._handle_now() == self._handle:
            return True
        self._log(f"table ip {self.frame.table} was removed by somebody else: it is written again")
        self._state, self._handle, self._chosen = None, b"", {}
        return False

    def remove(self) -> None:
        """Take the table away; connections that are there go on. Raises RulesError and OSError."""
        table = f"ip {self.frame.table}"
        self._state, self._handle, self._chosen = None, b"", {}
        self._alive, self.again = None, 0.0
        nft(["-f", "-"], f"add table {table}\ndelete table {table}\n")

    def _forget(self) -> None:
        """Let UDP flows go on with another endpoint whose endpoint is none any more. Raises OSError."""
        servers = {*self._departed, *(self._state.servers if self._state else ())}
        alive = self._alive or {}
        # The kernel looks at all flows each time, and faster than this does.
        services, asked = self.frame.services, self._unsure
        if services in asked or len(asked) > MOST_APART:
            asked = {services}
        flows = (flow for one in asked for flow in conntrack.flows(one))
        gone = [flow for flow in flows if conntrack.stale(flow, alive, servers)]
        for flow in gone:
            conntrack.forget(flow)
        if gone:
            self._log(f"{len(gone)} UDP flows go on with another endpoint")

    def _read(self) -> tuple[str, State]:
        """Return the layout and the state of the table that is there; nothing if none of ours is."""
        try:
            said = nft(["-j", "-nn", "list", "table", "ip", self.frame.table])
        except RulesError:
            return "", NOTHING  # there is none
        try:
            layout, state, departed = rules.read(json.loads(said))
        except (KeyError, TypeError, ValueError) as error:
            self._log(f"table ip {self.frame.table} is not as it was written, and is replaced: {error!r}")
            return "", NOTHING
        self._depart(departed)
        self._handle = self._handle_now()
        return layout, state

    def _depart(self, servers: Collection[Port]) -> None:
        now = time.monotonic()
        if servers:
            self._departed = {port: when for port, when in self._departed.items() if now - when < _DAY}
        self._departed.update(dict.fromkeys(servers, now))

    def _handle_now(self) -> bytes:
        """Return the number by which the kernel knows the table; nothing if there is none. Raises OSError."""
        body = pack("=BBH", nl.AF_INET, 0, 0) + nl.named(_TABLE_NAME, self.frame.table)
        with nl.Ignoring(errno.ENOENT):
            for answer in nl.ask(_GET_TABLE, 0, body, protocol=nl.NETFILTER):
                return nl.attributes(answer, 4)[_TABLE_HANDLE]
        return b""


def _unsure(before: Alive, after: Alive) -> Iterator[Port]:
    """Yield ports to which flows may go to an endpoint that went, or past a service that came."""
    for port, was in before.items():
        if port not in after or (was is not after[port] and set(was) - set(after[port])):
            yield port
    for port, now in after.items():
        if now and not before.get(port):
            yield port


def nft(arguments: Sequence[str], text: str = "") -> str:
    """Run nft. Raises RulesError if it fails, OSError if it cannot be started."""
    try:
        done = subprocess.run(
            ["nft", *arguments], input=text, capture_output=True, text=True, timeout=NFT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise RulesError(f"nft has not answered for {NFT_SECONDS:g} s") from None
    if done.returncode != 0:
        raise RulesError(f"nft: {done.stderr.strip()[:400]}")
    return done.stdout
