"""Answers of a real server on this machine: whole, line by line, late, and none."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from edge.http import AwayError, Question, RefusedError, Server
from tests.waiting import PATIENCE

OVER = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answers = {
            "/whole": (200, [b'{"a": 1}']),
            "/lines": (200, [b'{"a": 1}\n{"a"', b": 2}\n"]),
            "/silent": (200, [b'{"a": 1}\n', b""]),
            "/words": (200, [b"good morning\n"]),
            "/list": (200, [b"[]\n"]),
            "/refused": (403, [b"not for you"]),
            "/last": (200, [b"{}"]),
            "/who": (200, [json.dumps({"who": self.headers["Authorization"]}).encode()]),
        }
        status, parts = answers[self.path]
        self.send_response(status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            if not part:
                OVER.wait(PATIENCE)
                return
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = self.path == "/last"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of those who did not wait for the end."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    serving = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield Server(f"http://127.0.0.1:{serving.server_port}")
    OVER.set()
    serving.shutdown()
    serving.server_close()
    thread.join()


def post(path: str) -> Question:
    return Question("POST", path, {})


def test_an_answer_is_an_object(server: Server) -> None:
    assert server.ask(post("/whole")) == {"a": 1}


def test_an_answer_that_goes_on_comes_line_by_line_however_it_is_cut(server: Server) -> None:
    assert list(server.listen(post("/lines"), PATIENCE)) == [{"a": 1}, {"a": 2}]


def test_after_a_silence_it_ends(server: Server) -> None:
    assert list(server.listen(post("/silent"), 0.05)) == [{"a": 1}]


@pytest.mark.parametrize(
    ("path", "words"),
    [("/words", "not valid JSON"), ("/list", "not a JSON object"), ("/refused", "403: not for you")],
)
def test_what_is_no_answer_is_a_store_that_is_away(server: Server, path: str, words: str) -> None:
    with pytest.raises(AwayError, match=words):
        server.ask(post(path))
    with pytest.raises(AwayError, match=words):
        list(server.listen(post(path), PATIENCE))


def test_where_nobody_is_nobody_answers() -> None:
    with pytest.raises(AwayError, match="refused"):
        Server("http://127.0.0.1:1").ask(post("/whole"))


@pytest.mark.parametrize("url", ["", "192.168.1.1:4001", "ftp://x:1", "http://x", "http://x:70000"])
def test_what_is_no_url_is_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"not like|Port"):
        Server(url)


def test_connections_are_kept_and_one_that_the_server_ended_is_not_used(server: Server) -> None:
    keeping = Server(server.url, kept=2)
    for _ in range(3):
        keeping.ask(post("/whole"))
    (first,) = keeping._idle
    port = first.sock.getsockname()[1]
    keeping.ask(post("/whole"))
    assert keeping._idle[0].sock.getsockname()[1] == port
    keeping.ask(post("/last"))
    keeping.ask(post("/whole"))
    assert keeping._idle[0].sock.getsockname()[1] != port
    keeping.close()
    with pytest.raises(AwayError, match="nothing more"):
        keeping.ask(post("/whole"))


def test_who_closes_it_ends_what_it_listens_to(server: Server) -> None:
    keeping = Server(server.url)
    said = keeping.listen(post("/silent"), PATIENCE)
    assert next(said) == {"a": 1}
    keeping.close()
    with suppress(AwayError):
        assert list(said) == []


def test_what_is_refused_has_a_status(server: Server) -> None:
    with pytest.raises(RefusedError) as refused:
        server.ask(post("/refused"))
    assert refused.value.status == 403


def test_a_token_is_read_each_time(server: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    asking = Server(server.url, token=str(token), kept=1)
    for text in ("first", "second"):
        token.write_text(f"{text}\n")
        assert asking.ask(post("/who")) == {"who": f"Bearer {text}"}
    for nothing, words in ((b"two\r\nlines", "Invalid header"), (b"\xff\xfe", "can't decode")):
        token.write_bytes(nothing)
        with pytest.raises(AwayError, match=words):
            asking.ask(post("/who"))
    token.unlink()
    with pytest.raises(AwayError, match="No such file"):
        asking.ask(post("/who"))
    asking.close()
