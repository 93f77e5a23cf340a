"""The webhook over TLS: trusted by what it writes to an API in memory, and asked by whoever means no good."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from edge import webhook
from edge.addresses import admission
from edge.addresses.books import Rules
from edge.addresses.controller import parse
from edge.addresses.judging import Judge, keeps_both
from edge.http import Json, Question, RefusedError, Server
from edge.log import Logger
from edge.webhook import CERTIFICATES, Webhook, called, trusting
from tests.apis import config
from tests.ports import free_ports
from tests.unit.edge.addresses.test_admission import BOTH, SINGLE, asked, held
from tests.unit.edge.stub import WEBHOOKS, StubApi, serving
from tests.waiting import until

NAME = "concorde-addresses"
HOST = "127.0.0.1"
OURS = "/apis/addresses.contmec.dev/v1alpha1/clustercidrconfigs"
GOOD, BAD = config("good", "10.61.4.0/25:28"), config("bad", "10.61.4.1/25:28")


def configuration(url: str = f"https://{HOST}/validate") -> Json:
    hooks = [{"name": "configs.addresses.contmec.dev", "clientConfig": {"url": url}}]
    return {"metadata": {"name": NAME}, "webhooks": hooks}


class Case:
    """An API, and a webhook of it."""

    def __init__(self, api: StubApi, directory: Path) -> None:
        self.api, self._directory = api, directory
        self.stream = StringIO()
        self.port = 0
        self._stops = ExitStack()

    def start(self, port: int = 0) -> None:
        """Have one more answer."""
        lines = self.said().count("answers on port")
        server = Server(self.api.url, kept=2)
        self._stops.callback(server.close)
        log = Logger(self.stream)
        hook = Webhook(NAME, port, server, Judge(Rules(), server, log).answer, log)
        self._stops.enter_context(hook.running(threading.Event()))
        until(lambda: self.said().count("answers on port") > lines, hint=self.said)
        self.port = int(self.said().rpartition("answers on port ")[2].split()[0])

    def end(self) -> None:
        self._stops.close()

    def said(self) -> str:
        return self.stream.getvalue()

    def bundle(self) -> str:
        """Whom a server trusts."""
        (hook,) = self.api.all(WEBHOOKS)[NAME]["webhooks"]
        return base64.b64decode(hook["clientConfig"].get("caBundle", "")).decode()

    def ask(self, document: Json) -> Json:
        """Ask what an API server asks, trusting whom it trusts."""
        authority = self._directory / "bundle.pem"
        authority.write_text(self.bundle())
        server = Server(f"https://{HOST}:{self.port}", authority=str(authority))
        response: Json = server.ask(Question("POST", "/validate?timeout=2s", document))["response"]
        return response

    def may(self, document: Json) -> bool:
        return bool(self.ask(asked("CREATE", document))["allowed"])

    def connected(self) -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(socket.create_connection((HOST, self.port), 10))

    def sent(self, head: str, body: bytes = b"") -> str:
        """Send a question by hand; return the answer's first line."""
        with self.connected() as connection:
            connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
            return connection.makefile("rb").readline().decode().strip()


@contextmanager
def case(directory: Path) -> Iterator[Case]:
    with serving() as api:
        api.do("POST", WEBHOOKS, configuration())
        made = Case(api, directory)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    with case(tmp_path_factory.mktemp("webhook")) as made:
        made.start()
        yield made


