from __future__ import annotations

from pathlib import Path

from testbed.supplies import images


def test_the_image_holds_plugin_script_and_programs(tmp_path: Path) -> None:
    library = tmp_path / "concorde.lib" / "0123"
    library.mkdir(parents=True)
    (library / "a.py").write_text("")
    (tmp_path / "concorde").write_text("")
    (tmp_path / "concorde").chmod(0o755)
    files = {entry.path: entry for entry in images.installer_files(tmp_path)}
    assert {f"{images.HOME}/concorde.lib/0123/a.py", f"{images.HOME}/install.sh"} <= set(files)
    assert files[f"{images.HOME}/concorde"].mode == 0o755
    assert {f"{images.PROGRAMS}/{name}" for name in images.INSTALLER_TOOLS} <= set(files)
