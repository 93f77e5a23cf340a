"""Refusals noted and taken, and the events that an API is given; here a server of TLS stands for it."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from concorde import refusals
from concorde.cni import NO_BANDWIDTH, NO_FREE_ADDRESS, TRY_AGAIN, CniError
from concorde.requests import Request

from tests.certificates import openssl_makes

NOTE = {"namespace": "web", "pod": "shop-1", "uid": "0a-1b", "code": NO_BANDWIDTH, "message": "no room"}


class Api:
    """What it was asked, and what it answers to that."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.answers: list[int] = []


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """An API at an address that its certificate names, and an account of it in the test's directory."""
    (tmp_path / "token").write_text("who-I-am\n")
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.crt"
    # As clusters' are: it says nothing of its authority's key (Python 3.13 would have it so).
    openssl_makes(certificate, key, "-addext", "subjectAltName=IP:127.0.0.1")
    found = Api()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.asked.append((self.path, self.headers["Authorization"], content))
            body = json.dumps({"kind": "Status", "message": "because"}).encode()
            self.send_response(found.answers.pop(0) if found.answers else 201)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv(refusals.HOST, "127.0.0.1")
    monkeypatch.setenv(refusals.PORT, str(server.server_address[1]))
    serving = Thread(target=server.serve_forever)
    serving.start()
    yield found
    server.shutdown()
    server.server_close()
    serving.join()


def made(*pods: str) -> list[dict[str, Any]]:
    return [refusals.event({**NOTE, "pod": pod}, "worker-01", 1_800_000_000.0) for pod in pods]


def test_an_event_is_of_the_pod_and_says_why() -> None:
    (event,) = made("shop-1")
    assert event["metadata"] == {"generateName": "shop-1.", "namespace": "web"}
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "namespace": "web", "name": "shop-1", "uid": "0a-1b",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "PromiseRefused", "no room")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2027-01-15T08:00:00Z"
    assert event["source"] == {"component": "concorde", "host": "worker-01"}
    other = refusals.event({**NOTE, "uid": "", "code": NO_FREE_ADDRESS}, "worker-01", 0)
    assert "uid" not in other["involvedObject"]
    assert other["reason"] == "NetworkRefused"


def test_the_api_is_given_each_event_by_one_connection(api: Api, tmp_path: Path) -> None:
    assert refusals.are_possible(str(tmp_path))
    assert refusals.post(str(tmp_path), made("a", "b")) == (2, "")
    assert [path for path, _, _ in api.asked] == ["/api/v1/namespaces/web/events"] * 2
    assert {authorization for _, authorization, _ in api.asked} == {"Bearer who-I-am"}
    assert [event["involvedObject"]["name"] for _, _, event in api.asked] == ["a", "b"]


def test_what_the_api_refuses_is_done_with_and_what_it_has_no_time_for_is_not(
    api: Api, tmp_path: Path
) -> None:
    api.answers = [403, 201, 503]
    assert refusals.post(str(tmp_path), made("a", "b", "c", "d")) == (2, "the API answers 503")
    api.answers = [403]
    assert refusals.post(str(tmp_path), made("a")) == (1, "the API refuses an event: 403 because")


def test_an_api_that_another_authority_vouches_for_is_told_nothing(api: Api, tmp_path: Path) -> None:
    openssl_makes(tmp_path / "ca.crt", tmp_path / "other")
    done, problem = refusals.post(str(tmp_path), made("a"))
    assert (done, api.asked) == (0, [])
    assert "CERTIFICATE_VERIFY_FAILED" in problem


def test_nothing_is_asked_outside_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(refusals.HOST, raising=False)
    (tmp_path / "token").write_text("")
    assert not refusals.are_possible(str(tmp_path))
    monkeypatch.setenv(refusals.HOST, "127.0.0.1")
    assert refusals.are_possible(str(tmp_path))
    assert not refusals.are_possible(str(tmp_path / "nowhere"))


def request(state: Path, pod: str = "web/shop-1") -> Request:
    return Request({"name": "net", "stateDir": str(state)}, "c1", "eth0", "", pod)


def test_a_refusal_is_noted_only_where_somebody_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_UID=0a-1b;K8S_POD_NAME=shop-1")
    state = tmp_path / "state"
    problem = CniError(NO_BANDWIDTH, "no room")
    refusals.note(request(state), problem)
    assert not state.exists()
    assert refusals.are_there(f"{state}/net")  # the file is to be made
    assert refusals.take(f"{state}/net") == []
    assert not refusals.are_there(f"{state}/net")
    refusals.note(request(state), problem)
    refusals.note(request(state, pod=""), problem)
    refusals.note(request(state), CniError(TRY_AGAIN, "busy"))
    assert refusals.are_there(f"{state}/net")
    assert refusals.take(f"{state}/net") == [NOTE]
    assert refusals.take(f"{state}/net") == []


def test_notes_take_so_much_room_and_no_more(tmp_path: Path) -> None:
    state = tmp_path / "state"
    refusals.take(f"{state}/net")
    for _ in range(200):
        refusals.note(request(state), CniError(NO_BANDWIDTH, "x" * 5000))
    size = (state / "net" / "refusals").stat().st_size
    assert 60_000 < size <= 1 << 16
    notes = refusals.take(f"{state}/net")
    assert {len(note["message"]) for note in notes} == {1000}


def test_half_a_note_is_left_out(tmp_path: Path) -> None:
    state = tmp_path / "state"
    refusals.take(f"{state}/net")
    refusals.note(request(state), CniError(NO_BANDWIDTH, "no room"))
    with (state / "net" / "refusals").open("a") as file:
        file.write('{"namespace": "we')
    assert [note["message"] for note in refusals.take(f"{state}/net")] == ["no room"]


def test_notes_are_not_written_through_a_link(tmp_path: Path) -> None:
    state = tmp_path / "state"
    refusals.take(f"{state}/net")
    file, elsewhere = state / "net" / "refusals", tmp_path / "elsewhere"
    file.unlink()
    elsewhere.write_text("")
    file.symlink_to(elsewhere)
    refusals.note(request(state), CniError(NO_BANDWIDTH, "no room"))
    assert elsewhere.read_text() == ""