@pytest.fixture
def one(lent: Case) -> Iterator[Case]:
    """One that answers, also afterwards."""
    yield lent
    assert lent.may(GOOD)


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    """One that is yet to be started, and looks often."""
    monkeypatch.setattr(webhook, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(webhook, "RETRY_SECONDS", 0.05)
    with case(tmp_path) as made:
        yield made


def test_it_is_trusted_by_what_it_wrote_and_refuses_with_the_field(one: Case) -> None:
    assert one.may(GOOD)
    response = one.ask(asked("CREATE", BAD))
    assert response["allowed"] is False
    assert "spec.ipv4.cidr: Invalid value: " in response["status"]["message"]
    assert "PRIVATE" not in one.bundle()


def test_replicas_share_a_port_and_each_is_trusted(new: Case) -> None:
    new.start()
    new.start(new.port)
    assert new.bundle().count("BEGIN") == 2
    assert all(new.may(GOOD) for _ in range(10))


def test_who_is_no_longer_trusted_is_soon_trusted_again(new: Case) -> None:
    new.start()
    before = new.bundle()
    hooks = [{"name": "configs.addresses.contmec.dev", "clientConfig": {"caBundle": ""}}]
    new.api.do("PATCH", f"{WEBHOOKS}/{NAME}", {"webhooks": hooks})
    until(new.bundle)
    assert new.bundle() == before
    assert new.may(GOOD)


def test_it_answers_by_another_name_when_it_is_asked_by_another(new: Case) -> None:
    new.start()
    before = new.bundle()
    url = {"url": "https://[fd00::1]:9443/validate"}
    hooks = [{"name": "configs.addresses.contmec.dev", "clientConfig": url}]
    new.api.do("PATCH", f"{WEBHOOKS}/{NAME}", {"webhooks": hooks})
    until(lambda: new.bundle() != before)
    until(lambda: subject_alternatives(new) == (("IP Address", "FD00:0:0:0:0:0:0:1"),))


def subject_alternatives(case: Case) -> Any:
    with case.connected() as connection:
        presented = ssl.DER_cert_to_PEM_cert(connection.getpeercert(True) or b"")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=presented)
    # A certificate that is trusted is shown decoded, if it is an authority's; this one is a server's alone.
    file = case._directory / "presented.pem"
    file.write_text(presented)
    return ssl._ssl._test_decode_cert(str(file))["subjectAltName"]  # type: ignore[attr-defined]


@contextmanager
def soon(case: Case, words: str, act: Callable[[], object]) -> Iterator[None]:
    """Do something meanwhile, once words were said."""

    def wait() -> None:
        until(lambda: words in case.said())
        act()

    with ThreadPoolExecutor() as pool:
        done = pool.submit(wait)
        yield
        done.result()


def test_a_port_that_another_has_is_said_once_and_taken_when_it_is_free(new: Case) -> None:
    (port,) = free_ports(1)
    with socket.create_server(("", port)) as other, soon(new, "Address already in use", other.close):
        new.start(port)
    assert new.port == port
    assert new.said().count("Address already in use") == 1


def test_without_openssl_or_a_configuration_it_says_so_and_goes_on(
    new: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", "/nowhere")
    with soon(new, "openssl", lambda: os.environ.__setitem__("PATH", path)):
        new.start()
    assert new.said().count("openssl") == 1
    new.api.do("DELETE", f"{WEBHOOKS}/{NAME}")
    until(lambda: "status 404" in new.said())


def post(length: object, kind: str = "application/json", path: str = "/validate") -> str:
    return f"POST {path} HTTP/1.1\nHost: x\nContent-Type: {kind}\nContent-Length: {length}"


REVIEW = json.dumps(asked("CREATE", BAD)).encode()


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (post(len(REVIEW), "application/json; charset=utf-8"), REVIEW, 200),
        (post(1_000_000), REVIEW.ljust(1_000_000), 200),
        (post(1 << 20), b"[" * (1 << 20), 400),
        (post(3_000_000), b"", 413),
        (post(10**12), b"", 411),
        (post(-1), b"", 411),
        ("POST /validate HTTP/1.1\nContent-Type: application/json", b"", 411),
        (post(2, "text/plain"), b"{}", 415),
        (post(2, path="/"), b"{}", 404),
        ("GET /validate HTTP/1.1", b"", 501),
        ("PUT /validate HTTP/1.1\nContent-Length: 0", b"", 501),
        (post(2), b"{}", 400),
        (post(2), b"[]", 400),
        (post(2), b"\xff\xfe", 400),
        (post(4), b"NaNN", 400),
        ("POST " + "/" * 70_000 + " HTTP/1.1", b"", 414),
        ("nonsense", b"", 400),
    ],
)
def test_what_is_no_question_gets_a_status(one: Case, head: str, body: bytes, status: int) -> None:
    line = one.sent(head, body)
    assert f" {status} " in line or (status == 400 and head == "nonsense")


