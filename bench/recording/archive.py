"""Recordings as one file: what runs leave, without the names of machines and people, packed.

``packed.xz`` holds of each run the scenario, the environment and ``raw/``, below a directory that has the
run's id, and below ``measured/`` what a study measured beside its runs, as ``columns.py`` writes them. The
same recording gives the same bytes. Beside it are a study's index and ``verdicts.json``, the table of what is
made of the recordings. Whatever else belongs to them is made of these files by ``./invokew figures``.

Before, each recording was a tar archive of its own, ``recording.tar.xz``, and what a study measured beside
them was ``measured.tar.xz``, or lay there unpacked; that is read as ever.

A packed file may come from anywhere, so it is read as a whole before anything is written. Only plain files
with plain names are taken from it, and no more bytes than a recording may have.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

from bench.recording import atomic, directory
from bench.recording.atomic import StoredError
from bench.recording.directory import BESIDE, CRATE, UNFINISHED, Recording, is_recording
from bench.recording.records import RunRecord, is_run_id
from testbed.scenario import texts

PACKED = "packed.xz"
TABLE = "verdicts.json"
ARCHIVE = "recording.tar.xz"
MEASURED = f"{BESIDE}.tar.xz"
SCENARIO, ENVIRONMENT = "scenario.yaml", "environment.json"
RUN, ANALYSIS = "raw/run.json", "raw/analysis.json"
MOST_BYTES = texts.MOST_BYTES  # a repetition of the paper's experiments has 0.4 MB of output
# The dictionary of preset 9 takes 64 MiB (xz(1)).
MOST_MEMORY = 128 * 2**20
PRESET = 9 | lzma.PRESET_EXTREME
# What is not text is integers of any length: no byte's place says anything, and the byte before little.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": PRESET, "lc": 1, "lp": 0, "pb": 0}]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_DEEPEST = 4  # raw/repetition-0/flow.receiver.json, and room for one more

Contents = dict[str, bytes]  # of files, by path
Counted = Callable[[int, int], None]


def pack(directory: Path, to: Path, counted: Counted = lambda *_: None) -> Path:
    """Pack a recording, or the recordings of a study and its index, into a directory; return the packed file.

    ``counted`` is told how many recordings are ready to be packed, and of how many. Raises LookupError if
    there is nothing to pack, or other packed runs are there already; StoredError for a recording that is not
    as its run left it, or that was not analysed.
    """
    if directory.name.endswith(UNFINISHED):
        raise LookupError(f"{directory} is not finished")
    if to.resolve() == directory.resolve():
        raise LookupError(f"--to: {to} is what is to be packed")
    one = is_recording(directory)
    runs = [Recording(directory)] if one else recordings(directory)
    if not runs:
        raise LookupError(f"{directory}: there is no recording")
    _refuse_others(to)
    beside = {} if one else _nameless(directory, _indexes(directory))
    files = {path: without_results(content) for path, content in beside.items()}
    contents = {} if one else _nameless(directory, _beside(directory))
    summaries: list[bytes] = []
    for number, recording in enumerate(runs, start=1):
        name, packed = _packed(recording)
        contents |= _below(name if one else recording.directory.name, packed)
        summaries += _nameless(recording.directory, [recording.summary_file.name]).values()
        counted(number, len(runs))
    files |= {PACKED: _compressed(directory, contents), TABLE: table(summaries)}
    for path, content in files.items():
        atomic.write(to / path, content)
    return to / PACKED


def _refuse_others(to: Path) -> None:
    if others := sorted({*_archives(to), *_found(to, f"*/{PACKED}")}):
        raise LookupError(
            f"{to} has other packed recordings; remove them first: {', '.join(map(str, others))}"
        )


def table(summaries: Iterable[bytes]) -> bytes:
    """Return the table of packed recordings, of each one's ``summary.json``: what it says, and its digest."""
    rows = []
    for content in summaries:
        said = json.loads(content)
        row = {key: said[key] for key in ("run_id", "title", "verdict")}
        rows.append({**row, "sha256": hashlib.sha256(content).hexdigest()})
    return (json.dumps(sorted(rows, key=lambda row: row["run_id"]), indent=1) + "\n").encode()


def without_results(index: bytes) -> bytes:
    """Return a study's index without what is made of its recordings."""
    data = json.loads(index)
    if not isinstance(data, dict) or not data.get("results"):
        return index
    return (json.dumps(data | {"results": []}, indent=1) + "\n").encode()


