from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from bench.recording import atomic


class Artefact(BaseModel):
    parts: list[int]


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file"
    atomic.write_model(file, Artefact(parts=[1, 2]))
    assert atomic.read(file, Artefact) == Artefact(parts=[1, 2])
    assert atomic.read_json(file) == {"parts": [1, 2]}
    assert list(file.parent.iterdir()) == [file]
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    atomic.write(file, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fchmod", fail)
    with pytest.raises(OSError, match=f"No space left on device: '{file}'"):
        atomic.write(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "invalid JSON"),
        (b'{"parts": [1,', "invalid JSON"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b'{"parts": [1, "x"]}', r"parts\[1\]: input should be a valid integer"),
        (b"[]", "input should be an object"),
        (b"[" * 100_000, "invalid JSON"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(atomic.StoredError, match=f"^{file}: (?i:{words})"):
        atomic.read(file, Artefact)


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000, "9" * 5000])
def test_what_is_no_json_is_named(tmp_path: Path, content: str) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    with pytest.raises(atomic.StoredError, match=f"^{file}: not JSON"):
        atomic.read_json(file)


def test_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(atomic.StoredError, match="fifo: not a regular file"):
        atomic.read(tmp_path / "fifo", Artefact)