def test_who_speaks_no_tls_gets_nothing(one: Case) -> None:
    with socket.create_connection((HOST, one.port), 10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"HTTP" not in connection.recv(1000)


def test_who_asks_half_a_question_or_nothing_is_cut_off_and_in_nobodys_way(
    one: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as held_open:
        idle = [held_open.enter_context(socket.create_connection((HOST, one.port), 20)) for _ in range(100)]
        half = held_open.enter_context(one.connected())
        half.sendall(post(100).replace("\n", "\r\n").encode() + b"\r\n\r\n{")
        assert one.may(GOOD)
        assert not one.may(BAD)
        monkeypatch.setattr(webhook, "CONNECTION_SECONDS", 0.1)
        assert half.recv(100) == b""
        assert all(connection.recv(100) == b"" for connection in idle)
    monkeypatch.undo()


def test_who_is_slow_but_lively_is_cut_off(one: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "CONNECTION_SECONDS", 0.5)
    with one.connected() as slow, suppress(OSError):
        slow.sendall(b"POST /validate HTTP/1.1\r\n")
        until(lambda: slow.sendall(b"A: b\r\n"), every=0.1)
    monkeypatch.undo()


def test_a_fault_of_its_own_is_a_status_and_said(new: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Json:
        raise KeyError("planted")

    monkeypatch.setattr(admission, "review", broken)
    new.start()
    with pytest.raises(RefusedError, match="status 500: the webhook failed"):
        new.may(GOOD)
    assert "KeyError('planted')" in new.said()


def test_configs_are_judged_beside_those_that_the_api_has(new: Case) -> None:
    new.start()
    new.api.do("POST", OURS, config("first", *BOTH))
    assert new.may(config("single", *SINGLE))  # this server may keep one family
    new.api.version = {"major": "1", "minor": "21+"}
    assert not new.may(config("single", *SINGLE))


def test_an_api_that_says_nothing_refuses_nothing(new: Case) -> None:
    new.start()
    new.api.version = {"major": "1", "minor": "21"}
    new.api.do("POST", OURS, config("first", *BOTH))
    new.api.fault = lambda _, path: 503 if path == OURS else None
    assert new.may(config("single", *SINGLE))
    assert not new.may(BAD)
    assert "judged by itself alone" in new.said()


def test_before_a_kind_is_there_no_config_is() -> None:
    with serving() as api:
        api.kinds.remove(OURS)
        api.version = {"major": "1", "minor": "30"}
        server = Server(api.url)
        around = Judge(Rules(), server, Logger(StringIO()))._surroundings()
        assert (around.others, around.both) == ([], True)


@pytest.mark.parametrize(
    ("version", "status", "both"),
    [
        ({"major": "1", "minor": "20"}, {}, False),
        ({"major": "1", "minor": "21+"}, {}, True),
        ({"major": "2", "minor": "0"}, {}, True),
        ({}, {}, False),
        ({"major": "1", "minor": "20"}, {"given": 1}, True),
        ({"major": "1", "minor": "22"}, {"conditions": [{"type": "Ready", "reason": "OneFamily"}]}, False),
    ],
)
def test_how_many_families_a_server_keeps(version: Json, status: Json, both: bool) -> None:
    one = held("both", *BOTH)
    one.document["status"] = status
    assert keeps_both(version, [one, held("single", *SINGLE)]) is both


def certificate(text: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"


def test_a_bundle_keeps_the_last_replicas() -> None:
    document = configuration()
    document["metadata"]["resourceVersion"] = "7"
    for number in range(CERTIFICATES + 3):
        patch = trusting(document, f"-----BEGIN KEY-----\n{certificate(str(number))}")
        assert patch["metadata"] == {"resourceVersion": "7"}
        document["webhooks"][0]["clientConfig"].update(patch["webhooks"][0]["clientConfig"])
        assert trusting(document, certificate(str(number))) == {}
    bundle = base64.b64decode(document["webhooks"][0]["clientConfig"]["caBundle"]).decode()
    assert bundle == "".join(certificate(str(number)) for number in range(3, CERTIFICATES + 3))


def test_a_bundle_that_is_none_is_begun_anew() -> None:
    document = configuration()
    document["metadata"]["resourceVersion"] = "7"
    for text in ("Cg==", "/w=="):
        document["webhooks"][0]["clientConfig"]["caBundle"] = text
        (hook,) = trusting(document, certificate("a"))["webhooks"]
        assert base64.b64decode(hook["clientConfig"]["caBundle"]).decode() == certificate("a")


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ({"url": "https://192.168.56.2:10270/validate"}, "192.168.56.2"),
        ({"url": "https://[fd00::1]:10270/validate"}, "fd00::1"),
        (
            {"service": {"namespace": "concorde-addresses", "name": "addresses"}},
            "addresses.concorde-addresses.svc",
        ),
    ],
)
def test_it_answers_by_the_name_by_which_it_is_asked(client: Json, name: str) -> None:
    assert called({"webhooks": [{"clientConfig": client}]}) == (name,)
    assert webhook.new_identity([name], NAME).count("BEGIN") == 2


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--webhook-port=0", "'0' is not a number from 1"),
        ("--webhook-port=65536", "'65536' is not a port from 1"),
    ],
)
def test_a_port_that_cannot_be_is_said(argument: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--api=http://x:1", argument])
    assert f"--webhook-port: {words}" in capsys.readouterr().err
