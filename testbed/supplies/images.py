"""The container images of the pods, assembled from this machine's programs: no registry, no builder.

An image is a tar archive in OCI's layout (github.com/opencontainers/image-spec) with one layer: programs, the
libraries that the loader finds for them, and little else. Nothing in it depends on when, where or by whom it
was assembled, so equal programs make equal digests.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from testbed import resources
from testbed.access import scratch
from testbed.access.local import ENVIRONMENT
from testbed.supplies import cache, packages
from testbed.supplies.binaries import architecture

# A site that does not exist: these images are imported, never pulled.
PAUSE = f"testbed.local/pause:{resources.version()}"
TRAFFIC = f"testbed.local/traffic:{resources.version()}"

# Waits for SIGTERM as process 1 and reaps orphans, which is all that a pod's first container is for.
WAITING = "catatonit"
# What the testbed runs in a pod, and what a person needs there to look around; each with its Debian package.
TOOLS = {
    WAITING: "catatonit",
    "iperf3": "iperf3",
    "ip": "iproute2",
    "ss": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "ping": "iputils-ping",
    "getent": "libc-bin",
    "sh": "dash",
    "cat": "coreutils",
    "chroot": "coreutils",
    "env": "coreutils",
    "head": "coreutils",
    "ls": "coreutils",
    "sleep": "coreutils",
    "grep": "grep",
}
SEARCHED = ENVIRONMENT["PATH"]
PROGRAMS = "usr/bin"  # in an image
LINK, DIRECTORY = tarfile.SYMTYPE, tarfile.DIRTYPE

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
NAME_ANNOTATION = "io.containerd.image.name"  # what ``ctr images import`` calls it


@dataclass(frozen=True)
class Image:
    """An image as ``ctr images import`` takes it."""

    name: str
    archive: Path
    digest: str  # of its manifest; what containerd shows


@dataclass(frozen=True)
class Entry:
    """A file, a directory or a link of a tar archive; ``path`` is relative."""

    path: str
    data: bytes = b""
    mode: int = 0o644
    kind: bytes = tarfile.REGTYPE
    target: str = ""


@dataclass(frozen=True)
class Start:
    """What an image's containers run, in which directory, and what is in their environment besides PATH."""

    entrypoint: tuple[str, ...]
    directory: str = "/"
    environment: tuple[str, ...] = ()


WAIT = Start((f"/{PROGRAMS}/{WAITING}", "-P"))


def provide() -> list[Image]:
    """Assemble the pods' images and return them; raises LookupError if a program of theirs is missing.

    That takes less than a second, so it is done each time: the images are always of the programs that are
    installed now.
    """
    return [assemble(PAUSE, pause_files()), assemble(TRAFFIC, traffic_files())]


def pause_files() -> list[Entry]:
    """Return the files of a pod's first container, which holds its namespaces."""
    return programs({WAITING: TOOLS[WAITING]})


def traffic_files() -> list[Entry]:
    """Return the files of the containers that send and receive."""
    return [
        Entry("tmp", mode=0o1777, kind=tarfile.DIRTYPE),  # where iperf3 makes its buffers
        Entry("root", mode=0o700, kind=tarfile.DIRTYPE),
        Entry("bin", kind=LINK, target=PROGRAMS),
        Entry("sbin", kind=LINK, target=PROGRAMS),
        Entry("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"),
        Entry("etc/group", b"root:x:0:\n"),
        *programs(TOOLS),
    ]


