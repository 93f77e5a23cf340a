"""A node is taken out of the store; with an etcd that is made up."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from edge.overlay import leaving

SETTINGS = {
    "device": "flannel.1",
    "vni": 1,
    "network": "10.1.0.0/16",
    "subnet": "10.1.24.0/24",
    "address": "192.168.56.14",
    "l2": "miss",
    "l3": "miss",
    "refresh": "ignore",
}


def settings(directory: Path, **others: object) -> str:
    file = directory / "resolver.json"
    file.write_text(json.dumps({**SETTINGS, **others}))
    return str(file)


def test_the_key_of_the_nodes_own_subnet_is_deleted(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    class Store(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"deleted":"1"}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        status = leaving.main([settings(tmp_path, store=f"http://127.0.0.1:{server.server_port}")])
        server.shutdown()
    assert status == 0
    ((path, body),) = asked
    assert path == "/v3/kv/deleterange"
    assert list(body) == ["key"]
    assert b64decode(body["key"]) == b"/coreos.com/network/subnets/10.1.24.0-24"


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"store": "http://127.0.0.1:1"}, 1, "the store is unavailable"),
        ({"store": "http://127.0.0.1:1", "node": "worker-01"}, 2, "delete the Node"),
        ({"store": "http://127.0.0.1:1", "subnet": "10.1.24.1/24"}, 2, "subnet"),
    ],
)
def test_what_cannot_be_done_is_said(
    changed: dict[str, object],
    status: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert leaving.main([settings(tmp_path, **changed)]) == status
    assert words in capsys.readouterr().err


def test_settings_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert leaving.main([]) == 2
    assert "leave SETTINGS.json" in capsys.readouterr().err
