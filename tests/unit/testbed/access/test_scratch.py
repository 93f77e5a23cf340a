"""What is made for a while is gone with who made it, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from testbed.access import scratch
from tests.paths import ROOT
from tests.waiting import until

MAKER = """
import sys
from testbed.access import scratch
from testbed.access import scratch
with scratch.directory() as directory, scratch.file() as file:
    (directory / "below").mkdir()
    (directory / "below" / "file").write_text("x")
    file.write_text("x")
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_who_is_killed(
    how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", MAKER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as maker:
        assert maker.stdout is not None
        directory = Path(maker.stdout.readline().rstrip("\n"))
        assert directory.parent == tmp_path
        assert (directory / "below" / "file").read_text() == "x"
        assert directory.stat().st_mode & 0o077 == 0
        maker.send_signal(how)
    until(lambda: not directory.exists())
    assert list(tmp_path.iterdir()) == []


def test_it_is_gone_at_the_end_of_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch.directory() as directory:
        (directory / "file").touch()
        assert list(tmp_path.iterdir()) == [directory]
    assert list(tmp_path.iterdir()) == []


def test_without_room_for_it_the_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(RuntimeError, match=r"no temporary directory: mktemp: .*absent"), scratch.directory():
        pass


def test_a_nameless_file_can_be_read_as_it_is_written() -> None:
    with scratch.file() as file, file.open() as reader:
        with file.open("w") as writer:
            writer.write("one")
        assert reader.read() == "one"
    assert not file.exists()
