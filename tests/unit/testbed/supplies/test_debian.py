from __future__ import annotations

import os
import select
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.access.place import CommandError
from testbed.supplies import debian
from testbed.supplies.versions import Version
from tests.waiting import PATIENCE

URIS = """\
Reading package lists...
'http://mirror/pool/k/kubernetes_1.20.5%2breally1.20.2-1.1%2bdeb12u1.dsc' \
kubernetes_1.20.5+really1.20.2-1.1+deb12u1.dsc 1973 SHA256:00
'http://mirror/pool/k/kubernetes_1.20.5%2breally1.20.2.orig.tar.gz' \
kubernetes_1.20.5+really1.20.2.orig.tar.gz 34428927 SHA256:00
"""


def test_package_sources_become_sources_of_source_packages(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://commented/ x main\ndeb [signed-by=/k] http://one/ x main\ndeb-src http://two/ x main\n",
        encoding="utf-8",
    )
    (parts / "debian.sources").write_text("Types: deb deb-src\nURIs: http://three/\n", encoding="utf-8")
    (parts / "switched.off").write_text("deb http://four/ x main\n", encoding="utf-8")
    assert debian.source_lists(tmp_path) == {
        "sources.list": "deb-src [signed-by=/k] http://one/ x main\n",
        "debian.sources": "Types: deb-src\nURIs: http://three/\n",
    }


def test_the_package_is_known_by_what_apt_prints() -> None:
    assert debian.package_version(URIS) == "1.20.5+really1.20.2-1.1+deb12u1"
    assert debian.package_version("E: Unable to find a source package for kubernetes\n") is None


@pytest.mark.parametrize(
    ("package", "upstream"),
    [("1.20.5+really1.20.2-1.1+deb12u1", "1.20.2"), ("1.32.3+ds-2", "1.32.3+ds"), ("1.20.2-1", "1.20.2")],
)
def test_a_package_tells_which_kubernetes_it_is(package: str, upstream: str) -> None:
    assert debian.upstream_version(package) == upstream


def test_packages_with_described_types_are_found(tmp_path: Path) -> None:
    def write(file: str, text: str = "// +k8s:openapi-gen=true\npackage x\n") -> None:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")

    for top in ("cmd", "plugin"):
        (tmp_path / top).mkdir()
    write("pkg/apis/doc.go")
    write("pkg/apis/types.go")
    write("pkg/other/doc.go", "package other\n")
    write("pkg/tests/a_test.go")
    write("pkg/generated/zz_generated.go")
    write("staging/src/k8s.io/api/core/v1/doc.go")
    write("staging/src/k8s.io/code-generator/examples/doc.go")
    assert debian.described_packages(tmp_path) == [
        "k8s.io/kubernetes/pkg/apis",
        "k8s.io/kubernetes/vendor/k8s.io/api/core/v1",
    ]


def test_the_programs_are_told_their_version() -> None:
    flags = debian.linker_flags(Version(20, 2))
    assert "-X k8s.io/kubernetes/vendor/k8s.io/component-base/version.gitVersion=v1.20.2 " in flags


def test_a_failing_step_shows_its_last_lines(tmp_path: Path) -> None:
    script = "for line in $(seq 100); do echo line $line; done; exit 3"
    with pytest.raises(CommandError) as caught:
        debian.Workshop(tmp_path).run(["sh", "-c", script])
    assert "ended with 3: line 86\n" in str(caught.value)
    assert str(caught.value).endswith("\nline 100")


def test_an_interrupted_step_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes while the step is waited for, once all of its processes are there."""
    os.mkfifo(tmp_path / "there")
    wait, waiting = subprocess.Popen.wait, [True]

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if waiting and waiting.pop():
            (tmp_path / "there").read_bytes()
            raise KeyboardInterrupt
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    script = "echo $$; sleep 60 & echo $!; : >there; wait"
    with pytest.raises(KeyboardInterrupt):
        debian.Workshop(tmp_path).run(["sh", "-c", script])
    shell, child = (tmp_path / "log").read_text(encoding="utf-8").split()
    assert ended(int(shell))
    assert ended(int(child))


def ended(pid: int) -> bool:
    """Wait until a process has ended, whether or not somebody has asked for its status."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE)[0])
    finally:
        os.close(descriptor)


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")
@pytest.mark.parametrize(
    ("sources", "error", "words"),
    [
        ("", LookupError, r"have nothing of Kubernetes' source, and not 1\.20\.2"),
        ("deb file:/nowhere x main\n", RuntimeError, r"cannot read the package sources:\n[EW]: .*/nowhere"),
    ],
)
def test_without_debians_source_the_message_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: str, error: type[Exception], words: str
) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(sources, encoding="utf-8")
    monkeypatch.setattr(debian, "SOURCES", tmp_path)
    (tmp_path / "scratch").mkdir()
    with pytest.raises(error, match=words):
        debian.Workshop(tmp_path / "scratch").fetch_source(Version(20, 2))
