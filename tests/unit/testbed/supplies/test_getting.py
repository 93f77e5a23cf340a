from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from testbed.supplies import binaries, debian, getting
from testbed.supplies.binaries import PROGRAMS, PROXY
from testbed.supplies.cache import Say
from testbed.supplies.versions import Version
from tests.unit.testbed.supplies.builders import MakePrograms, write_program
from tests.waiting import PATIENCE


def unexpected(_version: Version, _into: Path, _scratch: Path, _say: Say) -> str:
    pytest.fail("nothing is to be got")


def test_what_is_kept_is_used(make_programs: MakePrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    first = getting.get("1.20.2", getting.from_directory(make_programs()))
    monkeypatch.setattr("testbed.supplies.debian.build", unexpected)
    assert getting.get("1.20.2") == first


def test_with_a_source_what_is_kept_is_replaced(own_cache: Path, make_programs: MakePrograms) -> None:
    getting.get("1.20.2", getting.from_directory(make_programs(name="old")))
    new = getting.get("1.20.2", getting.from_directory(make_programs(name="new")))
    assert new.source.endswith("/new")
    assert binaries.find("1.20.2") == new
    assert sorted(path.name for path in own_cache.iterdir()) == ["1.20.2", "1.20.2.lock"]


def test_what_is_damaged_is_got_again(make_programs: MakePrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    given = make_programs()
    kept = getting.get("1.20.2", getting.from_directory(given))
    kept.path("kubelet").unlink()
    monkeypatch.setattr("testbed.supplies.debian.build", getting.from_directory(given))
    stages: list[str] = []
    getting.get("1.20.2", say=stages.append)
    assert stages[0].startswith("getting it again: ")
    assert "kubelet" in stages[0]
    assert binaries.find("1.20.2") == kept


def test_a_proxy_to_be_compared_with_is_built_once_and_kept_apart(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Kubernetes v1.20.3"

    def build(_version: Version, into: Path, _scratch: Path, _say: Say) -> str:
        write_program(into / PROXY, said)
        return "built"

    monkeypatch.setattr(debian, "build_proxy", build)
    with pytest.raises(LookupError, match=r"kube-proxy is not that of Kubernetes 1\.20\.2"):
        getting.proxy()
    said = "Kubernetes v1.20.2"
    kept = getting.proxy()
    monkeypatch.setattr(debian, "build_proxy", unexpected)
    assert getting.proxy() == kept == own_cache / "kube-proxy-1.20.2" / PROXY
    with pytest.raises(LookupError, match=r"no Kubernetes 1\.20\.2"):
        binaries.find("1.20.2")


def test_a_version_that_cannot_be_built_must_come_from_somewhere() -> None:
    with pytest.raises(LookupError, match=r"only 1\.20\.2 can be built here: say --download, or --from"):
        getting.get("1.27.3")


def test_a_directory_must_have_all_programs(make_programs: MakePrograms) -> None:
    given = make_programs()
    (given / "kubelet").unlink()
    (given / "kubeadm").unlink()
    with pytest.raises(LookupError, match=r"given has no kubelet, kubeadm \(needs kube-apiserver, "):
        getting.from_directory(given)


def test_programs_of_another_version_are_refused(own_cache: Path, make_programs: MakePrograms) -> None:
    # 1.20.21 begins like 1.20.2, and is another one.
    source = getting.from_directory(make_programs("1.20.21"))
    with pytest.raises(LookupError, match=r"not that of Kubernetes 1\.20\.2; it says: Kubernetes v1\.20\.21"):
        getting.get("1.20.2", source)
    assert [path.name for path in own_cache.iterdir()] == ["1.20.2.lock"]


def test_programs_of_another_machine_are_refused(make_programs: MakePrograms) -> None:
    given = make_programs()
    (given / "kubelet").write_bytes(b"\x7fELF of another machine")
    with pytest.raises(LookupError, match="kubelet does not run on this machine: "):
        getting.get("1.20.2", getting.from_directory(given))


def test_what_fails_leaves_what_was_kept(make_programs: MakePrograms) -> None:
    kept = getting.get("1.20.2", getting.from_directory(make_programs()))

    def interrupted(_version: Version, into: Path, _scratch: Path, _say: Say) -> str:
        write_program(into / PROGRAMS[0], "Kubernetes v1.20.2")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        getting.get("1.20.2", interrupted)
    assert binaries.find("1.20.2") == kept


def test_flanneld_is_kept_beside(make_programs: MakePrograms, tmp_path: Path) -> None:
    flanneld = tmp_path / "flanneld-amd64"
    write_program(flanneld, "v0.13.0")
    first = getting.get("1.20.2", getting.from_directory(make_programs()))
    second = getting.get("1.20.2", flanneld=flanneld)
    assert second.source == first.source
    assert second.path("flanneld").read_bytes() == flanneld.read_bytes()
    assert (first.flanneld, second.flanneld) == ("", "v0.13.0")
    assert binaries.find("1.20.2") == second
    assert getting.get("1.20.2") == second


def test_flanneld_is_no_longer_kept_when_it_shall_go(make_programs: MakePrograms, tmp_path: Path) -> None:
    flanneld = tmp_path / "flanneld"
    write_program(flanneld, "v0.13.0")
    without = getting.get("1.20.2", getting.from_directory(make_programs()))
    getting.get("1.20.2", flanneld=flanneld)
    assert getting.get("1.20.2", without_flanneld=True) == without
    assert binaries.find("1.20.2").programs == PROGRAMS
    assert not (without.directory / "flanneld").exists()


def test_a_flanneld_that_does_not_run_is_refused(make_programs: MakePrograms, tmp_path: Path) -> None:
    flanneld = tmp_path / "flanneld"
    flanneld.write_bytes(b"\x7fELF of another machine")
    kept = getting.get("1.20.2", getting.from_directory(make_programs()))
    with pytest.raises(LookupError, match="flanneld does not run on this machine: "):
        getting.get("1.20.2", flanneld=flanneld)
    assert binaries.find("1.20.2") == kept


def test_flanneld_comes_along_from_a_directory(make_programs: MakePrograms) -> None:
    given = make_programs()
    write_program(given / "flanneld", "v0.13.0")
    assert "flanneld" in getting.get("1.20.2", getting.from_directory(given)).programs


def test_a_missing_flanneld_is_an_error_before_anything_begins(own_cache: Path) -> None:
    with pytest.raises(LookupError, match="--flannel: no file /nowhere/flanneld"):
        getting.get("1.20.2", flanneld=Path("/nowhere/flanneld"))
    assert not own_cache.exists()


def get_once(given: Path, log: Path) -> None:
    """Get what is kept, or what a source that is slow gives; in a process of its own."""

    def slow(version: Version, into: Path, scratch: Path, say: Say) -> str:
        with log.open("a", encoding="utf-8") as out:
            out.write("began\n")
        assert not any(scratch.glob("programs/*"))
        return getting.from_directory(given)(version, into, scratch, say)

    debian.build = slow
    assert len(getting.get("1.20.2").programs) == len(PROGRAMS)


def test_two_at_once_get_it_once(make_programs: MakePrograms, tmp_path: Path) -> None:
    given, log = make_programs(), tmp_path / "log"
    fork = multiprocessing.get_context("fork")
    both = [fork.Process(target=get_once, args=(given, log)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(PATIENCE)
    assert [process.exitcode for process in both] == [0, 0]
    assert log.read_text(encoding="utf-8") == "began\n"
    assert binaries.find("1.20.2").directory.is_dir()


def test_what_a_killed_process_leaves_is_not_taken_for_complete(
    own_cache: Path, make_programs: MakePrograms
) -> None:
    given = make_programs()

    def die(_version: Version, into: Path, _scratch: Path, _say: Say) -> str:
        for program in PROGRAMS:
            write_program(into / program, "Kubernetes v1.20.2")
        os._exit(9)

    process = multiprocessing.get_context("fork").Process(target=getting.get, args=("1.20.2", die))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 9
    assert (own_cache / "1.20.2.unfinished").is_dir()
    with pytest.raises(LookupError):
        binaries.find("1.20.2")
    getting.get("1.20.2", getting.from_directory(given))
    assert not (own_cache / "1.20.2.unfinished").exists()


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
    monkeypatch.setenv(getting.SITE, f"http://127.0.0.1:{server.server_address[1]}/")
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
    got = getting.get("1.20.2", getting.download, say=stages.append)
    assert got.source.startswith("downloaded from http://127.0.0.1:")
    assert got.source.endswith("/v1.20.2/bin/linux/amd64")
    assert got.path("kubelet").read_bytes() == (released / "kubelet").read_bytes()
    assert [stage.rpartition("/")[2] for stage in stages[:-1]] == list(PROGRAMS)
    assert binaries.find("1.20.2") == got


def test_a_download_with_another_checksum_is_not_used(released: Path) -> None:
    (released / "kubelet.sha256").write_text("0" * 64, encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"kubelet has sha256 \w{64}, but 0{64} is published: not used"):
        getting.get("1.20.2", getting.download)
    with pytest.raises(LookupError):
        binaries.find("1.20.2")


@pytest.mark.parametrize("words", ["", "<html>", "ABCDEF"])
def test_what_is_published_must_be_a_checksum(released: Path, words: str) -> None:
    (released / "kubelet.sha256").write_text(words, encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"kubelet\.sha256 is not a checksum: "):
        getting.get("1.20.2", getting.download)


def test_a_version_that_was_not_released_is_an_error(site: Path) -> None:
    with pytest.raises(LookupError, match=r"--download: there is no http://.*/v1\.27\.99/bin/linux/"):
        getting.get("1.27.99", getting.download)


def test_without_the_site_the_message_says_what_else_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(getting.SITE, "http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match=r"Connection refused\. Without the internet: --build, or --from"):
        getting.get("1.20.2", getting.download)
