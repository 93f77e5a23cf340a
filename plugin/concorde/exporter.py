"""A page of metrics by HTTP: one request a connection, answered by whoever has the time.

As much of HTTP/1.1 as a scraper speaks (RFC 9112). Not http.server, which takes 8 MB.
"""

from __future__ import annotations

import os
from time import monotonic

from edge.netlink import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

    Place = tuple[str, int]

PATH = "/metrics"
USUAL = "127.0.0.1:9725"
_PATIENCE_SECONDS = 2  # for a request, and for its answer
_LONGEST = 8192  # of a request (bytes)
_WAITING = 16  # connections that nobody has taken yet
_OPENMETRICS = "application/openmetrics-text"
_PLAIN = "text/plain"
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Error"}


def place(text: str) -> Place:
    """The address and port of `127.0.0.1:9725` or `[::1]:9725`. Raises ValueError."""
    address, colon, port = text.rpartition(":")
    if address.startswith("[") and address.endswith("]"):
        address = address[1:-1]
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError
    try:
        sockets.inet_pton(_family(address), address)
    except OSError:
        raise ValueError from None
    return address, int(port)


def listening(at: Place) -> socket:
    """A socket that waits for connections there. Raises OSError."""
    made = sockets.socket(_family(at[0]), sockets.SOCK_STREAM | os.O_CLOEXEC)
    try:
        made.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        made.bind(at)
        made.listen(_WAITING)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def accepted(listener: socket, at: Place) -> socket | None:
    """The next connection, unless there is none, or it is of somebody whom this address is closed to.

    Where a bridge has route_localnet, as portmap sets it, a pod reaches the node's 127.0.0.1 (CVE-2020-8558).
    """
    try:
        descriptor, peer = listener._accept()  # type: ignore[attr-defined]  # what socket.accept() calls
    except OSError:
        return None
    connection = sockets.socket(fileno=descriptor)
    if _is_loopback(at[0]) and not _is_loopback(peer[0]):
        connection.close()
        return None
    return connection


def answer(connection: socket, collect: Callable[[], str]) -> None:
    """Read a request, answer it, and end the connection."""
    try:
        request = _request(connection, monotonic() + _PATIENCE_SECONDS)
        if request is not None:
            page = response(request, collect)
            connection.settimeout(_PATIENCE_SECONDS)
            connection.sendall(page)
            connection.shutdown(sockets.SHUT_WR)
    except OSError:
        pass  # the other end is slow, or gone
    finally:
        connection.close()


def response(request: bytes, collect: Callable[[], str]) -> bytes:
    """What is answered to a request; `collect` gives the page."""
    lines = request.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return _text(400, "not an HTTP/1.1 request\n")
    method, target = parts[:2]
    if target.partition("?")[0] != PATH:
        return _text(404, f"metrics are at {PATH}\n", body=method != "HEAD")
    if method not in ("GET", "HEAD"):
        return _text(405, "GET or HEAD\n", "Allow: GET, HEAD\r\n")
    try:
        page = collect()
    except Exception as error:  # whatever it is, the scraper shall see it
        return _text(500, f"{error}\n", body=method == "GET")
    accepts = [line for line in lines[1:] if line.lower().startswith("accept:")]
    kind = (
        f"{_OPENMETRICS}; version=1.0.0" if _OPENMETRICS in "".join(accepts) else f"{_PLAIN}; version=0.0.4"
    )
    return _text(200, page, kind=kind, body=method == "GET")


def _text(status: int, text: str, headers: str = "", kind: str = _PLAIN, body: bool = True) -> bytes:
    content = text.encode(errors="replace")
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}; charset=utf-8\r\n"
        f"Content-Length: {len(content)}\r\nConnection: close\r\n{headers}\r\n"
    )
    return head.encode() + (content if body else b"")


def _request(connection: socket, deadline: float) -> bytes | None:
    """All up to the blank line; None where the other end says no more, or no end of it in time."""
    content = b""
    while b"\r\n\r\n" not in content:
        if len(content) > _LONGEST:
            return b""
        left = deadline - monotonic()
        if left <= 0:
            return None
        connection.settimeout(left)
        part = connection.recv(_LONGEST)
        if not part:
            return None
        content += part
    return content


def _family(address: str) -> int:
    return sockets.AF_INET6 if ":" in address else sockets.AF_INET


def _is_loopback(address: str) -> bool:
    return address.startswith("127.") or address == "::1"
