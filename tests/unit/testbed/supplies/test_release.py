from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from testbed.supplies import binaries, getting, release
from testbed.supplies.binaries import PROGRAMS
from tests.unit.testbed.supplies.builders import MakePrograms


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of a download site on this machine."""
    directory = tmp_path / "site"
    directory.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv(release.SITE, f"http://127.0.0.1:{server.server_address[1]}/")
    yield directory
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def released(site: Path, make_programs: MakePrograms, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a released version, as the real site has it."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    directory = site / "v1.20.2" / "bin" / "linux" / "amd64"
    directory.parent.mkdir(parents=True)
    make_programs().rename(directory)
    for program in PROGRAMS:
        digest = hashlib.sha256((directory / program).read_bytes()).hexdigest()
        (directory / f"{program}.sha256").write_text(digest, encoding="utf-8")
    return directory


def test_a_release_is_downloaded_and_kept(released: Path) -> None:
    stages: list[str] = []
    got = getting.get("1.20.2", release.download, say=stages.append)
    assert got.source.startswith("downloaded from http://127.0.0.1:")
    assert got.source.endswith("/v1.20.2/bin/linux/amd64")
    assert got.path("kubelet").read_bytes() == (released / "kubelet").read_bytes()
    assert [stage.rpartition("/")[2] for stage in stages[:-1]] == list(PROGRAMS)
    assert binaries.find("1.20.2") == got


def test_a_download_with_another_checksum_is_not_used(released: Path) -> None:
    (released / "kubelet.sha256").write_text("0" * 64, encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"kubelet has sha256 \w{64}, but 0{64} is published: not used"):
        getting.get("1.20.2", release.download)
    with pytest.raises(LookupError):
        binaries.find("1.20.2")


@pytest.mark.parametrize("words", ["", "<html>", "ABCDEF"])
def test_what_is_published_must_be_a_checksum(released: Path, words: str) -> None:
    (released / "kubelet.sha256").write_text(words, encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"kubelet\.sha256 is not a checksum: "):
        getting.get("1.20.2", release.download)


def test_a_version_that_was_not_released_is_an_error(site: Path) -> None:
    with pytest.raises(LookupError, match=r"--download: there is no http://.*/v1\.27\.99/bin/linux/"):
        getting.get("1.27.99", release.download)


def test_without_the_site_the_message_says_what_else_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(release.SITE, "http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match=r"Connection refused\. Without the internet: --build, or --from"):
        getting.get("1.20.2", release.download)
