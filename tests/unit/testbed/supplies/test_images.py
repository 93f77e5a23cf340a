from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed.resources import version
from testbed.supplies import images
from testbed.supplies.images import Entry

LDD = """\
\tlinux-vdso.so.1 (0x00007fa6c67fc000)
\tlibiperf.so.0 => /lib/x86_64-linux-gnu/libiperf.so.0 (0x00007fa6c67b4000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fa6c65d2000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007fa6c67fe000)
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that need no libraries, so that the tests need no packages."""
    directory = tmp_path / "tools"
    directory.mkdir()
    for name in images.TOOLS:
        (directory / name).write_text(f"#!/bin/sh\necho {name}\n", encoding="utf-8")
        (directory / name).chmod(0o755)
    monkeypatch.setattr(images, "SEARCHED", str(directory))
    return directory


def opened(archive: Path) -> tuple[dict[str, Any], tarfile.TarFile]:
    """Return an image's configuration and its layer, found as a runtime finds them."""
    with tarfile.open(archive) as tar:

        def blob(described: dict[str, Any]) -> bytes:
            stream = tar.extractfile(f"blobs/{described['digest'].replace(':', '/')}")
            assert stream is not None
            data = stream.read()
            assert len(data) == described["size"]
            return data

        index = tar.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
        manifest = json.loads(blob(entry))
        (layer,) = manifest["layers"]
        return json.loads(blob(manifest["config"])), tarfile.open(fileobj=io.BytesIO(blob(layer)))


def test_libraries_and_loader_are_found_in_what_ldd_prints() -> None:
    assert images.libraries(LDD) == [
        "/lib/x86_64-linux-gnu/libiperf.so.0",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib64/ld-linux-x86-64.so.2",
    ]
    assert images.libraries("\tnot a dynamic executable\n") == []


def test_a_real_program_brings_its_libraries() -> None:
    paths = [entry.path for entry in images.programs({"sh": "dash"})]
    assert "usr/bin/sh" in paths
    assert any("/libc.so" in path for path in paths)
    assert any("/ld-" in path for path in paths)


def test_equal_programs_make_equal_images(tools: Path) -> None:
    first = [(image, image.archive.read_bytes()) for image in images.provide()]
    for name in images.TOOLS:
        (tools / name).touch()
    assert [(image, image.archive.read_bytes()) for image in images.provide()] == first


def test_another_program_makes_another_image(tools: Path) -> None:
    before = {image.name: image.digest for image in images.provide()}
    (tools / "iperf3").write_text("#!/bin/sh\necho a later release\n", encoding="utf-8")
    after = {image.name: image.digest for image in images.provide()}
    assert before[images.PAUSE] == after[images.PAUSE]
    assert before[images.TRAFFIC] != after[images.TRAFFIC]


@pytest.mark.usefixtures("tools")
def test_an_image_holds_its_programs_and_waits(own_cache: Path) -> None:
    pause, traffic = images.provide()
    assert [pause.archive, traffic.archive] == [
        own_cache / "images" / f"pause-{version()}.tar",
        own_cache / "images" / f"traffic-{version()}.tar",
    ]
    configuration, layer = opened(traffic.archive)
    assert configuration["config"]["Entrypoint"] == ["/usr/bin/catatonit", "-P"]
    assert {f"usr/bin/{name}" for name in images.TOOLS} <= set(layer.getnames())
    assert layer.getmember("usr/bin/iperf3").mode == 0o755
    assert layer.getmember("tmp").mode == 0o1777
    assert layer.getmember("bin").linkname == "usr/bin"
    _, layer = opened(pause.archive)
    assert layer.getnames() == ["usr", "usr/bin", "usr/bin/catatonit"]


@pytest.mark.usefixtures("tools")
def test_only_whole_images_are_left(own_cache: Path) -> None:
    images.provide()
    kept = sorted(path.name for path in (own_cache / "images").iterdir())
    assert kept == [f"pause-{version()}.tar", f"traffic-{version()}.tar"]


def test_a_missing_program_names_its_package(tools: Path) -> None:
    (tools / "iperf3").unlink()
    with pytest.raises(LookupError, match=r"need the program iperf3: apt-get install iperf3"):
        images.provide()


def test_an_archive_says_nothing_of_who_made_it_and_when() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.render_tar([Entry("a/b/c", b"text")]))) as tar:
        assert [member.name for member in tar] == ["a", "a/b", "a/b/c"]
        assert {(member.mtime, member.uid, member.gid, member.uname) for member in tar} == {(0, 0, 0, "")}


def test_a_directory_keeps_the_mode_it_was_given() -> None:
    entries = [Entry("tmp", mode=0o1777, kind=tarfile.DIRTYPE), Entry("tmp/file")]
    with tarfile.open(fileobj=io.BytesIO(images.render_tar(entries))) as tar:
        assert [(member.name, member.mode) for member in tar] == [("tmp", 0o1777), ("tmp/file", 0o644)]
