"""A recording as one file: what a run leaves, without the names of machines and people, packed.

``recording.tar.xz`` holds the scenario, the environment and ``raw/``, all below one directory that has the
run's id. The same recording gives the same bytes. Whatever else belongs to a recording is made from these
files by ``./invokew figures``. A study is packed as a directory: its index, one such file for each run, and
``measured.tar.xz`` with what it measured beside its recordings, if it did.

An archive may come from anywhere, so it is read as a whole before anything is written. Only plain files with
plain names are taken from it, and no more bytes than a recording may have.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from bench.recording import atomic, directory
from bench.recording.atomic import StoredError
from bench.recording.directory import BESIDE, CRATE, UNFINISHED, Recording, is_recording
from bench.recording.records import RunRecord, is_run_id
from testbed.scenario import texts

ARCHIVE = "recording.tar.xz"
MEASURED = f"{BESIDE}.tar.xz"
SCENARIO, ENVIRONMENT = "scenario.yaml", "environment.json"
RUN, ANALYSIS = "raw/run.json", "raw/analysis.json"
MOST_BYTES = texts.MOST_BYTES  # a repetition of the paper's experiments has 0.4 MB of output
# The dictionary of preset 9 takes 64 MiB (xz(1)).
MOST_MEMORY = 128 * 2**20
PRESET = 9 | lzma.PRESET_EXTREME
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_DEEPEST = 4  # raw/repetition-0/flow.receiver.json, and room for one more

Contents = dict[str, bytes]  # of files, by path
Counted = Callable[[int, int], None]


def pack(directory: Path, to: Path, counted: Counted = lambda *_: None) -> list[Path]:
    """Pack a recording, or every recording of a study and its index, into a directory; return the archives.

    ``counted`` is told how many recordings are packed, and of how many. Beside each archive is the run's
    ``summary.json``. Raises LookupError if there is nothing to pack, or other packed runs are there already;
    StoredError for a recording that is not as its run left it, or that was not analysed.
    """
    if directory.name.endswith(UNFINISHED):
        raise LookupError(f"{directory} is not finished")
    if to.resolve() == directory.resolve():
        raise LookupError(f"--to: {to} is what is to be packed")
    one = is_recording(directory)
    files = _packed(Recording(directory)) if one else _packed_study(directory, counted)
    archives = [to / path for path in files if PurePosixPath(path).name == ARCHIVE]
    if not archives:
        raise LookupError(f"{directory}: there is no recording")
    if others := sorted(set(_archives(to)) - set(archives)):
        raise LookupError(
            f"{to} has other packed recordings; remove them first: {', '.join(map(str, others))}"
        )
    for path, content in files.items():
        atomic.write(to / path, content)
    return archives


def find(run: str, reports: Path) -> Path | None:
    """Return the packed recording or study that a user means: a file, a directory, or one under ``reports``.

    None: there is no such thing, or it is not packed.
    """
    for place in (Path(run), reports / run):
        if texts.is_file(place) or is_packed(place):
            return place
    return None


def is_packed(directory: Path) -> bool:
    """Tell whether a directory has a packed recording, or a packed study's."""
    return not is_recording(directory) and bool(_archives(directory))


def unpack(packed: Path, reports: Path) -> Path:
    """Unpack a recording or a study into ``reports``, and return its directory there.

    A recording's has the run's id for its name, a study's the name it was packed under. If it is there
    already, with just these files, it is left as it is. Raises StoredError for what is no packed recording,
    LookupError if something else is in its place.
    """
    name, contents = _contents(packed)
    directory = reports / name
    if directory.exists():
        if not _holds(directory, contents):
            raise LookupError(f"{directory} already exists, and differs from {packed}; give other --reports")
        return directory
    reports.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=reports, prefix=".unpacking-") as scratch:
        whole = Path(scratch) / name
        for path, content in contents.items():
            atomic.write(whole / path, content)
        return whole.rename(directory)


def contents(archive: Path) -> Contents:
    """Return the files of one packed recording. Raises StoredError."""
    return _read(archive)[1]


def recordings(study: Path) -> list[Recording]:
    """Return the recordings that lie in a study's directory; what a run left that failed is none."""
    return [
        Recording(child)
        for child in _found(study, "*")
        if is_recording(child) and not child.name.endswith(UNFINISHED)
    ]


def to_pack(run: str, reports: Path) -> Path:
    """Return the directory of the recording or study that is meant. Raises LookupError."""
    studies = [place for place in (Path(run), reports / run) if recordings(place)]
    return studies[0] if studies else directory.find(run, reports).directory


