"""Answers API servers that ask whether an object may be as somebody wants it: an admission webhook.

Each replica answers, whoever leads, by a key that it makes itself and that never leaves it. That it may be
trusted an API server knows by ``caBundle`` of the ValidatingWebhookConfiguration, to which each replica adds
its certificate. So nothing has to be installed, issued or stored before.

Whoever reaches the port may ask. What is asked is read with limits of size, time and number, answered, and
changes nothing.
"""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socketserver import TCPServer
from typing import Any, NamedTuple, Optional
from urllib.parse import urlsplit

from edge.http import STRATEGIC, AwayError, Json, Question, Server, UnfitError, json_object
from edge.log import Logger

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PORT, PATH, JSON = 10270, "/validate", "application/json"
# Twice a config whose status names the most nodes, and metadata who wrote each field, is about 0.4 MB.
MOST_BYTES, SMALL_BYTES, MOST_LARGE = 1 << 20, 1 << 16, 2
# A connection is for one question. When there are more, the one that has waited longest makes room.
MOST_CONNECTIONS, CONNECTION_SECONDS = 32, 5.0
POLL_SECONDS = 0.2  # how often it is looked which of them take too long
DAYS, CERTIFICATES = 365, 8  # how long a certificate is good, and how many are kept in a bundle
CHECK_SECONDS, RETRY_SECONDS = 30.0, 2.0  # how often it is looked whether it is still trusted
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)
REQUEST = """\
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = {name} {number}
[extensions]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = {names}
"""


Answer = Callable[[Json], Json]  # an AdmissionReview to another; raises UnfitError for what is none


