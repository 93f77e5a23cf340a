from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.scenario import texts


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, words in {
        tmp_path / "fifo": "not a regular file",
        tmp_path: "a directory",
        tmp_path / "absent": "No such file",
        Path("/dev/zero"): "not a regular file",
        Path("a\0b"): "null",
    }.items():
        with pytest.raises(texts.TextError, match=words):
            texts.read(path)


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"fine\xff")
    with pytest.raises(texts.TextError, match=r"not UTF-8 text: .* at byte 4"):
        texts.read(file)
    file.write_text("five!")
    assert texts.read(file, 5) == "five!"
    with pytest.raises(texts.TextError, match="more than 4 bytes"):
        texts.read(file, 4)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("two\nlines, a\ttab: é → 漢 \N{NO-BREAK SPACE}", None),
        ("\x1b[31mred\r\x07\x9b", "\\x1b[31mred\\r\\x07\\x9b"),
        ("\u202eright to left", "\\u202eright to left"),
        ("a file's \udcff", "a file's \\udcff"),
        ("\u2028\U000e0001", "\\u2028\\U000e0001"),
    ],
)
def test_only_what_can_be_shown_is_left(text: str, escaped: str | None) -> None:
    assert texts.escaped(text) == (text if escaped is None else escaped)