def find(run: str, reports: Path) -> Path | None:
    """Return the packed recording or study that a user means: a file, a directory, or one under ``reports``.

    None: there is no such thing, or it is not packed.
    """
    for place in (Path(run), reports / run):
        if texts.is_file(place) or is_packed(place):
            return place
    return None


def is_packed(directory: Path) -> bool:
    """Tell whether a directory has a packed recording, or a packed study's; or is a run in such a study."""
    if is_recording(directory):
        return False
    return texts.is_file(directory / PACKED) or bool(_archives(directory)) or _is_within(directory)


def is_run(place: Path) -> bool:
    """Tell whether one packed recording is there: alone in its directory, or a run in a packed study."""
    alone = texts.is_file(place / PACKED) and not _indexes(place)
    return alone or texts.is_file(place / ARCHIVE) or _is_within(place)


def count(directory: Path) -> int:
    """Return how many packed recordings a directory has. Raises StoredError."""
    if texts.is_file(directory / TABLE):
        return len(atomic.read_json(directory / TABLE))
    return len(_archives(directory))


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


def packed_recordings(packed: Path) -> dict[str, Contents]:
    """Return the files of each packed recording of a directory or a file, by its name. Raises StoredError."""
    return _parts(packed)[0]


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


def _packed(recording: Recording) -> tuple[str, Contents]:
    """Return the id of a run, and the files that its recording is packed as."""
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
    return record.run_id, contents


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
    """Return files as one, with nothing of a machine or a moment in it."""
    from bench.recording import columns

    try:
        whole = columns.encode(contents)
        columns.decode(whole, MOST_BYTES)
    except ValueError:
        each = "" if is_recording(directory) else "; pack each of its recordings by itself"
        most = f"over {MOST_BYTES} bytes"
        raise StoredError(directory, f"it is too large to be packed: {most}{each}") from None
    return lzma.compress(whole, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=FILTERS)


def _contents(packed: Path) -> tuple[str, Contents]:
    """Return what is packed as a name and files."""
    if _is_within(packed):
        return packed.name, _parts(packed.parent)[0][packed.name]
    if packed.name == PACKED and texts.is_file(packed):
        packed = packed.parent
    found, beside = _parts(packed)
    if texts.is_file(packed) or is_run(packed):
        if len(found) != 1 or beside:
            raise StoredError(packed, "no packed recording: it has several directories")
        return next(iter(found.items()))
    name = packed.resolve().name
    if not _NAME.fullmatch(name) or name == directory.LATEST or name.endswith(UNFINISHED):
        raise StoredError(packed, f"a study cannot be called {name!r}; give its directory another name")
    contents = {path: _bytes(packed / path) for path in _indexes(packed)} | beside
    for run, files in found.items():
        contents |= _below(run, files)
    return name, contents


def _parts(packed: Path) -> tuple[dict[str, Contents], Contents]:
    """Return the recordings of a directory or a file, by name, and what a study measured beside them."""
    file = packed if texts.is_file(packed) else packed / PACKED
    if texts.is_file(file):
        return _checked(file, _unpacked(file))
    if texts.is_file(packed / ARCHIVE):
        return _parts(packed / ARCHIVE)
    beside = {path: _bytes(packed / path) for path in _beside(packed)}
    if texts.is_file(packed / MEASURED):
        beside |= _measured(packed / MEASURED)
    found = {}
    for archive in _archives(packed):
        if not is_run_id(archive.parent.name):
            raise StoredError(archive, f"{archive.parent.name!r} is not a recording's name")
        ((_, files),) = _parts(archive)[0].items()
        found[archive.parent.name] = files
    return found, beside


def _checked(file: Path, parts: Mapping[str, Contents]) -> tuple[dict[str, Contents], Contents]:
    """Return the recordings among a file's directories, and what was measured. Raises StoredError."""
    found = {name: contents for name, contents in parts.items() if name != BESIDE}
    for name, contents in found.items() or [("", {})]:
        if missing := sorted({SCENARIO, RUN} - contents.keys()):
            raise StoredError(file, f"no packed recording: it has no {missing[0]}")
        if not is_run_id(name):
            raise StoredError(file, f"no packed recording: {name!r} is not a recording's name")
    return found, _below(BESIDE, parts.get(BESIDE, {}))


