"""Questions to a server that speaks HTTP and JSON, and its answers that never end, line by line."""

from __future__ import annotations

import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, Optional
from urllib.parse import urlsplit

Json = dict[str, Any]
LINE_BYTES = 1 << 24  # longer ones are no answer
MOST_HEADERS = 100
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


class Question(NamedTuple):
    """What is asked: method, path, body, the body's type, and how long an answer may take (seconds)."""

    method: str
    path: str
    body: Optional[Json] = None  # noqa: UP045 (nodes may have Python 3.9)
    kind: str = "application/json"
    seconds: float = ANSWER_SECONDS


class Connection:
    """A connection to a server, by which one question at a time is asked."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.file = sock.makefile("rb")

    def close(self) -> None:
        """End it."""
        self.file.close()
        self.sock.close()


class Response:
    """An answer as it comes: its status, and a body that is read whole or line by line (RFC 9112).

    ``heard``: it was read to its end, after which more may be asked. Raises UnfitError for what is no HTTP.
    """

    def __init__(self, file: BufferedReader) -> None:
        self._file, self.heard = file, False
        self.status = 100
        while self.status < 200:  # others say that the answer is still to come
            version, _, status = self._line().partition(b" ")
            if not version.startswith(b"HTTP/1.") or not status[:3].isdigit():
                raise UnfitError("the response is not HTTP")
            self.status = int(status[:3])
            headers = self._headers()
        self._chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
        length = b"0" if self.status == 204 else headers.get(b"content-length")
        self._length = None if length is None else _number(length, 10)
        closes = version == b"HTTP/1.0" or headers.get(b"connection", b"").lower() == b"close"
        self._ends = closes or not (self._chunked or length is not None)

    def read(self) -> bytes:
        """Return the whole body."""
        found, size = [], 0
        for piece in self._pieces():
            found.append(piece)
            size += len(piece)
            if size > LINE_BYTES:
                raise UnfitError(f"the response is longer than {LINE_BYTES} bytes")
        return b"".join(found)

    def lines(self) -> Iterator[bytes]:
        """Yield the body's lines, each as soon as it is there."""
        rest = b""
        for piece in self._pieces():
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
            if len(rest) > LINE_BYTES:
                raise UnfitError(f"a line of the response is longer than {LINE_BYTES} bytes")
        if rest:
            yield rest

    def _pieces(self) -> Iterator[bytes]:
        if self._chunked:
            while size := _number(self._line().partition(b";")[0], 16):
                yield self._exactly(size)
                self._line()
            self._headers()
        elif self._length is not None:
            yield self._exactly(self._length)
        else:
            yield from iter(lambda: self._file.read1(LINE_BYTES), b"")
        self.heard = not self._ends

    def _headers(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for _ in range(MOST_HEADERS):
            line = self._line()
            if not line:
                return found
            name, _, value = line.partition(b":")
            found[name.lower()] = value.strip()
        raise UnfitError(f"the response has more than {MOST_HEADERS} headers")

    def _line(self) -> bytes:
        line = self._file.readline(1 << 16)
        if not line.endswith(b"\n"):
            raise UnfitError("the connection ended within the response" if line else "the connection ended")
        return line.rstrip(b"\r\n")

    def _exactly(self, size: int) -> bytes:
        if size > LINE_BYTES:
            raise UnfitError(f"the response is longer than {LINE_BYTES} bytes")
        piece = self._file.read(size)
        if len(piece) < size:
            raise UnfitError("the connection ended within the response")
        return piece


def _number(text: bytes, base: int) -> int:
    try:
        number = int(text, base)
    except ValueError:
        number = -1
    if number < 0:
        raise UnfitError(f"{text[:20]!r} is not the length of a response")
    return number


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
        self._name = parts.netloc.rpartition("@")[2]
        self._token, self._kept = token, kept
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=authority or None)
            if identity:
                self._tls.load_cert_chain(identity)

    def ask(self, question: Question) -> Json:
        """Return the answer to a question. Raises AwayError, RefusedError if the status is no success."""
        with self._answered(question) as (_, response):
            return json_object(response.read(), _RESPONSE)

    def listen(self, question: Question, silence: float) -> Iterator[Json]:
        """Yield what a server says, until it ends or says nothing for so many seconds. Raises AwayError."""
        with self._answered(question) as (connection, response):
            connection.sock.settimeout(silence)
            with suppress(socket.timeout):
                for line in response.lines():
                    yield json_object(line, _RESPONSE)

    def close(self) -> None:
        """End all connections for ever; who is listening by one, hears no more."""
        with self._lock:
            self.closed = True
            idle, self._idle, self._kept = self._idle, [], 0
            for connection in self._busy:
                with suppress(OSError):  # it may be about to end
                    # Of a TLS socket the socket alone: who reads from it by TLS is in the midst of it.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        for connection in idle:
            connection.close()

    @contextmanager
    def _answered(self, question: Question) -> Iterator[tuple[Connection, Response]]:
        """A connection by which something was asked, and the answer; what fails is an AwayError."""
        connection = response = None
        try:
            connection = self._connection(question.seconds)
            connection.sock.sendall(self._written(question))
            response = Response(connection.file)
            if not 200 <= response.status < 300:
                text = response.read()[:400].decode(errors="replace").strip()
                path = question.path.partition("?")[0]
                raise RefusedError(f"{self.url}{path}: status {response.status}: {text}", response.status)
            yield connection, response
        except (OSError, UnfitError) as error:
            raise AwayError(f"{self.url}: {error or type(error).__name__}") from None
        finally:
            if connection is not None:
                self._done_with(connection, response is not None and response.heard)

    def _written(self, question: Question) -> bytes:
        """Return a question as it is sent; by hand, as answers are read: http.client takes twice as long."""
        if not (question.path.isascii() and question.path.isprintable()) or " " in question.path:
            raise UnfitError(f"{question.path[:200]!r} is not a path")
        body = b"" if question.body is None else json.dumps(question.body).encode()
        lines = [
            f"{question.method} {question.path} HTTP/1.1",
            f"Host: {self._name}",
            "Accept-Encoding: identity",
            f"Content-Type: {question.kind}",
            f"Content-Length: {len(body)}",
        ]
        if self._token:
            lines.append(f"Authorization: Bearer {Path(self._token).read_text(encoding='ascii').strip()}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    def _connection(self, seconds: float) -> Connection:
        """Return a connection that is kept and that the server has not ended, or a new one."""
        with self._lock:
            while self._idle and not self.closed:
                connection = self._idle.pop()
                if not select.select([connection.sock], [], [], 0)[0]:
                    connection.sock.settimeout(seconds)
                    self._busy.add(connection)
                    return connection
                connection.close()
        connection = self._new(seconds)
        with self._lock:
            if not self.closed:
                self._busy.add(connection)
                return connection
        connection.close()
        raise AwayError(f"{self.url}: nothing more is asked")

    def _new(self, seconds: float) -> Connection:
        if self.closed:
            raise AwayError(f"{self.url}: nothing more is asked")
        sock = socket.create_connection((self._host, self._port), seconds)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_hostname=self._host)
        except OSError:
            sock.close()
            raise
        return Connection(sock)

    def _done_with(self, connection: Connection, heard: bool) -> None:
        """Keep a connection whose answer was heard to its end, as far as the server does; end any other."""
        with self._lock:
            self._busy.discard(connection)
            if heard and len(self._idle) < self._kept:
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
