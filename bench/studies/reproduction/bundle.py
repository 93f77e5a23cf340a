"""One archive to deposit: the project at a commit, its recordings, what they are, and a digest of each file.

The source is git's, so what is not committed is not in it. With the same commit and the same recordings the
archive has the same bytes. Unpacked, it needs no git: whatever is made of recordings can be made there again.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from bench.recording import archive, atomic
from bench.recording.atomic import StoredError
from bench.recording.directory import CRATE, Recording

SUFFIX = ".tar.xz"
SUMS = "SHA256SUMS"  # as sha256sum(1) reads it
REPORTS = "reports"


@dataclass(frozen=True)
class Member:
    """A file of the archive."""

    content: bytes
    executable: bool = False


Members = Mapping[str, Member]  # by path


@dataclass(frozen=True)
class Source:
    """The project at a commit."""

    commit: str
    changed: bool  # whether the working tree has something else
    members: Members


def source(home: Path) -> Source:
    """Return the project as its last commit has it. Raises LookupError where git knows of none."""
    commit = _git(home, "rev-parse", "HEAD").decode().strip()
    changed = bool(_git(home, "status", "--porcelain", "--", "."))
    members = {}
    with tarfile.open(fileobj=io.BytesIO(_git(home, "archive", "--format=tar", "HEAD"))) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is not None:
                members[member.name] = Member(stream.read(), bool(member.mode & 0o100))
    return Source(commit, changed, members)


def _git(home: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(home), *arguments], capture_output=True, check=False)
    except OSError as error:
        raise LookupError(
            f"{home}: what is at the last commit cannot be read: git: {error.strerror}"
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise LookupError(f"{home}: what is at the last commit cannot be read; is it a checkout? {said}")
    return done.stdout


def packed(directories: Iterable[Path]) -> Members:
    """Return recordings and studies of one's own, packed, by path in the bundle.

    Raises LookupError for one that cannot be packed, see ``archive.pack``.
    """
    members = {}
    with tempfile.TemporaryDirectory(prefix="bundle-") as scratch:
        for directory in directories:
            to = Path(scratch) / directory.resolve().name
            archive.pack(directory, to)
            for file in filter(Path.is_file, to.rglob("*")):
                members[f"{REPORTS}/{file.relative_to(scratch).as_posix()}"] = Member(file.read_bytes())
    return members


def render(commit: str, members: Members) -> bytes:
    """Return the archive of these files, with the crate and the digests.

    Raises LookupError if there is no recording among them, or one that cannot be read.
    """
    name = f"concorde-testbed-{commit[:12]}"
    whole = {**members, CRATE: Member(_crate(name, commit, members))}
    whole[SUMS] = Member(_sums(whole))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, member in sorted(whole.items()):
            info = tarfile.TarInfo(f"{name}/{path}")
            info.size, info.mode = len(member.content), 0o755 if member.executable else 0o644
            tar.addfile(info, io.BytesIO(member.content))
    return lzma.compress(out.getvalue(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=archive.PRESET)


def _sums(members: Members) -> bytes:
    lines = [f"{hashlib.sha256(members[path].content).hexdigest()}  {path}\n" for path in sorted(members)]
    return "".join(lines).encode()


def _crate(name: str, commit: str, members: Members) -> bytes:
    """Return what tells other people's programs of the files, and of the runs that the recordings are of."""
    from bench.presentation import crate
    from bench.presentation.crate import Action, Program

    archives = [
        path for path in sorted(members) if PurePosixPath(path).name in (archive.PACKED, archive.ARCHIVE)
    ]
    if not archives:
        raise LookupError(f"commit {commit} has no recording; put one of yours in: --run RUN")
    with tempfile.TemporaryDirectory(prefix="bundle-") as scratch:
        recordings = {path: _unpacked(path, members[path].content, Path(scratch)) for path in archives}
        programs, actions = dict[str, Program](), list[Action]()
        for path, recording in [(path, one) for path, found in recordings.items() for one in found]:
            used = crate.programs(recording)
            programs |= {program.id: program for program in used}
            run, analysis = crate.actions(recording, recording.run_record(), used[0], (), ())
            names = (archive.TABLE, recording.summary_file.name)
            beside = {str(PurePosixPath(path).with_name(name)) for name in names} & members.keys()
            actions.append(replace(run, used=(), made=[path]))
            if beside:
                actions.append(replace(analysis, used=[path], made=sorted(beside)))
    words = f"The Concorde testbed at commit {commit}, and recordings of its runs"
    return crate.render(name, words, [*members, SUMS], programs.values(), actions)


def _unpacked(path: str, content: bytes, scratch: Path) -> list[Recording]:
    file = scratch / path
    atomic.write(file, content)
    try:
        found = archive.packed_recordings(file)
    except StoredError as error:
        raise LookupError(str(error).replace(f"{scratch}/", "")) from None
    for name, contents in found.items():
        for part, content in contents.items():
            atomic.write(file.parent / name / part, content)
    return [Recording(file.parent / name) for name in found]
