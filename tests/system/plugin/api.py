"""An API that takes whatever it is given, run as a program on a node: a line of JSON for each request.

Its arguments are a port, a certificate and its key; and, if it has pods, a file with a line of JSON for each:
first they are listed, and what is added to the file is an event of who watches. A line with a `type` is an
event by itself: after an ERROR, or an END, which is none, a watch ends, and with `oldest` the API knows of no
version before that any more. What it is asked for is written down beside the file.
"""

from __future__ import annotations

import json
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


def said() -> list[dict[str, Any]]:
    """The file's lines."""
    return list(map(json.loads, Path(sys.argv[4]).read_bytes().splitlines()))


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
        asked, lines = parse_qs(urlsplit(self.path).query), said()
        since = int(asked.get("resourceVersion", ["0"])[0])
        with Path(f"{sys.argv[4]}.asked").open("a") as file:
            file.write(f"watch {since}\n" if "watch" in asked else "list\n")
        status = 200 if self.headers["Authorization"] == "Bearer who-I-am" else 401
        if "watch" in asked and since < max(line.get("oldest", 0) for line in lines):
            status = 410
        self.send_response(status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        assert asked["fieldSelector"] == ["spec.nodeName=node-1"]
        if status != 200:
            self.chunk({"kind": "Status", "code": status, "message": "too old resource version"})
        elif "watch" in asked:
            self.watch(since, len(lines))
        else:
            pods = {
                (pod["namespace"], pod["name"]): pod
                for pod in (line.get("metadata") for line in lines)
                if pod
            }
            items = [{"metadata": pod} for pod in pods.values()]
            self.chunk({"metadata": {"resourceVersion": str(len(lines))}, "items": items})
        self.chunk(None)

    def watch(self, sent: int, begun: int) -> None:
        while True:
            for line in said()[sent:]:
                sent += 1
                event: dict[str, Any] = line if "type" in line else {"type": "MODIFIED", "object": line}
                if event["type"] == "END" and sent <= begun:
                    continue
                if event["type"] != "END":
                    event["object"].setdefault("metadata", {})["resourceVersion"] = str(sent)
                    self.chunk(event)
                if event["type"] in ("END", "ERROR"):
                    return
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