def render(name: str, files: Iterable[Entry], start: Start = WAIT) -> tuple[bytes, str]:
    """Return an image as an archive in OCI's layout, and the digest of its manifest."""
    layer = render_tar(files)
    config = _configuration(layer, start)
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _described(CONFIG_TYPE, config),
            "layers": [_described(LAYER_TYPE, layer)],
        }
    )
    entry = {**_described(MANIFEST_TYPE, manifest), "annotations": {NAME_ANNOTATION: name}}
    blobs = {f"blobs/{_digest(blob).replace(':', '/')}": blob for blob in (manifest, config, layer)}
    _, configuration, content = blobs
    archive = render_tar(
        [
            Entry("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
            Entry("index.json", _json({"schemaVersion": 2, "manifests": [entry]})),
            # What `docker load` reads before Docker 25, which was the first to know OCI's layout.
            Entry(
                "manifest.json", _json([{"Config": configuration, "Layers": [content], "RepoTags": [name]}])
            ),
            *(Entry(path, blob) for path, blob in blobs.items()),
        ]
    )
    return archive, _digest(manifest)


def _configuration(layer: bytes, start: Start) -> bytes:
    return _json(
        {
            "architecture": architecture(),
            "os": "linux",
            "config": {
                "Entrypoint": list(start.entrypoint),
                "Env": [f"PATH=/{PROGRAMS}", *start.environment],
                **({"WorkingDir": start.directory} if start.directory != "/" else {}),
            },
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )


def render_tar(entries: Iterable[Entry]) -> bytes:
    """Return a tar archive in which everything is root's and of 1970, with the directories it needs."""
    buffer = io.BytesIO()
    made = {"."}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in entries:
            above = [str(parent) for parent in PurePosixPath(entry.path).parents]
            parents = [path for path in reversed(above) if path not in made]
            made.update([*parents, entry.path])
            for one in [*(Entry(path, mode=0o755, kind=tarfile.DIRTYPE) for path in parents), entry]:
                _add(tar, one)
    return buffer.getvalue()


def libraries(listing: str) -> list[str]:
    """Return the files in what ``ldd`` printed: libraries, and the loader itself."""
    return re.findall(r"(/\S+) \(0x", listing)


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.path)
    info.type, info.mode, info.size, info.linkname = entry.kind, entry.mode, len(entry.data), entry.target
    tar.addfile(info, io.BytesIO(entry.data))


def programs(tools: Mapping[str, str], others: Sequence[Path] = ()) -> list[Entry]:
    """Return programs of this machine, given with their packages, and their libraries, which keep places.

    ``others`` are programs and libraries that get into the image by themselves, and need libraries, too.
    """
    files: dict[str, str] = {}
    for name, package in tools.items():
        program = shutil.which(name, path=SEARCHED)
        if program is None:
            raise LookupError(f"the images need the program {name}: apt-get install {package}")
        files[f"{PROGRAMS}/{name}"] = program
        files.update({library.lstrip("/"): library for library in libraries(_ldd(program))})
    if others:
        known = {os.path.realpath(other) for other in others}
        needed = libraries(_ldd(*map(str, others)))
        files.update({path.lstrip("/"): path for path in needed if os.path.realpath(path) not in known})
    return [Entry(path, Path(file).read_bytes(), mode=0o755) for path, file in sorted(files.items())]


def of_package(package: str, program: str, tools: Mapping[str, str]) -> Iterator[Entry]:
    """Yield a program of a package that may be unpacked alone, and what ``tools`` are to ``programs``.

    Raises LookupError for a program that is not there.
    """
    own, brought = packages.unpacked(package, program)
    yield from programs(tools, [own, *brought.values()])
    yield Entry(f"{PROGRAMS}/{program}", own.read_bytes(), mode=0o755)
    for path, library in brought.items():
        yield Entry(path, library.read_bytes())


def _ldd(*programs: str) -> str:
    """Return what the loader would load; nothing of programs that need no libraries."""
    done = subprocess.run(["ldd", *programs], capture_output=True, encoding="utf-8", env={"LC_ALL": "C"})
    return done.stdout


def assemble(name: str, files: Iterable[Entry], start: Start = WAIT) -> Image:
    """Write an image beside its place and move it there: whoever reads has the old one or the new one."""
    directory = cache.root() / "images"
    directory.mkdir(parents=True, exist_ok=True)
    data, digest = render(name, files, start)
    archive = directory / f"{name.rpartition('/')[2].replace(':', '-')}.tar"
    with TemporaryDirectory(dir=directory) as beside:
        written = Path(beside) / archive.name
        written.write_bytes(data)
        written.replace(archive)
    return Image(name, archive, digest)


def _described(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


# The installer's image: the plugin, the script that puts it on a node, and the programs that takes. Manifests
# that use it are in ``plugin/deploy``; see docs/howto/existing-clusters.md.
INSTALLER = f"testbed.local/concorde:{resources.version()}"
INSTALLER_SCRIPT = resources.PLUGIN / "deploy" / "install.sh"
HOME = "opt/concorde"  # in the installer's image
INSTALLER_TOOLS = {
    WAITING: "catatonit",
    "sh": "dash",
    "cmp": "diffutils",
    "grep": "grep",
    **dict.fromkeys(
        ("cat", "chmod", "chroot", "cp", "head", "ls", "mkdir", "mv", "rm", "rmdir", "sleep", "sort", "sync"),
        "coreutils",
    ),
}


def provide_installer() -> Image:
    """Build the plugin and assemble the installer's image; raises LookupError if a program is missing."""
    with scratch.directory() as built:
        resources.build_plugin(built)
        return assemble(INSTALLER, installer_files(built))


def installer_files(built: Path) -> list[Entry]:
    """Return the files of the installer's image, given the directory of a built plugin."""
    own = [
        Entry(f"{HOME}/{path.relative_to(built)}", path.read_bytes(), mode=path.stat().st_mode & 0o777)
        for path in sorted(built.rglob("*"))
        if path.is_file()
    ]
    return [
        Entry("bin", kind=LINK, target=PROGRAMS),
        Entry(f"{HOME}/install.sh", INSTALLER_SCRIPT.read_bytes(), mode=0o755),
        *own,
        *programs(INSTALLER_TOOLS),
    ]
