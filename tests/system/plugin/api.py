"""An API that takes whatever it is given, run as a program on a node: a line of JSON for each request.

Its arguments are a port, a certificate and its key; and, if it has pods, a file with a line of JSON for each:
first they are listed, and what is added to the file is an event of who watches.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


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

    def do_GET(self) -> None:
        asked, pods = parse_qs(urlsplit(self.path).query), Path(sys.argv[4]).read_bytes().splitlines()
        self.send_response(200 if self.headers["Authorization"] == "Bearer who-I-am" else 401)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        assert asked["fieldSelector"] == ["spec.nodeName=node-1"]
        if "watch" not in asked:
            self.chunk(
                {"metadata": {"resourceVersion": str(len(pods))}, "items": list(map(json.loads, pods))}
            )
            self.chunk(None)
            return
        sent = int(asked["resourceVersion"][0])
        while True:
            for pod in map(json.loads, Path(sys.argv[4]).read_bytes().splitlines()[sent:]):
                sent += 1
                pod["metadata"]["resourceVersion"] = str(sent)
                self.chunk({"type": "MODIFIED", "object": pod})
            time.sleep(0.05)

    def chunk(self, said: object) -> None:
        content = b"" if said is None else json.dumps(said).encode() + b"\n"
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    """Serve until it is killed."""
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    sys.stdout.write("serves\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
