from __future__ import annotations

from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socketpair
from threading import Thread

import pytest
from concorde import exporter

PAGE = "# EOF\n"


def asked(request: str) -> tuple[str, dict[str, str], str]:
    """Status line, headers and body."""
    head, _, body = exporter.response(request.encode(), lambda: PAGE).decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["Connection"] == "close"
    return status, headers, body


def test_a_page_is_given_to_who_asks_for_it() -> None:
    status, headers, body = asked("GET /metrics?name=x HTTP/1.1\r\nHost: node\r\n\r\n")
    assert (status, body) == ("HTTP/1.1 200 OK", PAGE)
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert headers["Content-Length"] == str(len(PAGE))


def test_it_has_the_type_that_a_scraper_prefers() -> None:
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    _, headers, _ = asked(f"GET /metrics HTTP/1.1\r\nACCEPT: {accept}\r\n\r\n")
    assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"


def test_a_head_has_no_body() -> None:
    status, headers, body = asked("HEAD /metrics HTTP/1.0\r\n\r\n")
    assert (status, headers["Content-Length"], body) == ("HTTP/1.1 200 OK", str(len(PAGE)), "")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET / HTTP/1.1", 404),
        ("GET /metrics", 400),
        ("GET /metrics HTTP/2", 400),
        ("\x16\x03\x01\x02\x00", 400),
        ("", 400),
    ],
)
def test_what_is_no_request_for_it_is_told_so(request_: str, status: int) -> None:
    assert asked(f"{request_}\r\n\r\n")[0].split()[1] == str(status)


def test_a_method_that_changes_something_is_refused() -> None:
    status, headers, _ = asked("POST /metrics HTTP/1.1\r\n\r\n")
    assert (status, headers["Allow"]) == ("HTTP/1.1 405 Method Not Allowed", "GET, HEAD")


def test_why_there_is_no_page_is_said() -> None:
    def fail() -> str:
        raise OSError("the ledger is damaged")

    answer = exporter.response(b"GET /metrics HTTP/1.1\r\n\r\n", fail).decode()
    assert answer.startswith("HTTP/1.1 500 ")
    assert answer.endswith("the ledger is damaged\n")


def test_a_request_without_an_end_is_not_kept() -> None:
    here, there = socketpair(AF_UNIX, SOCK_STREAM)
    with here:
        serving = Thread(target=exporter.answer, args=(there, lambda: PAGE))
        serving.start()
        here.sendall(b"x" * 20_000)
        answer = here.recv(1 << 16)
        serving.join()
    assert answer.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("text", "place"),
    [("127.0.0.1:9725", ("127.0.0.1", 9725)), ("[::1]:1", ("::1", 1)), ("0.0.0.0:65535", ("0.0.0.0", 65535))],
)
def test_an_address_and_a_port(text: str, place: tuple[str, int]) -> None:
    assert exporter.place(text) == place


@pytest.mark.parametrize("text", ["9725", ":9725", "node:9725", "127.0.0.1:0", "127.0.0.1:65536", "1.2.3:4"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        exporter.place(text)


def test_the_installer_s_script_listens_where_the_help_says() -> None:
    script = Path(__file__).parents[3] / "plugin" / "deploy" / "install.sh"
    assert f'"${{LISTEN={exporter.USUAL}}}"' in script.read_text()
