"""Leases in etcd, under the keys of the first flannel: ``/coreos.com/network/subnets/10.1.24.0-24``.

By etcd's JSON gateway (etcd 3.4, ``etcdserver/etcdserverpb/rpc.proto``): keys and values are in base64,
64-bit numbers are texts. A node's key is bound to a lease of etcd's own, which the node renews; when it does
not, etcd deletes the key, and says so to all who watch.
"""

from __future__ import annotations

import json
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Network

from edge.http import AwayError, Json, Question, Server, UnfitError
from edge.overlay import leases
from edge.overlay.leases import Lease

DIRECTORY = "/coreos.com/network"
CONFIGURATION = f"{DIRECTORY}/config"
SUBNETS = f"{DIRECTORY}/subnets/"
# After so long a silence all is asked for anew: a server that stopped says nothing either.
SILENCE_SECONDS = 10.0
# How many times in its lifetime a lease is renewed.
RENEWALS = 3


class Etcd:
    """The leases of one overlay, of a network and a VNI, in an etcd; see edge.overlay.leases.Store.

    ``lifetime`` is that of the own lease, seconds; etcd takes it for at least one or two.
    """

    def __init__(
        self,
        server: Server,
        own: Lease,
        network: IPv4Network,
        vni: int,
        lifetime: int,
        complain: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._server, self._own, self._lifetime = server, own, lifetime
        self._network, self._vni = network, vni
        self._complain = complain
        self._agreed = False
        self._key = SUBNETS + leases.key_of(own.subnet)
        self._bound = ""  # the number of the lease of etcd's that holds the own key
        self._renew_at = 0.0
        self._values: dict[str, Lease | None] = {}

    def follow(self) -> Iterator[Sequence[Lease]]:
        """Keep the own lease, and yield all that hold; see edge.overlay.leases.Store.

        The watch is there before all is listed, so nothing of the past is asked of it: what was compacted may
        be lost to one that is, a deletion even without a word (etcd before 3.4.34).
        """
        self._agree()
        self._keep()
        revision = -1
        for answer in self._server.listen(self._watch(), self._patience()):
            result = answer.get("result")
            if not isinstance(result, dict) or result.get("canceled"):
                return
            if result.get("created"):
                revision = self._list()
            elif not self._take(result, revision):
                continue
            yield self._leases()
            if self._values.get(self._key) != self._own:
                self._bound = ""
            if not self._bound or time.monotonic() >= self._renew_at:
                return

    def _keep(self) -> None:
        """See to it that the own key is there, bound to a lease of etcd's that goes on."""
        if self._bound and time.monotonic() >= self._renew_at:
            self._renew()
        if not self._bound:
            self._announce()

    def _agree(self) -> None:
        """Say what the overlay's network is, unless somebody has; it must be the same."""
        if self._agreed:
            return
        text = json.dumps({"Network": str(self._network), "Backend": {"Type": "vxlan", "VNI": self._vni}})
        key = _code(CONFIGURATION)
        answer = self._ask(
            "kv/txn",
            {
                "compare": [{"key": key, "target": "CREATE", "create_revision": "0"}],
                "success": [{"request_put": {"key": key, "value": _code(text)}}],
                "failure": [{"request_range": {"key": key}}],
            },
        )
        if not answer.get("succeeded"):
            self._compare(answer)
        self._agreed = True

    def _compare(self, answer: Json) -> None:
        try:
            said = json.loads(_decode(answer["responses"][0]["response_range"]["kvs"][0]["value"]))["Network"]
        except (LookupError, TypeError, ValueError) as error:
            raise AwayError(f"{CONFIGURATION} is not a flannel configuration: {error!r}") from None
        if said != str(self._network):
            raise AwayError(f"it is the store of another network: {str(said)[:40]}, not {self._network}")

    def _announce(self) -> None:
        """Write the own key, bound to a new lease of etcd's."""
        granted = self._ask("lease/grant", {"TTL": str(self._lifetime)})
        bound = str(granted.get("ID", ""))
        value = _code(leases.text_of(self._own))
        self._ask("kv/put", {"key": _code(self._key), "value": value, "lease": bound})
        self._bound = bound
        self._set_renewal(self._lifetime)

    def _renew(self) -> None:
        """Renew the lease that the own key is bound to; one that is over is forgotten."""
        answer = self._ask("lease/keepalive", {"ID": self._bound}).get("result")
        left = int(answer.get("TTL", 0)) if isinstance(answer, dict) else 0
        if left > 0:
            self._set_renewal(left)
        else:
            self._bound = ""

    def _set_renewal(self, lifetime: int) -> None:
        self._renew_at = time.monotonic() + lifetime / RENEWALS

    def _patience(self) -> float:
        return max(0.05, min(SILENCE_SECONDS, self._renew_at - time.monotonic()))

    def _list(self) -> int:
        """Learn all there is, and return the revision that it has."""
        order = {"sort_order": "ASCEND", "sort_target": "MOD"}
        answer = self._ask("kv/range", {**_prefix(SUBNETS), **order})
        self._values = {}
        try:
            for pair in answer.get("kvs", ()):
                key = _decode(pair["key"])
                self._values[key] = self._value(key, pair)
                if key == self._key and pair.get("lease") != self._bound:
                    self._values[key] = None  # it ends when another's lease does
            return int(answer["header"]["revision"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise AwayError(f"{self._server.url}: not an etcd response: {error!r}") from None

    def _take(self, result: Json, revision: int) -> bool:
        """Take the changes since a revision into account, the last one last; tell if there are any."""
        news = False
        try:
            for event in result.get("events", ()):
                pair = event["kv"]
                if int(pair["mod_revision"]) <= revision:
                    continue
                news, key = True, _decode(pair["key"])
                self._values.pop(key, None)
                if event.get("type") != "DELETE":
                    self._values[key] = self._value(key, pair)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise AwayError(f"{self._server.url}: not an etcd watch event: {error!r}") from None
        return news

    def _value(self, key: str, pair: Json) -> Lease | None:
        try:
            subnet = leases.subnet_of(key[len(SUBNETS) :])
            return leases.parse(subnet, _decode(pair.get("value", "")))
        except (UnfitError, ValueError) as error:
            self._complain(f"{key[:80]!r} is not a lease: {error}")
            return None

    def _leases(self) -> list[Lease]:
        return [lease for lease in self._values.values() if lease is not None]

    def _watch(self) -> Question:
        return Question("POST", "/v3/watch", {"create_request": _prefix(SUBNETS)})

    def _ask(self, path: str, body: Json) -> Json:
        return self._server.ask(Question("POST", f"/v3/{path}", body))


def remove(server: Server, subnet: IPv4Network) -> None:
    """Take a node's subnet out of the store. Raises AwayError."""
    server.ask(Question("POST", "/v3/kv/deleterange", {"key": _code(SUBNETS + leases.key_of(subnet))}))


def show(arguments: Sequence[str]) -> int:
    """Print each key, its value, and when it ends; return 2 for no URL, 1 for a store that is away.

    ``/usr/bin/python3 -IS PATH/edge store URL``. etcd has keys and values as bytes, and its JSON gateway
    shows them in base64; here they are as written.
    """
    if len(arguments) != 1:
        sys.stderr.write("usage: store URL, such as http://192.168.122.100:4001\n")
        return 2
    try:
        for line in lines(Server(arguments[0])):
            sys.stdout.write(line)
    except (ValueError, AwayError) as error:
        sys.stderr.write(f"{error}\n")
        return 1 if isinstance(error, AwayError) else 2
    return 0


def lines(server: Server) -> Iterator[str]:
    """Yield what is shown of each key: with its value, and when it ends. Raises AwayError."""
    try:
        for pair in server.ask(Question("POST", "/v3/kv/range", _prefix(f"{DIRECTORY}/"))).get("kvs", ()):
            yield f"{_decode(pair['key'])}\n    {_decode(pair.get('value', ''))}\n"
            seconds = _left(server, pair.get("lease"))
            if seconds is not None:
                yield f"    ends in {seconds} s, unless it is renewed\n"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AwayError(f"{server.url}: not an etcd response: {error!r}") from None


def _left(server: Server, bound: str | None) -> int | None:
    """Return how many seconds a lease of etcd's has left; None without one."""
    if bound is None:
        return None
    return int(server.ask(Question("POST", "/v3/lease/timetolive", {"ID": bound})).get("TTL", 0))


def _prefix(directory: str) -> Json:
    """Return the range of all keys below a directory: up to the next that would not be."""
    return {"key": _code(directory), "range_end": _code(directory[:-1] + chr(ord(directory[-1]) + 1))}


def _code(text: str) -> str:
    return b64encode(text.encode()).decode()


def _decode(text: str) -> str:
    return b64decode(text, validate=True).decode()
