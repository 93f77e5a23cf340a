"""A machine's history: whole lines, each once, whoever is killed or writes at the same time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from bench.recording.atomic import StoredError
from bench.studies.nightly.nightly import TORN, History
from tests import cases
from tests.paths import ROOT
from tests.unit.bench.studies.nightly.builders import MACHINE, night
from tests.waiting import PATIENCE

KILLS = cases.count("CONCORDE_KILLS", 2, 50)
AT_ONCE = cases.count("CONCORDE_AT_ONCE", 3, 8)

# Appends nights from a number on until it is killed, or so many as it is told.
WRITER = """
import sys
from pathlib import Path
from bench.studies.nightly.nightly import History
from tests.unit.bench.studies.nightly.builders import MACHINE, night

directory, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
for number in range(first, first + count):
    with History(directory, MACHINE).locked() as kept:
        kept.append(night(number))
"""


def history(directory: Path) -> History:
    return History(directory, MACHINE)


def append(directory: Path, number: int) -> None:
    with history(directory).locked() as kept:
        kept.append(night(number))


def writer(directory: Path, first: int, count: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(directory), str(first), str(count)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    assert history(tmp_path / "new").nights() == []
    for number in range(3):
        append(tmp_path / "new", number)
    assert history(tmp_path / "new").nights() == [night(number) for number in range(3)]
    assert [file.name for file in (tmp_path / "new").iterdir()] == [f"{MACHINE}.jsonl"]


def test_a_night_is_never_there_twice(tmp_path: Path) -> None:
    append(tmp_path, 0)
    with pytest.raises(ValueError, match="is there already"):
        append(tmp_path, 0)
    assert len(history(tmp_path).nights()) == 1
    file = history(tmp_path).file
    file.write_bytes(file.read_bytes() * 2)
    with pytest.raises(StoredError, match=re.escape(f"{file}: line 2: run {night(0).run_id} is there twice")):
        history(tmp_path).nights()


def test_what_was_left_half_is_set_aside(tmp_path: Path) -> None:
    append(tmp_path, 0)
    file = history(tmp_path).file
    whole = file.read_bytes()
    for cut in (1, len(whole) // 2, len(whole) - 1):  # the last lacks nothing but its end
        file.write_bytes(whole + whole[:cut])
        assert history(tmp_path).nights() == [night(0)]
        append(tmp_path, cut)
        assert history(tmp_path).nights() == [night(0), night(cut)]
        assert Path(f"{file}{TORN}").read_bytes().endswith(whole[:cut] + b"\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "line 2: Invalid JSON: EOF"),
        (b'{"half": ', "line 2: Invalid JSON"),
        (b"\0\0\0", "line 2: Invalid JSON"),
        (b"{}", "line 2: run_id: this field is required; correct or remove that line"),
        (b'{"schema_version": 2}', "line 2: schema_version: "),
        (b"\xff", "line 2: "),
    ],
)
def test_a_line_in_the_middle_that_is_none_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    append(tmp_path, 0)
    file = history(tmp_path).file
    before = file.read_bytes() + line + b"\n" + file.read_bytes()
    file.write_bytes(before)
    with pytest.raises(StoredError, match=re.escape(f"{file}: ") + words):
        history(tmp_path).nights()
    with pytest.raises(StoredError, match=words):
        append(tmp_path, 1)
    assert file.read_bytes() == before


def test_a_line_for_which_there_is_no_room_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, 0)
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: real(descriptor, content[:10]))
    with pytest.raises(OSError, match="no room for a whole line"):
        append(tmp_path, 1)
    monkeypatch.undo()
    assert history(tmp_path).file.read_bytes().endswith(b"}\n")
    assert history(tmp_path).nights() == [night(0)]


def test_a_directory_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LookupError, match=r"--history: .*file/.* cannot be written: .*another directory"):
        history(tmp_path / "file").prepare()


@pytest.mark.long
def test_writers_at_once_write_every_line_whole_and_once(tmp_path: Path) -> None:
    processes = [writer(tmp_path, 100 * number, 5) for number in range(AT_ONCE)]
    for process in processes:
        process.communicate(timeout=PATIENCE)
    assert [process.returncode for process in processes] == [0] * AT_ONCE
    written = [one.run_id for one in history(tmp_path).nights()]
    assert sorted(written) == sorted(night(100 * a + b).run_id for a in range(AT_ONCE) for b in range(5))
    assert not Path(f"{history(tmp_path).file}{TORN}").exists()


@pytest.mark.long
def test_whoever_is_killed_the_next_succeeds(tmp_path: Path) -> None:
    chance = Random(cases.seed())
    for number in range(KILLS):
        process = writer(tmp_path, 1000 * number, 1000)
        time.sleep(chance.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        nights = history(tmp_path).nights()
        assert len({one.run_id for one in nights}) == len(nights)
        append(tmp_path, 1000 * number + 999)
        assert history(tmp_path).nights()[-1] == night(1000 * number + 999)
