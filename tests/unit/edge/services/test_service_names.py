"""Which names services have, and the file in which dnsmasq finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edge.services.catalogue import SERVICES, SLICES
from edge.services.names import FILE, Names, line_of
from edge.watch import Changed, Listed

WEB = "10.96.0.11 web.default.svc.cluster.local\n"


def service(name: str = "web", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": "10.96.0.11", **spec}}


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (service(), WEB),
        (service("svc", "cluster"), "10.96.0.11 svc.cluster.svc.cluster.local\n"),
        (service("xn--bcher-kva"), "10.96.0.11 xn--bcher-kva.default.svc.cluster.local\n"),
        (service("a" * 63), f"10.96.0.11 {'a' * 63}.default.svc.cluster.local\n"),
        # Of a service that is left alone otherwise, the name is known.
        (service(sessionAffinity="ClientIP"), WEB),
        (service(clusterIP="fd00::1", clusterIPs=["fd00::1", "10.96.0.11"]), WEB),
        (service(clusterIP="None"), ""),
        (service(clusterIP=""), ""),
        (service(clusterIP=None), ""),
        (service(clusterIP="fd00::1"), ""),
        (service(clusterIP="10.96.0.11 evil.example"), ""),
        ({"metadata": {"name": "web"}, "spec": {"type": "ExternalName", "externalName": "example.org"}}, ""),
        ({"metadata": {"name": "web"}}, ""),
        ({"metadata": {"name": "web"}, "spec": []}, ""),
        # What an API would not take is no line of anybody else's either.
        (service("default.svc.cluster.local"), ""),
        (service("web\n10.96.0.1 kubernetes"), ""),
        (service("web", "a b"), ""),
        (service("Web"), ""),
        (service("-web"), ""),
        (service("bücher"), ""),
        (service("a" * 64), ""),
        (service("#"), ""),
    ],
)
def test_a_service_with_an_address_has_a_name(document: dict[str, Any], line: str) -> None:
    assert line_of(document) == line


def test_the_file_is_what_was_said_last_and_is_put_in_place_whole(tmp_path: Path) -> None:
    names, file = Names(str(tmp_path / "hosts")), tmp_path / "hosts" / FILE
    names.take(Listed(SERVICES, [service("one"), {}, service(), service("none", clusterIP="None")]))
    assert not file.exists()
    names.write()
    assert file.read_text() == WEB.replace("web", "one") + WEB
    before = file.stat()
    names.take(Changed(SERVICES, service(sessionAffinity="ClientIP"), gone=False))
    names.write()
    assert file.stat() == before  # it says nothing else
    names.take(Changed(SERVICES, service("one"), gone=True))
    names.take(Changed(SERVICES, service(clusterIP="10.96.0.12"), gone=False))
    names.take(Changed(SLICES[0], service("slice"), gone=False))
    # What somebody who was killed has half written is replaced, and dnsmasq does not read it.
    file.with_name(".services.new").write_text("10.96.0.9 hal")
    names.write()
    assert file.read_text() == WEB.replace("0.11", "0.12")
    assert [path.name for path in file.parent.iterdir()] == [FILE]
    names.remove()
    names.remove()
    assert not file.exists()


def test_who_comes_back_writes_what_there_is_even_if_it_is_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(WEB)
    names = Names(str(tmp_path))
    names.take(Listed(SERVICES, []))
    names.write()
    assert (tmp_path / FILE).read_text() == ""


def test_what_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    names = Names(str(tmp_path / "taken" / "hosts"))
    (tmp_path / "taken").write_text("")
    names.take(Listed(SERVICES, [service()]))
    with pytest.raises(OSError, match="taken"):
        names.write()
    (tmp_path / "taken").unlink()
    names.write()
    assert (tmp_path / "taken" / "hosts" / FILE).read_text() == WEB


def test_without_a_directory_nothing_is_done() -> None:
    names = Names("")
    names.take(Listed(SERVICES, [service()]))
    names.write()
    names.remove()
