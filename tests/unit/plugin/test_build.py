from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT


def build(directory: Path, seed: str) -> dict[str, tuple[int, bytes]]:
    command = [sys.executable, f"{ROOT}/plugin/build.py"]
    command += ["--output", f"{directory}/out", "--tar", f"{directory}/tar"]
    subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": seed})
    return {
        str(path.relative_to(directory)): (path.stat().st_mode, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_two_builds_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one = build(tmp_path / "one", "1")
    assert one == build(tmp_path / "other", "2")
    assert one == build(tmp_path / "one", "3")
    assert any(name.endswith("/compiled") for name in one)


def test_a_build_leaves_the_library_of_running_plugins_alone(tmp_path: Path) -> None:
    build(tmp_path, "1")
    running = tmp_path / "out/concorde.lib/0123456789abcdef"
    running.mkdir()
    build(tmp_path, "1")
    assert running.is_dir()


def test_the_executable_works_from_elsewhere_through_a_link(tmp_path: Path) -> None:
    build(tmp_path, "1")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "out/concorde")
    done = subprocess.run(
        [link], input=b"{}", env={"CNI_COMMAND": "VERSION"}, capture_output=True, check=True
    )
    assert b"supportedVersions" in done.stdout


def test_another_interpreter_than_it_was_compiled_for_takes_the_sources(tmp_path: Path) -> None:
    build(tmp_path, "1")
    executable = tmp_path / "out/concorde"
    (line,) = (line for line in executable.read_text().splitlines() if "cache_tag" in line)
    tag = line.partition('== "')[2].partition('"')[0]
    executable.write_text(executable.read_text().replace(f'"{tag}"', '"another"'))
    command = [str(executable), "--version"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.startswith(b"concorde ")