def _packed_study(study: Path, counted: Counted) -> Contents:
    """Return the files that a study is packed as."""
    files = _nameless(study, _indexes(study))
    if measured := _nameless(study, _beside(study)):
        files[MEASURED] = _compressed(study, measured)
    runs = recordings(study)
    for number, recording in enumerate(runs, start=1):
        files |= _below(recording.directory.name, _packed(recording))
        counted(number, len(runs))
    return files


def _packed(recording: Recording) -> Contents:
    """Return the files that a recording is packed as."""
    record = recording.run_record()
    if changed := directory.faults(recording, record):
        raise StoredError(recording.directory, *changed)
    for file in (recording.summary_file, recording.analysis_file):
        if not texts.is_file(file):
            raise StoredError(file, f"there is none; make it: ./invokew figures {recording.directory}")
    contents = _nameless(recording.directory, (*directory.digests(recording), ANALYSIS))
    contents[RUN] = without_names(RUN, _sealed(recording, record, contents))
    if not is_run_id(record.run_id):
        raise StoredError(recording.directory, f"{record.run_id!r} is not a recording's name")
    return {
        ARCHIVE: _compressed(recording.directory, _below(record.run_id, contents)),
        **_nameless(recording.directory, [recording.summary_file.name]),
    }


def _sealed(recording: Recording, record: RunRecord, contents: Contents) -> bytes:
    """Return the run's record with the digests of what is packed."""
    digests = {path: hashlib.sha256(contents[path]).hexdigest() for path in record.files or ()}
    if not digests or digests == record.files:
        return _bytes(recording.run_file)
    sealed = record.model_copy(update={"files": digests})
    return atomic.model_bytes(sealed)


def _nameless(directory: Path, paths: Iterable[str]) -> Contents:
    return {path: without_names(path, _bytes(directory / path)) for path in paths}


def _compressed(directory: Path, contents: Contents) -> bytes:
    """Return an archive with nothing of a machine or a moment in it: neither owners nor times."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted(contents.items()):
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    if out.tell() > MOST_BYTES:
        raise StoredError(directory, f"it is too large to be packed: over {MOST_BYTES} bytes")
    return lzma.compress(out.getvalue(), format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=PRESET)


def _contents(packed: Path) -> tuple[str, Contents]:
    """Return what is packed as a name and files."""
    if texts.is_file(packed):
        return _read(packed)
    if texts.is_file(packed / ARCHIVE):
        return _read(packed / ARCHIVE)
    name = packed.resolve().name
    if not _NAME.fullmatch(name) or name == directory.LATEST or name.endswith(UNFINISHED):
        raise StoredError(packed, f"a study cannot be called {name!r}; give its directory another name")
    # Studies were packed with the files themselves below measured/ before.
    contents = {path: _bytes(packed / path) for path in (*_indexes(packed), *_beside(packed))}
    if texts.is_file(packed / MEASURED):
        contents |= _measured(packed / MEASURED)
    for archive in _archives(packed):
        if not is_run_id(archive.parent.name):
            raise StoredError(archive, f"{archive.parent.name!r} is not a recording's name")
        contents |= _below(archive.parent.name, _read(archive)[1])
    return name, contents


def _read(archive: Path) -> tuple[str, Contents]:
    """Return the run's id and the files of a packed recording. Raises StoredError."""
    names, contents = _unpacked(archive)
    missing = sorted({SCENARIO, RUN} - contents.keys())
    if missing or len(names) != 1:
        lacks = f"it has no {missing[0]}" if missing else "it has several directories"
        raise StoredError(archive, f"no packed recording: {lacks}")
    (name,) = names
    if not is_run_id(name):
        raise StoredError(archive, f"no packed recording: {name!r} is not a recording's name")
    return name, contents


def _measured(archive: Path) -> Contents:
    """Return what a packed study measured beside its recordings. Raises StoredError."""
    names, contents = _unpacked(archive)
    if names != {BESIDE}:
        raise StoredError(archive, f"no packed recording: it is not a directory {BESIDE!r}")
    return _below(BESIDE, contents)


def _unpacked(archive: Path) -> tuple[set[str], Contents]:
    """Return the directories at the top of an archive, and the files by their paths within these."""
    names: set[str] = set()
    contents: Contents = {}
    try:
        for path, content in _members(_decompressed(_bytes(archive))):
            name, _, rest = path.partition("/")
            names.add(name)
            contents[rest] = content
    except (_ForeignError, lzma.LZMAError, tarfile.TarError, ValueError) as error:
        raise StoredError(archive, f"no packed recording: {error}") from None
    return names, contents


class _ForeignError(Exception):
    """Something that we do not pack; the message says what."""


