"""Any files come back byte by byte; what is no such file is refused, and what grows beyond measure, too."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.recording import archive, columns
from tests.unit.bench.builders import DATA

MOST = 2**24
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=3).map(float),
    st.sampled_from([-0.0, 0, 0.1, 1e22, 2**58, -(2**58), 2**63]),
)
ROWS = st.lists(st.lists(NUMBERS, max_size=4), max_size=8)
ROW = '"socket":\t{},"start":\t{},"end":\t{},"seconds":\t{},"bytes":\t{},"bits_per_second":\t{}'
PATHS = st.sampled_from(["a.json", "b.json", "x/queues-a.jsonl", "x/y.sender.json", "x/z.sender.csv.gz", "0"])
TEXTS = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(str.encode),
    st.text("0123456789.,-[]\n \t:\0\1", max_size=60).map(str.encode),
    ROWS.map(lambda rows: "\n".join(map(json.dumps, rows)).encode()),
    ROWS.map(lambda rows: gzip.compress("\n".join(map(json.dumps, rows)).encode(), mtime=0)),
    st.lists(st.tuples(*[NUMBERS] * 6), max_size=6).map(
        lambda rows: "\n".join(ROW.format(*row) for row in rows).encode()
    ),
)


@given(st.dictionaries(PATHS, TEXTS))
def test_any_files_come_back(files: dict[str, bytes]) -> None:
    packed = columns.encode(files)
    assert columns.is_encoded(packed)
    assert columns.decode(packed, MOST) == files


# What a run's record says of a file: its digest, another's, or nothing.
SAID = st.sampled_from(["its", "another", ""])
NAMES = st.sampled_from(["a.json", "x/raw/run.json", "x/y.sender.json", "gone", "raw/run.json"])


def with_digests(files: dict[str, bytes], directory: str, said: dict[str, str]) -> bytes:
    ends = {"its": b"", "another": b"!"}
    digests = {
        name: hashlib.sha256(files.get(directory + name, b"") + ends[word]).hexdigest() if word else ""
        for name, word in said.items()
    }
    return json.dumps({"flows": [0.5, 17], "files": digests}, indent=1).encode()


@given(st.dictionaries(PATHS, TEXTS), st.dictionaries(NAMES, SAID), st.dictionaries(NAMES, SAID))
def test_runs_come_back_with_the_digests_of_their_files(
    files: dict[str, bytes], said: dict[str, str], within: dict[str, str]
) -> None:
    files["x/raw/run.json"] = with_digests(files, "x/", within)
    files["raw/run.json"] = with_digests(files, "", said)
    assert columns.decode(columns.encode(files), MOST) == files


def test_a_digest_that_follows_is_not_kept() -> None:
    files = {"a/b.json": b"17"}
    files["a/raw/run.json"] = with_digests(files, "a/", {"b.json": "its"})
    packed = columns.encode(files)
    assert hashlib.sha256(b"17").hexdigest().encode() not in packed
    files["a/b.json"] = b"18"  # so it does not
    assert hashlib.sha256(b"17").hexdigest().encode() in columns.encode(files)
    assert columns.decode(columns.encode(files), MOST) == files


@given(st.dictionaries(PATHS, TEXTS, min_size=1), st.data())
def test_damage_is_never_worse_than_an_error(files: dict[str, bytes], data: st.DataObject) -> None:
    packed = bytearray(columns.encode(files))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(packed)))
    for damaged in (bytes(packed), bytes(packed[:cut])):
        try:
            found = columns.decode(damaged, MOST)
        except ValueError:
            continue
        assert sum(map(len, found.values())) <= MOST


def test_files_of_iperf3_are_less_than_half_as_large_as_they_are_by_themselves() -> None:
    files = {str(file.relative_to(DATA)): file.read_bytes() for file in DATA.rglob("*.json")}
    packed = columns.encode(files)
    assert columns.decode(packed, MOST) == files
    alone = lzma.compress(b"".join(files[path] for path in sorted(files)))
    assert len(lzma.compress(packed, filters=archive.FILTERS)) < len(alone) / 2


def test_a_row_is_kept_without_what_follows_from_it() -> None:
    row = (
        '"socket":\t5,\n"start":\t{},\n"end":\t{},\n"seconds":\t{},\n"bytes":\t{},\n"bits_per_second":\t{}\n'
    )
    text = row.format(0, 0.100075, 0.10007499903440475, 14192640, 1134560290.7372074)
    text += row.format(0.100075, 0.200076, 0.10000099986791611, 12595200, 1007605925.2716324)
    how, kept = columns._kept(text.encode(), zipped=False)
    assert how == columns.TEXT
    assert kept == row.format("", 0.100075, "", 14192640, "") + row.format("", 0.200076, "", 12595200, "")


@pytest.mark.parametrize(
    ("files", "described", "rest", "said"),
    [
        ([["t", 3, "a"]], [], b"a\0b", "damaged"),  # a number of no column
        ([["t", 3, "a"]], [[1, 0, 0, 0, 0]], b"a\0b", "not as many"),
        ([["t", 6, "a"]], [[1, 0, 0, 0, 0]], b"ab\0ab\0\2", "more places"),
        ([["t", 3, "a"]], [[1, 0, 0, 0, 0]], b"a\0b\x80", "cut off"),
        ([["t", 3, "a"]], [[1, 99, 0, 0, 0]], b"a\0b\2", "99 decimals"),
        ([["t", 3, "a"]], [[1, 0, 0, 10**12, 0]], b"a\0b\2", "no way to keep a column"),
        ([["x", 1, "a"]], [], b"a", "no way to keep a file"),
        ([["t", 1, "a"], ["t", 1, "a"]], [], b"ab", "there twice"),
        ([["t", -1, "a"]], [], b"ab", "too much"),
        ([["t", 1, "a"]], [], b"a" + bytes(2**21 + 1), "too much"),
        ([["t", 2**23, "a"], ["t", 2**23 + 1, "b"]], [], b"a" * (2**24 + 1), "too much"),
        (5, [], b"", "damaged"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    files: object, described: object, rest: bytes, said: str
) -> None:
    head = json.dumps([columns.FORM, files, described]).encode()
    with pytest.raises(ValueError, match=said):
        columns.decode(head + b"\n" + rest, MOST)


def test_a_packed_recording_has_the_bytes_that_a_tar_archive_of_it_has(tmp_path: Path) -> None:
    """One that was packed by an earlier version, as users have them."""
    before = Path(__file__).parent / "before" / archive.ARCHIVE
    with tarfile.open(before) as members:
        streams = {member.name: members.extractfile(member) for member in members}
        files = {name: stream.read() for name, stream in streams.items() if stream}
    (found,) = archive.packed_recordings(before.parent).items()
    name, contents = found
    assert {f"{name}/{path}": content for path, content in contents.items()} == files
    (tmp_path / archive.PACKED).write_bytes(lzma.compress(columns.encode(files), filters=archive.FILTERS))
    assert archive.packed_recordings(tmp_path) == {name: contents}
