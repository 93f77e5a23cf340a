"""Questions to a server that speaks HTTP and JSON, and its answers that never end, line by line."""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple, Optional
from urllib.parse import urlsplit

Json = dict[str, Any]
LINE_BYTES = 1 << 24  # longer ones are no answer
ANSWER_SECONDS = 3.0
STRATEGIC, MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
_RESPONSE = "the response"


class UnfitError(ValueError):
    """What somebody says is not what it should be; the message says in which way."""


class AwayError(Exception):
    """A server does not answer, or not as it should; the message says how."""


class RefusedError(AwayError):
    """A server's answer is a status that is no success, such as 404."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def may_pass(self) -> bool:
        """Whether it says nothing of what was asked: too many requests, or a fault of the server's own."""
        return self.status == 429 or self.status >= 500


class Question(NamedTuple):
    """What is asked: method, path, body, the body's type, and how long an answer may take (seconds)."""

    method: str
    path: str
    body: Optional[Json] = None  # noqa: UP045 (nodes may have Python 3.9)
    kind: str = "application/json"
    seconds: float = ANSWER_SECONDS


class Server:
    """A server by its URL; ``identity`` and ``authority`` are PEM files for one that speaks TLS.

    ``token`` is a file whose content says who asks; it is read each time, for Kubernetes writes it anew
    before it ends. Up to ``kept`` connections are kept for the next question. Threads may ask at once. Raises
    ValueError for a URL that is none, and OSError for files that cannot be read.
    """

    def __init__(
        self, url: str, identity: str = "", authority: str = "", token: str = "", kept: int = 0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.port:
            raise ValueError(f"{url[:60]!r} is not like http://192.168.122.100:4001")
        self.url = url
        self.closed = False
        self._host, self._port = parts.hostname, parts.port
        self._token, self._kept = token, kept
        self._lock = threading.Lock()
        self._idle: list[HTTPConnection] = []
        self._busy: set[HTTPConnection] = set()
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=authority or None)
            if identity:
                self._tls.load_cert_chain(identity)

    def ask(self, question: Question) -> Json:
        """Return the answer to a question. Raises AwayError, RefusedError if the status is no success."""
        with self._answered(question) as (_, response):
            return json_object(response.read(LINE_BYTES), _RESPONSE)

    def listen(self, question: Question, silence: float) -> Iterator[Json]:
        """Yield what a server says, until it ends or says nothing for so many seconds. Raises AwayError."""
        with self._answered(question) as (connection, response):
            connection.sock.settimeout(silence)
            while True:
                try:
                    line = response.readline(LINE_BYTES)
                except socket.timeout:
                    return
                if not line:
                    return
                yield json_object(line, _RESPONSE)

    def close(self) -> None:
        """End all connections for ever; who is listening by one, hears no more."""
        with self._lock:
            self.closed = True
            idle, self._idle, self._kept = self._idle, [], 0
            for connection in self._busy:
                with suppress(TypeError, OSError):  # it may be about to begin or to end
                    # Of a TLS socket the socket alone: who reads from it by TLS is in the midst of it.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        for connection in idle:
            connection.close()

    @contextmanager
    def _answered(self, question: Question) -> Iterator[tuple[HTTPConnection, HTTPResponse]]:
        """A connection by which something was asked, and the answer; what fails is an AwayError."""
        connection, heard = self._connection(question.seconds), False
        try:
            body = None if question.body is None else json.dumps(question.body)
            connection.request(question.method, question.path, body, self._headers(question))
            response = connection.getresponse()
            if not 200 <= response.status < 300:
                text = response.read(LINE_BYTES)[:400].decode(errors="replace").strip()
                heard = response.isclosed()
                path = question.path.partition("?")[0]
                raise RefusedError(f"{self.url}{path}: status {response.status}: {text}", response.status)
            yield connection, response
            heard = response.isclosed()
        except (OSError, HTTPException, ValueError) as error:  # of a token that cannot be sent, too
            raise AwayError(f"{self.url}: {error or type(error).__name__}") from None
        finally:
            self._done_with(connection, heard)

    def _headers(self, question: Question) -> dict[str, str]:
        headers = {"Content-Type": question.kind}
        if self._token:
            headers["Authorization"] = f"Bearer {Path(self._token).read_text(encoding='ascii').strip()}"
        return headers

    def _connection(self, seconds: float) -> HTTPConnection:
        """Return a connection that is kept and that the server has not ended, or a new one."""
        with self._lock:
            if self.closed:
                raise AwayError(f"{self.url}: nothing more is asked")
            while self._idle:
                connection = self._idle.pop()
                if not select.select([connection.sock], [], [], 0)[0]:
                    connection.sock.settimeout(seconds)
                    break
                connection.close()
            else:
                connection = self._new(seconds)
            self._busy.add(connection)
        return connection

    def _new(self, seconds: float) -> HTTPConnection:
        if self._tls:
            return HTTPSConnection(self._host, self._port, timeout=seconds, context=self._tls)
        return HTTPConnection(self._host, self._port, timeout=seconds)

    def _done_with(self, connection: HTTPConnection, heard: bool) -> None:
        """Keep a connection whose answer was heard to its end, as far as the server does; end any other."""
        with self._lock:
            self._busy.discard(connection)
            if heard and connection.sock is not None and len(self._idle) < self._kept:
                self._idle.append(connection)
                return
        connection.close()


def json_object(text: str | bytes | bytearray, what: str) -> Json:
    """Return the object that a text is. Raises UnfitError with that text's name."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnfitError(f"{what} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise UnfitError(f"{what} is not a JSON object")
    return value