class Webhook:
    """Keeps itself trusted and answers, until it is told to stop.

    API servers ask by a ValidatingWebhookConfiguration, here on a port; ``answer`` says what they are told.
    """

    def __init__(self, configuration: str, port: int, server: Server, answer: Answer, log: Logger) -> None:
        self._configuration, self._port = configuration, port
        self._server, self._answer, self._log = server, answer, log
        self._path = f"{CONFIGURATIONS}/{configuration}"
        self._names: Sequence[str] = ()
        self._identity, self._made = "", 0.0
        self._listener: Optional[Listener] = None  # noqa: UP045 (nodes may have Python 3.9)

    @contextmanager
    def running(self, stop: threading.Event) -> Iterator[None]:
        """Answer in threads of its own until the end of the block, at which ``stop`` is set.

        Without a configuration nobody asks, and nothing is done.
        """
        if not self._configuration:
            yield
            return
        thread = threading.Thread(target=self._run, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(CONNECTION_SECONDS)

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._keep_trusted()
                stop.wait(CHECK_SECONDS)
            except Exception as error:  # of any kind: the controller goes on, and so does the next attempt
                said = error if isinstance(error, (AwayError, OSError)) else repr(error)
                self._log.once(f"webhook: {said}")
                stop.wait(RETRY_SECONDS)
        if self._listener is not None:
            self._listener.end()

    def _keep_trusted(self) -> None:
        """Have API servers trust an identity, and answer by it.

        Raises AwayError, OSError for a port that another program has, or without the program openssl.
        """
        configuration = self._server.ask(Question("GET", self._path))
        names = called(configuration)
        if names != self._names or time.monotonic() - self._made > DAYS / 2 * 86400:
            self._identity = new_identity(names, self._configuration)
            self._names, self._made = names, time.monotonic()
        patch = trusting(configuration, self._identity)
        if patch:
            self._server.ask(Question("PATCH", self._path, patch, STRATEGIC))
        if self._listener is None:
            self._listener = Listener(self._configuration, self._port, self._answer, self._log)
            self._log(f"webhook: answers on port {self._listener.port} as {', '.join(names)}")
        self._listener.present(self._identity)


def called(configuration: Json) -> tuple[str, ...]:
    """Return the names by which API servers ask: of a Service, or a URL's host."""
    found = set()
    for webhook in configuration.get("webhooks") or ():
        service = webhook["clientConfig"].get("service")
        url = str(urlsplit(webhook["clientConfig"].get("url") or "").hostname)
        found.add(f"{service['name']}.{service['namespace']}.svc" if service else url)
    return tuple(sorted(found))


def trusting(configuration: Json, identity: str) -> Json:
    """Return the patch by which an identity is trusted too; empty if it is."""
    (own,) = CERTIFICATE.findall(identity)
    webhooks = []
    for webhook in configuration.get("webhooks") or ():
        bundle = base64.b64decode(webhook["clientConfig"].get("caBundle") or "").decode(errors="replace")
        others = CERTIFICATE.findall(bundle)
        if own not in others:
            text = "".join([*others[1 - CERTIFICATES :], own])
            bundle = base64.b64encode(text.encode()).decode()
            webhooks.append({"name": webhook["name"], "clientConfig": {"caBundle": bundle}})
    if not webhooks:
        return {}
    # Another replica may add its own at the same time.
    return {
        "metadata": {"resourceVersion": configuration["metadata"]["resourceVersion"]},
        "webhooks": webhooks,
    }


def new_identity(names: Sequence[str], common_name: str) -> str:
    """Return a new key, and a certificate by which it vouches for itself under some names, as PEM.

    Raises OSError.
    """
    listed = ", ".join(f"{'IP' if _is_address(name) else 'DNS'}:{name}" for name in names)
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-days", str(DAYS), "-config", "/dev/stdin", "-keyout", "/dev/stdout"),
    ]
    # Of two of one name in a bundle a library may take the first, and not look at the other.
    text = REQUEST.format(names=listed, name=common_name, number=os.urandom(8).hex())
    done = subprocess.run(command, input=text, capture_output=True, encoding="ascii", timeout=60)
    if done.returncode:
        raise OSError(f"openssl req: {done.stderr.strip()[-400:]}")
    return done.stdout


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class Listener(ThreadingHTTPServer):
    """Answers POSTs of JSON over TLS with what a function says, a connection each.

    Replicas on one node in that node's network share a port. Raises OSError if another program has it.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, name: str, port: int, answer: Answer, log: Logger) -> None:
        dual = socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if dual else socket.AF_INET
        self.name, self.answer, self.log = name, answer, log
        # What a large body becomes in memory may be much larger. Who is slow with one is in the way of others
        # that are large.
        self.one_by_one, self.large = threading.Lock(), threading.BoundedSemaphore(MOST_LARGE)
        self._connections: dict[Any, float] = {}
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        super().__init__(("", port), Handler)
        self.port = self.socket.getsockname()[1]
        self._thread: Optional[threading.Thread] = None  # noqa: UP045 (nodes may have Python 3.9)

    def present(self, identity: str) -> None:
        """Answer from now on by this identity; the first one begins it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        file = os.memfd_create("identity")  # a library reads it from a file, and it shall not be in any
        try:
            os.write(file, identity.encode())
            context.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
        self._context = context
        if self._thread is None:
            self._thread = threading.Thread(target=self.serve_forever, args=(POLL_SECONDS,), daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Answer no more."""
        if self._thread is not None:
            self.shutdown()
        self.server_close()

    def server_bind(self) -> None:
        """Bind without asking DNS for the host's name, as its class does."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        TCPServer.server_bind(self)

    def get_request(self) -> tuple[Any, Any]:
        """Return a connection whose handshake is yet to be done, by the thread that answers."""
        connection, address = super().get_request()
        connection.settimeout(CONNECTION_SECONDS)
        secured = self._context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return secured, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Make room for a connection, and answer it in a thread."""
        self._connections[request] = time.monotonic()
        for oldest in list(self._connections)[:-MOST_CONNECTIONS]:
            self._cut(oldest)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Cut connections that take too long, however lively they are."""
        for connection, since in list(self._connections.items()):
            if time.monotonic() - since > CONNECTION_SECONDS:
                self._cut(connection)

    def _cut(self, connection: Any) -> None:
        self._connections.pop(connection, None)
        with suppress(OSError):
            # Of a TLS socket the socket alone: who reads from it by TLS is in the midst of it.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """End a connection that was answered, or failed."""
        self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of those who speak no TLS, or do not wait for the end."""


class Reply(NamedTuple):
    """A status, and what is said with it."""

    status: int
    text: str
    kind: str = "text/plain; charset=utf-8"


class Handler(BaseHTTPRequestHandler):
    """Reads one question, and answers it."""

    protocol_version = "HTTP/1.1"
    server: Listener

    def do_POST(self) -> None:
        """Answer a question, or say with which status it is none."""
        self.close_connection = True
        reply = self._refusal()
        if reply is None:
            length = int(self.headers["Content-Length"])
            with self.server.large if length > SMALL_BYTES else nullcontext():
                body = bytearray(length)  # read piece by piece it takes twice as much
                self.rfile.readinto(body)  # what did not come are zeros, which are no JSON
                with self.server.one_by_one:
                    reply = self._reply(body)
                del body
        self._send(reply)

    def _refusal(self) -> Optional[Reply]:  # noqa: UP045 (nodes may have Python 3.9)
        length, kind = (str(self.headers.get(f"Content-{part}", "")) for part in ("Length", "Type"))
        if self.path.partition("?")[0] != PATH:
            return Reply(404, f"only {PATH} answers")
        if kind.partition(";")[0].strip().lower() != JSON:
            return Reply(415, f"Content-Type must be {JSON}")
        if not re.fullmatch(r"[0-9]{1,9}", length):
            return Reply(411, "Content-Length must be a number")
        if int(length) > MOST_BYTES:
            return Reply(413, f"the body must have at most {MOST_BYTES} bytes")
        return None

    def _reply(self, body: bytearray) -> Reply:
        """Return what is to be said; nothing that was made of the body is kept until that is sent."""
        try:
            answer = self.server.answer(json_object(body, "the body"))
        except UnfitError as error:
            return Reply(400, str(error))
        except Exception as error:  # of any kind: it is ours, and who asked shall know it at once
            self.server.log.once(f"webhook: {error!r}")
            return Reply(500, "the webhook failed")
        return Reply(200, json.dumps(answer), JSON)

    def _send(self, reply: Reply) -> None:
        content = f"{reply.text}\n".encode(errors="replace")
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        """Return who answers, and not by which version of what."""
        return self.server.name

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each question."""