def _measured(archive: Path) -> Contents:
    """Return what a packed study measured beside its recordings. Raises StoredError."""
    parts = _unpacked(archive)
    if set(parts) != {BESIDE}:
        raise StoredError(archive, f"no packed recording: it is not a directory {BESIDE!r}")
    return _below(BESIDE, parts[BESIDE])


def _unpacked(file: Path) -> dict[str, Contents]:
    """Return the directories at the top of a packed file, with the files by their paths within these."""
    return _remembered(file, _bytes(file))


@lru_cache(maxsize=1)  # a study is asked for one run after the other
def _remembered(file: Path, packed: bytes) -> dict[str, Contents]:
    parts: dict[str, Contents] = {}
    try:
        for path, content in _files(_decompressed(packed)):
            name, _, rest = path.partition("/")
            parts.setdefault(name, {})[rest] = content
    except (_ForeignError, lzma.LZMAError, tarfile.TarError, ValueError) as error:
        raise StoredError(file, f"no packed recording: {error}") from None
    return {name: _resealed(contents) for name, contents in parts.items()}


def _resealed(contents: Contents) -> Contents:
    """Return a recording's files with the digests of what gzip has compressed.

    Other versions of zlib than the one of whoever packed them may make other bytes of the same text.
    """
    zipped = {path: content for path, content in contents.items() if path.endswith(".gz")}
    if not zipped or RUN not in contents:
        return contents
    with suppress(ValueError, AttributeError):  # no record: whoever reads it says so
        known = json.loads(contents[RUN]).get("files") or {}
        for path, content in zipped.items():
            digest = hashlib.sha256(content).hexdigest()
            if known.get(path, digest) != digest:
                run = contents[RUN].replace(str(known[path]).encode(), digest.encode())
                contents = contents | {RUN: run}
    return contents


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


def _files(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file, of our own form or of a tar archive."""
    from bench.recording import columns

    files: set[str] = set()
    directories: set[str] = set()
    own = columns.is_encoded(content)
    for path, file in columns.decode(content, MOST_BYTES).items() if own else _members(content):
        _check_path(path)
        if path in files:
            raise _ForeignError(f"{path!r} is there twice")
        files.add(path)
        directories |= {str(parent) for parent in PurePosixPath(path).parents}
        yield path, file
    if both := sorted(files & directories):
        raise _ForeignError(f"{both[0]!r} is both a file and a directory")


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of a tar archive."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        for member in tar:
            if member.isdir():  # as tar(1) has them; ours come with their files
                continue
            if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
                raise _ForeignError(f"{member.name!r} is not a regular file")
            stream = tar.extractfile(member)
            yield member.name, stream.read() if stream else b""


def _check_path(path: str) -> None:
    top, *parts = path.split("/")
    plain = all(_NAME.fullmatch(part) for part in path.split("/"))
    expected = parts[:1] == ["raw"] or (len(parts) == 1 and parts[0].endswith((".yaml", ".json")))
    expected |= top == BESIDE and path.endswith(".json")
    if not plain or not expected or len(parts) > _DEEPEST:
        raise _ForeignError(f"{path!r} is not a file of a recording")


def _holds(directory: Path, contents: Mapping[str, bytes]) -> bool:
    """Tell whether all these files are in a directory, as they are here, or an index with its results."""
    try:
        found = {path: texts.read_bytes(directory / path) for path in contents}
        indexes = [path for path in contents if path.endswith(".json") and "/" not in path]
        found |= {path: without_results(found[path]) for path in indexes if found[path] != contents[path]}
    except (texts.TextError, ValueError):
        return False
    return found == contents


def _is_within(place: Path) -> bool:
    """Tell whether a path means a run in a packed study: there it will be when that is unpacked."""
    study = place.parent
    if not is_run_id(place.name) or place.exists() or not texts.is_file(study / PACKED):
        return False
    return place.name in _parts(study)[0]


def _archives(directory: Path) -> list[Path]:
    """Return the packed recordings in a directory: its own, or those of a study's runs."""
    own = directory / ARCHIVE
    return [own] if texts.is_file(own) else _found(directory, f"*/{ARCHIVE}")


def _indexes(study: Path) -> list[str]:
    """Return the paths of a study's index, and of what was asked for."""
    return [file.name for file in _found(study, "*.json") if file.name not in (CRATE, TABLE)]


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
