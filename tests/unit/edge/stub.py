"""An API of nodes, configs and services in memory, asked over HTTP on loopback; it fails as it is told.

What it says of an object is what a real one says: versions, uids, finalizers, and that a node's blocks never
change. A server before Kubernetes 1.21 keeps ``families`` = 1 of them.
"""

from __future__ import annotations

import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

from edge.addresses.cluster import CONFIGS, NODES
from edge.http import Json
from edge.services.catalogue import SERVICES

PATH = re.compile(r"(/api(?:s/[^/]+)?/[^/]+)(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+))?(/status)?")
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LOST = "lost"  # what was asked is done, and the answer does not come
Fault = Callable[[str, str], object]  # method and path: a status to refuse with, LOST, or nothing


class Running(ABC):
    """A program with a lease that asks an API of this kind, in a thread."""

    def __init__(self, url: str) -> None:
        self.url, self.stream = url, StringIO()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def run(self, arguments: list[str], stop: threading.Event) -> None:
        """Lead whenever the lease is held, until it is to stop."""

    def start(self, *more: str) -> None:
        """Begin a term."""
        arguments = [f"--api={self.url}", "--lease-seconds=20", *more]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.run, args=(arguments, self._stop))
        self._thread.start()

    def end(self) -> None:
        """End it as a signal does."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


class StubApi(ThreadingHTTPServer):
    """The store, and the faults of its server."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.kinds = {NODES, *CONFIGS, "/api/v1/events", "/apis/coordination.k8s.io/v1/leases", WEBHOOKS}
        self.version = {"major": "1", "minor": "20"}
        self.families = 2
        self.fault: Fault = lambda *_: None
        self.asked: list[tuple[str, str]] = []
        self.changed = threading.Condition()
        self.ends = 0  # grows: all watches end; in the midst of a line, with ``half``
        self.half = False
        self.oldest = 0  # what was before this version is not known any more
        self._versions, self._uids = count(1), count(1)
        self._objects: dict[tuple[str, str, str], Json] = {}
        self._history: list[tuple[int, str, str, Json]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of those who did not wait for the end."""

    def all(self, kind: str) -> dict[str, Json]:
        """Return all objects of a kind by name."""
        with self.changed:
            return {name: one for (of, _, name), one in self._objects.items() if of == kind}

    def blocks(self) -> dict[str, list[str]]:
        """Return what each node has."""
        return {name: node.get("spec", {}).get("podCIDRs", []) for name, node in self.all(NODES).items()}

    def end_watches(self, half: bool = False, forget: bool = False) -> None:
        """Let all watches end; ``forget``: nobody can go on where a watch was."""
        with self.changed:
            self.ends, self.half = self.ends + 1, half
            if forget:
                self.oldest = next(self._versions)
            self.changed.notify_all()

    def do(self, method: str, path: str, body: Any = None) -> tuple[int, Json]:
        """Do what is asked; return status and answer."""
        if path == "/version":
            return 200, self.version
        match = PATH.fullmatch(urlsplit(path).path)
        assert match is not None, path
        group, namespace, plural, name, status = match.groups(default="")
        kind = f"{group}/{plural}"
        if kind not in self.kinds:
            return 404, {"message": "no such kind"}
        with self.changed:
            key = (kind, namespace, name or (body or {}).get("metadata", {}).get("name", ""))
            known = self._objects.get(key)
            if method == "POST":
                return self._made(key, body) if known is None else (409, {"message": "there is one"})
            if method == "GET" and not name:
                return self._listed(kind, parse_qs(urlsplit(path).query))
            if known is None:
                return 404, {"message": "no such object"}
            if method == "GET":
                return 200, known
            if method == "DELETE":
                return self._deleted(key, known)
            body = {"status": body["status"]} if status else body
            if kind == WEBHOOKS:  # its patches are strategic ones, which are merged by names
                news = {one["name"]: one for one in body["webhooks"]}
                body = {**body, "webhooks": [merged(one, news[one["name"]]) for one in known["webhooks"]]}
            changed = body if method == "PUT" else merged(known, body)
            return self._changed(key, known, changed, body, "dryRun" in path)

    def _made(self, key: tuple[str, str, str], body: Json) -> tuple[int, Json]:
        given = {
            "uid": f"u{next(self._uids)}",
            "generation": 1,
            "creationTimestamp": f"2026-01-01T00:00:{len(self._history) % 60:02}Z",
        }
        namespace = {"namespace": key[1]} if key[1] else {}
        metadata = {**given, **namespace, **body["metadata"]}
        return 201, self._keep("ADDED", key, {**body, "metadata": metadata})

    def _deleted(self, key: tuple[str, str, str], known: Json) -> tuple[int, Json]:
        metadata = known["metadata"]
        if metadata.get("finalizers"):
            deleting = {"deletionTimestamp": "2026-01-01T00:01:00Z"}
            return 200, self._keep("MODIFIED", key, {**known, "metadata": {**metadata, **deleting}})
        del self._objects[key]
        return 200, self._keep("DELETED", key, known)

    def _changed(
        self, key: tuple[str, str, str], known: Json, changed: Json, body: Json, dry: bool
    ) -> tuple[int, Json]:
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != known["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        if changed["metadata"].get("uid") != known["metadata"]["uid"]:
            return 409, {"message": "precondition failed: UID"}
        if key[0] == NODES:
            had, has = (one.get("spec", {}).get("podCIDRs", []) for one in (known, changed))
            has = has[: self.families]
            if had and had != has:
                return 422, {"message": 'may not change podCIDR except from "" to valid'}
            if has:
                changed = {**changed, "spec": {**changed["spec"], "podCIDRs": has}}
        if dry or {**changed, "metadata": {**changed["metadata"], "resourceVersion": ""}} == {
            **known,
            "metadata": {**known["metadata"], "resourceVersion": ""},
        }:
            return 200, changed
        if changed["metadata"].get("deletionTimestamp") and not changed["metadata"].get("finalizers"):
            del self._objects[key]
            return 200, self._keep("DELETED", key, changed)
        return 200, self._keep("MODIFIED", key, changed)

    def _keep(self, what: str, key: tuple[str, str, str], document: Json) -> Json:
        version = next(self._versions)
        document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(version)}}
        if what != "DELETED":
            self._objects[key] = document
        self._history.append((version, key[0], what, document))
        self.changed.notify_all()
        return document

    def _listed(self, kind: str, asked: dict[str, list[str]]) -> tuple[int, Json]:
        items = [one for key, one in sorted(self._objects.items()) if key[0] == kind]
        first, limit = int(asked.get("continue", ["0"])[0]), int(asked.get("limit", ["500"])[0])
        metadata = {"resourceVersion": str(next(self._versions))}
        if first + limit < len(items):
            metadata["continue"] = str(first + limit)
        return 200, {"metadata": metadata, "items": items[first : first + limit]}

    def watched(self, kind: str, version: int) -> Iterator[Json | None]:
        """Yield what changes after a version, until watches end; None: the rest of a line does not come."""
        seen, begun = version, self.ends
        if version < self.oldest:
            yield {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}
            return
        while True:
            with self.changed:
                news = [one for one in self._history if one[0] > seen and one[1] == kind]
                if not news and self.ends == begun:
                    self.changed.wait()
                    continue
                half = self.half
            for at, _, what, document in news:
                seen = at
                yield {"type": what, "object": document}
            if self.ends != begun:
                if half:
                    yield None
                return


class KubernetesStub(StubApi):
    """An API that has slices of one version, and says which Kubernetes it is."""

    def __init__(self, minor: str, slices: str) -> None:
        super().__init__()
        self.minor, self.slices = minor, slices
        self.kinds |= {SERVICES, f"/apis/discovery.k8s.io/{slices}/endpointslices"}

    def do(self, method: str, path: str, body: Any = None) -> tuple[int, Json]:
        if path == "/version":
            return 200, {"major": "1", "minor": self.minor}
        if path == "/apis/discovery.k8s.io":
            return 200, {"versions": [{"groupVersion": f"discovery.k8s.io/{self.slices}"}]}
        return super().do(method, path, body)


def merged(known: Any, patch: Any) -> Any:
    """Return what a merge patch makes of a value."""
    if not isinstance(known, dict) or not isinstance(patch, dict):
        return patch
    both = {**known, **{key: merged(known.get(key, {}), value) for key, value in patch.items()}}
    return {key: value for key, value in both.items() if value is not None}


class Handler(BaseHTTPRequestHandler):
    """Answers for the store."""

    protocol_version = "HTTP/1.1"
    server: StubApi

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path))
        fault = self.server.fault(self.command, self.path)
        if isinstance(fault, int):
            self._send(fault, {"kind": "Status", "message": "as it was told"})
        elif "watch=1" in self.path:
            self._watch()
        else:
            status, answer = self.server.do(self.command, self.path, body)
            if fault == LOST:
                self.close_connection = True
                return
            self._send(status, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 (as its class calls them)

    def _send(self, status: int, answer: Json) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _watch(self) -> None:
        parts = urlsplit(self.path)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for event in self.server.watched(parts.path, int(parse_qs(parts.query)["resourceVersion"][0])):
            line = b'{"type": "MODIF' if event is None else json.dumps(event).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(stub: StubApi | None = None) -> Iterator[StubApi]:
    """Lend one that answers."""
    api = stub or StubApi()
    thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield api
    finally:
        api.end_watches()
        api.shutdown()
        api.server_close()
        thread.join()
