"""Questions to a store that speaks HTTP and JSON, and its answers that never end, line by line."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import NamedTuple, Optional
from urllib.parse import urlsplit

from edge.overlay.leases import AwayError, Json, UnfitError, json_object

LINE_BYTES = 1 << 24  # longer ones are no answer
ANSWER_SECONDS = 3.0
_RESPONSE = "the response"


class Question(NamedTuple):
    """What is asked: method, path, body, and the body's type."""

    method: str
    path: str
    body: Optional[Json] = None  # noqa: UP045 (nodes may have Python 3.9)
    kind: str = "application/json"


class Server:
    """A server by its URL; ``identity`` and ``authority`` are PEM files for one that speaks TLS.

    Raises ValueError for a URL that is none, and OSError for files that cannot be read.
    """

    def __init__(self, url: str, identity: str = "", authority: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not parts.port:
            raise ValueError(f"{url[:60]!r} is not like http://192.168.122.100:4001")
        self.url = url
        self._host, self._port = parts.hostname, parts.port
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=authority or None)
            if identity:
                self._tls.load_cert_chain(identity)

    def ask(self, question: Question) -> Json:
        """Return the answer to a question. Raises AwayError."""
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

    @contextmanager
    def _answered(self, question: Question) -> Iterator[tuple[HTTPConnection, HTTPResponse]]:
        """A connection by which something was asked, and the answer; what fails is an AwayError."""
        connection = self._connection()
        try:
            body = None if question.body is None else json.dumps(question.body)
            connection.request(question.method, question.path, body, {"Content-Type": question.kind})
            response = connection.getresponse()
            if response.status != 200:
                text = response.read(200).decode(errors="replace").strip()
                path = question.path.partition("?")[0]
                raise AwayError(f"{self.url}{path}: status {response.status}: {text}")
            yield connection, response
        except (OSError, HTTPException, UnfitError) as error:
            raise AwayError(f"{self.url}: {error or type(error).__name__}") from None
        finally:
            connection.close()

    def _connection(self) -> HTTPConnection:
        if self._tls:
            return HTTPSConnection(self._host, self._port, timeout=ANSWER_SECONDS, context=self._tls)
        return HTTPConnection(self._host, self._port, timeout=ANSWER_SECONDS)