def _decompressed(content: bytes) -> bytes:
    decompressor = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
    found = decompressor.decompress(content, max_length=MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise _ForeignError(f"it holds more than {MOST_BYTES} bytes")
    if not decompressor.eof:
        raise _ForeignError("it is cut off")
    return found


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of a tar archive."""
    files: set[str] = set()
    directories: set[str] = set()
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        for member in tar:
            if member.isdir():  # as tar(1) has them; ours come with their files
                continue
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
                raise _ForeignError(f"{member.name!r} is not a regular file")
            _check_path(member.name)
            if member.name in files:
                raise _ForeignError(f"{member.name!r} is there twice")
            files.add(member.name)
            directories |= {str(parent) for parent in PurePosixPath(member.name).parents}
            stream = tar.extractfile(member)
            yield member.name, stream.read() if stream else b""
    if both := sorted(files & directories):
        raise _ForeignError(f"{both[0]!r} is both a file and a directory")


def _check_path(path: str) -> None:
    top, *parts = path.split("/")
    plain = all(_NAME.fullmatch(part) for part in path.split("/"))
    expected = parts[:1] == ["raw"] or (len(parts) == 1 and parts[0].endswith((".yaml", ".json")))
    expected |= top == BESIDE and path.endswith(".json")
    if not plain or not expected or len(parts) > _DEEPEST:
        raise _ForeignError(f"{path!r} is not a file of a recording")


def _holds(directory: Path, contents: Mapping[str, bytes]) -> bool:
    """Tell whether all these files are in a directory, as they are here."""
    try:
        return all(texts.read_bytes(directory / path) == content for path, content in contents.items())
    except texts.TextError:
        return False


def _archives(directory: Path) -> list[Path]:
    """Return the packed recordings in a directory: its own, or those of a study's runs."""
    own = directory / ARCHIVE
    return [own] if texts.is_file(own) else _found(directory, f"*/{ARCHIVE}")


def _indexes(study: Path) -> list[str]:
    """Return the paths of a study's index, and of what was asked for."""
    return [file.name for file in _found(study, "*.json") if file.name != CRATE]


def _beside(study: Path) -> list[str]:
    """Return the paths of what a study measured beside its recordings."""
    files = [*_found(study, f"{BESIDE}/*.json"), *_found(study, f"{BESIDE}/*/*.json")]
    return [str(file.relative_to(study)) for file in files]


def _found(directory: Path, pattern: str) -> list[Path]:
    """Return what a directory has; what is no name for the system has nothing."""
    try:
        return sorted(directory.glob(pattern))
    except (OSError, ValueError):
        return []


def _below(directory: str, contents: Contents) -> Contents:
    return {f"{directory}/{path}": content for path, content in contents.items()}


def _bytes(file: Path) -> bytes:
    try:
        return texts.read_bytes(file)
    except texts.TextError as error:
        raise StoredError(file, str(error)) from None


# iperf3 begins with uname(2): system, host name, release, version, machine.
_IPERF3 = (re.compile(r'("system_info":\s*"\S+ )\S+'), r"\1host")
# What bench.measurement.neighbours notes.
_NEIGHBOUR = (re.compile(r'(process \d+ of user )[^\s";]+'), r"\1unnamed")
_HOME = (re.compile(r"(?<![\w./-])(?:/(?:home|Users)/[^/\s\"']+|/root(?=/))"), "~")
# What a cluster's API says of a node (testbed.clusters.survey): its names, and what is unique to a machine.
_NODES = (
    (re.compile(r'("name":\s*)"[^"]*"(?=,\s*"addresses")'), r'\1"host"'),
    (re.compile(r'("(?:Hostname|InternalDNS|ExternalDNS)":\s*)"[^"]*"'), r'\1"host"'),
    (re.compile(r'("(?:machineID|systemUUID|bootID)":\s*)"[^"]*"'), r'\1""'),
)
# An inventory or a kubeconfig: of an absolute path, the name of the file.
_PATH = (re.compile(r'(?<=["=:,\s])[/~](?:[^/"=:,\s]*/)+(?=[^/"=:,\s])'), "")

_ENVIRONMENT = "environment.json"
_OF_THE_RUN = ("raw/run.json", "summary.json")  # what came of it, and no path that it was given


def without_names(path: str, content: bytes) -> bytes:
    """Return the content of a recording's file without names; ``path`` is the file's within the recording."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:  # nothing that we could read names in
        return content
    for pattern, replacement in _masks(path):
        text = pattern.sub(replacement, text)
    return text.encode()


def _masks(path: str) -> Iterator[tuple[re.Pattern[str], str]]:
    yield from (_IPERF3, _NEIGHBOUR, _HOME)
    if path == _ENVIRONMENT:
        yield from _NODES
    elif _says_how_it_was_begun(path):
        yield _PATH


def _says_how_it_was_begun(path: str) -> bool:
    """Tell whether a file holds what the run was given: it lies beside the run's record, or at the top."""
    where = PurePosixPath(path)
    return where.suffix == ".json" and str(where.parent) in (".", "raw") and path not in _OF_THE_RUN
