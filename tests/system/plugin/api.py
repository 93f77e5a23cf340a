"""An API that takes whatever it is given, run as a program on a node: a line of JSON for each request.

Its arguments are a port, a certificate and its key.
"""

from __future__ import annotations

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    """Says what it was asked, and that all is well."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(201)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
        sys.stdout.write(json.dumps({"path": self.path, "event": content}) + "\n")
        sys.stdout.flush()

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    """Serve until it is killed."""
    server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    sys.stdout.write("serves\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
