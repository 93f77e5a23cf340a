"""What the image in which bench runs is made of; that bench runs in it is for tests/system."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
import types
from pathlib import Path

import pytest

from testbed import resources
from testbed.supplies import runner
from tests.paths import ROOT

MODULE = b'"""One."""\n\nVALUE = 41 + 1\n'


def test_it_brings_what_the_wheel_brings() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(runner.TREE) == set(settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"])


def test_the_project_is_one_package_there_with_its_tree_inside() -> None:
    places = {path.removeprefix(f"{runner.SITE}/concorde_testbed/") for path in runner.project()}
    assert {"__main__.py", "tree/tasks.py", "tree/bench/presentation/templates/report.html.j2"} <= places
    assert not any("__pycache__" in place for place in places)


def test_packages_of_other_systems_are_not_asked_for() -> None:
    pinned = "one==1.0 \\\n    --hash=sha256:00\n    # via two\ntwo==2.0 ; sys_platform == 'win32' \\\n"
    assert list(runner.here(pinned)) == ["one"]


def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(LookupError, match="the package no-such-thing is not installed"):
        runner.distributions(["no-such-thing"])


def test_a_distribution_comes_without_scripts_tests_and_headers() -> None:
    places = runner.distributions(["numpy", "invoke"])
    assert f"{runner.SITE}/numpy/__init__.py" in places
    assert any(path.startswith(f"{runner.SITE}/numpy.libs/") for path in places)
    assert not any("/tests/" in path or "/bin/" in path or path.endswith(".h") for path in places)


def test_a_module_comes_compiled_as_python_would_load_it(tmp_path: Path) -> None:
    source = tmp_path / "one.py"
    source.write_bytes(MODULE)
    module, compiled = runner.entries({"usr/one.py": source})
    assert compiled.path == f"usr/__pycache__/one.{sys.implementation.cache_tag}.pyc"
    there = tmp_path / "one.pyc"
    there.write_bytes(compiled.data)
    spec = importlib.util.spec_from_file_location("one", there)
    assert spec is not None
    assert spec.loader is not None
    loaded = types.ModuleType("one")
    spec.loader.exec_module(loaded)
    assert (module.data, loaded.VALUE) == (MODULE, 42)
    assert str(tmp_path).encode() not in compiled.data


def test_without_the_reference_plugins_it_says_what_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "REFERENCE_PLUGINS", ("/nowhere",))
    with pytest.raises(LookupError, match="apt-get install containernetworking-plugins"):
        runner.reference_plugins()


def test_another_python_than_debians_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/env")
    with pytest.raises(LookupError, match="run this by /usr/bin/python3"):
        runner.provide()
