"""What a node's kernel holds of one cluster's services, made to be as it should be."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from struct import pack, unpack
from typing import Optional

from edge import netlink as nl
from edge.services import conntrack, rules
from edge.services.catalogue import Backends, Touched
from edge.services.rules import NOTHING, TCP, UDP, Frame, Port, State, Target

_GET_TABLE = 10 << 8 | 1  # NFNL_SUBSYS_NFTABLES, NFT_MSG_GETTABLE
_TABLE_NAME, _TABLE_HANDLE = 1, 4  # NFTA_TABLE_NAME, _HANDLE
_GET_GENERATION, _GENERATION = 10 << 8 | 16, 1  # NFT_MSG_GETGEN, NFTA_GEN_ID
BRIDGED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
MOST_TRACKED = Path("/proc/sys/net/netfilter/nf_conntrack_max")
NFT_SECONDS = 120.0
# A packet may be under way by rules that are no more while flows are looked at: it begins such a flow anew.
AGAIN_SECONDS = 0.2
# Of this part of the time at most the table is read again because somebody has written rules.
VERIFYING = 0.02
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


def room(log: Callable[[str], None]) -> int:
    """Return how many connections the kernel tracks in all; 0 if any number, or it cannot count whose."""
    try:
        nft(["-c", "-f", "-"], rules.counts(rules.LEAST_ROOM))
        most = int(MOST_TRACKED.read_text(encoding="ascii"))
        return most and max(most, rules.LEAST_ROOM)
    except (RulesError, OSError, ValueError) as error:
        log(f"no limit to the connections of one pod: {error}")
        return 0


class Node:
    """The table of one cluster. Its state is read when it is not known; whoever ends leaves it as it is.

    ``again`` is when flows are to be looked at once more (monotonic seconds), or 0.
    """

    def __init__(self, frame: Frame, log: Callable[[str], None]) -> None:
        self.frame = frame
        self.again = 0.0
        self._log = log
        self._layout, self._known = "", False  # whether what follows is what the kernel has
        self._endpoints: dict[Port, tuple[Target, ...]] = {}
        self._servers: set[Port] = set()
        self._picks: set[int] = set()
        self._departed: dict[Port, float] = {}  # servers that went, and when
        # Nodes may have Python 3.9.
        self._alive: Optional[dict[Port, Collection[Target]]] = None  # noqa: UP045
        self._unsure: set[IPv4Network] = set()  # to where flows may go as they should not
        self._handle = b""
        self._generation = b""  # of all rules of this network namespace, when the table was as is known
        self._verify_at = 0.0  # not before (monotonic seconds)

    def apply(
        self,
        ports: Mapping[Port, Backends],
        servers: Collection[Port],
        touched: Optional[Touched] = None,  # noqa: UP045
    ) -> bool:
        """Let new connections to ports go to what is chosen for each; tell whether anything was changed.

        ``touched`` is all that may have changed since the last time that was done. Raises RulesError, and
        OSError if nft cannot be started or flows cannot be forgotten.
        """
        if not self._known:
            self._read()
        if touched is None or not self._known or self._layout != self.frame.layout:
            touched = Touched({*self._endpoints, *ports}, {*self._servers, *servers})
        before = State(
            {port: self._endpoints[port] for port in touched.ports if port in self._endpoints},
            touched.servers & self._servers,
            self._picks,
        )
        after = State(
            {
                port: rules.arranged(self._endpoints.get(port, ()), ports[port].chosen)
                for port in touched.ports
                if port in ports
            },
            {server for server in touched.servers if server in servers},
        )
        self._depart(before.servers - after.servers)
        changed = self._write(before, after)
        self._move(touched.ports, ports)
        return changed

    def _write(self, before: State, after: State) -> bool:
        """Make a part of the table, or all of it, what it is to be; tell whether it was not."""
        if self._layout == self.frame.layout:
            text = rules.changes(self.frame, before, after)
        else:
            text = rules.whole(self.frame, after, self._departed)
            self._handle, self._picks = b"", set()
        self._known = False  # until it is known to be done
        if text:
            earlier = _generation()
            alone = earlier == self._generation or self._layout != self.frame.layout
            nft(["-f", "-"], text)
            # If somebody else has written before or meanwhile, it is looked what that was.
            alone &= _generation() == _following(earlier)
            self._generation = _following(earlier) if alone else b""
            self._layout = self.frame.layout
            self._handle = self._handle or self._handle_now()
        for port in before.endpoints:
            del self._endpoints[port]
        self._endpoints.update(after.endpoints)
        self._servers -= before.servers
        self._servers |= after.servers
        self._picks |= after.counts
        self._known = True
        return bool(text)

    def _move(self, touched: Collection[Port], ports: Mapping[Port, Backends]) -> None:
        """Let flows go on with another endpoint where endpoints of ports went."""
        alive = {port: ports[port].alive for port in touched if port in ports}
        if self._alive is None:
            self._alive, self._unsure = {}, {self.frame.services}
        before = {port: self._alive.pop(port) for port in touched if port in self._alive}
        self._alive.update(alive)
        self._unsure |= {IPv4Network(port.address) for port in _unsure(before, alive)}
        if self._unsure:
            self.again = time.monotonic() + AGAIN_SECONDS
            self._forget(UDP)

    def look_again(self) -> None:
        """Let flows go on with another endpoint that began while the rules changed. Raises OSError.

        Also those by TCP that have no answer yet: one that was under way then has come by now.
        """
        self.again = 0.0
        self._forget(UDP, TCP)
        self._unsure = set()

    def look(self) -> bool:
        """Look whether the table is as it was written, and forget what it held if not; tell if so.

        Nothing is read unless somebody has written rules; and that may be nothing of this table. Raises
        RulesError and OSError.
        """
        generation = _generation()
        if not self._known or generation == self._generation:
            return True
        begun = time.monotonic()
        if self._handle_now() != self._handle:
            what, self._handle = "removed", b""
        elif begun < self._verify_at:
            return True
        else:
            layout, state, _ = self._listed()
            self._verify_at = time.monotonic() + (time.monotonic() - begun) / VERIFYING
            if (layout, state.endpoints, state.servers) == (self._layout, self._endpoints, self._servers):
                self._generation = generation
                return True
            what = "changed"
        self._log(f"table ip {self.frame.table} was {what} by somebody else: it is made what it was")
        self._known = False
        return False

    def remove(self) -> None:
        """Take the table away; connections that are there go on. Raises RulesError and OSError."""
        table = f"ip {self.frame.table}"
        self._known, self._handle = False, b""
        self._alive, self.again = None, 0.0
        nft(["-f", "-"], f"add table {table}\ndelete table {table}\n")

    def _forget(self, *protocols: str) -> None:
        """Let flows go on with another endpoint whose endpoint is none any more. Raises OSError."""
        servers = {*self._departed, *self._servers}
        alive = self._alive or {}
        # The kernel looks at all flows each time, and faster than this does.
        services, asked = self.frame.services, self._unsure
        if services in asked or len(asked) > MOST_APART:
            asked = {services}
        flows = (flow for one in asked for protocol in protocols for flow in conntrack.flows(one, protocol))
        gone = [flow for flow in flows if conntrack.stale(flow, alive, servers)]
        for flow in gone:
            conntrack.forget(flow)
        if gone:
            self._log(f"{len(gone)} flows go on with another endpoint")

    def _read(self) -> None:
        """Take over the table that is there; nothing if none of ours is."""
        self._generation = _generation()
        self._layout, state, departed = self._listed()
        self._depart(departed)
        self._handle = self._handle_now()
        self._endpoints, self._servers = dict(state.endpoints), set(state.servers)
        self._picks = set(state.picks)

    def _listed(self) -> tuple[str, State, Collection[Port]]:
        """Return the layout and the state of the table there, and servers that went, if it is ours."""
        try:
            return rules.read(json.loads(nft(["-j", "-nn", "list", "table", "ip", self.frame.table])))
        except RulesError:
            pass  # there is none
        except (KeyError, TypeError, ValueError) as error:
            self._log(f"table ip {self.frame.table} is not as it was written, and is replaced: {error!r}")
        return "", NOTHING, ()

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


def _generation() -> bytes:
    """Return the number of the rules of this network namespace: each transaction's is the next."""
    for answer in nl.ask(_GET_GENERATION, 0, pack("=BBH", 0, 0, 0), protocol=nl.NETFILTER):
        return nl.attributes(answer, 4)[_GENERATION]
    return b""


def _following(generation: bytes) -> bytes:
    return pack("!I", (unpack("!I", generation)[0] + 1) % 2**32)


def _unsure(before: Alive, after: Alive) -> Iterator[Port]:
    """Yield ports to which flows may go to an endpoint that went, or past a service that came."""
    for port, was in before.items():
        if port not in after or (was is not after[port] and set(was) - set(after[port])):
            yield port
    for port, now in after.items():
        if now and not before.get(port):
            yield port


def nft(arguments: Sequence[str], text: str = "") -> str:
    """Run nft. Raises RulesError if it fails, OSError if it cannot be started.

    All of the text is there when it starts: of a pipe it would read, and do, what a proxy that is killed has
    written until then.
    """
    with os.fdopen(os.memfd_create("nft"), "w+", encoding="utf-8") as file:
        file.write(text)
        file.seek(0)
        try:
            done = subprocess.run(
                ["nft", *arguments],
                stdin=file,
                capture_output=True,
                text=True,
                timeout=NFT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RulesError(f"nft has not answered for {NFT_SECONDS:g} s") from None
    if done.returncode != 0:
        raise RulesError(f"nft: {done.stderr.strip()[:400]}")
    return done.stdout
