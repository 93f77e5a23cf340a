"""What answers at a device's ports: by TCP and UDP it sends back what it gets, by HTTP the body or the path.

Run as a program in the device's network, with its wishes as JSON in its argument: ``name``, the device's;
``ports``, pairs of a protocol (TCP, UDP, HTTP) and a number; ``socket``, the path of a Unix socket that is
there once all ports are listened at. It stays until it is killed. Standard library alone.
"""

from __future__ import annotations

import json
import socket
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler

READ_BYTES = 65_536
MOST_BODY = 2**24  # bytes of a request
SILENT_SECONDS = 300.0  # after which a connection is given up


class Echo(socketserver.BaseRequestHandler):
    """Sends back what comes by a TCP connection, until its other end has said all."""

    def handle(self) -> None:
        """Answer one connection."""
        self.request.settimeout(SILENT_SECONDS)
        try:
            while data := self.request.recv(READ_BYTES):
                self.request.sendall(data)
        except OSError:  # the other end has gone, or says nothing
            return


class EchoDatagram(socketserver.BaseRequestHandler):
    """Sends back a datagram."""

    def handle(self) -> None:
        """Answer one datagram."""
        data, bound = self.request
        bound.sendto(data, self.client_address)


class Page(BaseHTTPRequestHandler):
    """Answers each request with its body, or else with the device's name and the path."""

    protocol_version = "HTTP/1.1"
    timeout = SILENT_SECONDS
    device = ""

    def answer(self) -> None:
        """Answer one request."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            self.send_error(413 if length.isdecimal() else 400)
            return
        body = self.rfile.read(int(length)) or f"{self.device} {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer  # noqa: N815 (as BaseHTTPRequestHandler wants them)

    def log_message(self, *_: object) -> None:
        """Say nothing of what was asked."""


class Quiet(socketserver.BaseServer):
    """Goes on when one who asked cannot be answered, who has gone mostly."""

    def handle_error(self, *_: object) -> None:
        """Say nothing of it."""


class ByTcp(Quiet, socketserver.ThreadingTCPServer):
    """A thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024


class ByUdp(Quiet, socketserver.UDPServer):
    """One datagram after another."""

    max_packet_size = READ_BYTES


def server(protocol: str, number: int, device: str) -> socketserver.BaseServer:
    """Return what answers at a port, which it listens at. Raises OSError."""
    address = ("", number)
    if protocol == "UDP":
        return ByUdp(address, EchoDatagram)
    return ByTcp(address, type("PageOf", (Page,), {"device": device}) if protocol == "HTTP" else Echo)


def main() -> None:
    """Answer as told."""
    wishes = json.loads(sys.argv[1])
    for protocol, number in wishes["ports"]:
        try:
            one = server(protocol, number, wishes["name"])
        except OSError as error:
            sys.exit(f"port {number} ({protocol}): {error}")
        threading.Thread(target=one.serve_forever, daemon=True).start()
    ready = socket.socket(socket.AF_UNIX)
    ready.bind(wishes["socket"])
    ready.listen()
    while True:
        ready.accept()[0].close()


if __name__ == "__main__":
    main()
