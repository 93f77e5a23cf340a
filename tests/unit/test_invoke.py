"""``invoke VERB`` is ``./invokew VERB``, whichever invoke it is, and in whichever Python."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import invoke
import pytest

from tests.paths import ROOT

BIN = Path(sys.executable).parent
INVOKEW = ("./invokew",)
OURS = {
    "invoke": (str(BIN / "invoke"),),
    "inv": (str(BIN / "inv"),),
    "python -m invoke": (sys.executable, "-m", "invoke"),
}
# Without any package that is not Python's own; one is shown the way to by PYTHONPATH.
BARE = ("/usr/bin/python3", "-S")
OUTSIDE = (*BARE, "-m", "invoke")
LINES = [
    [],
    ["--list"],
    ["-l"],
    ["--list", "kubernetes"],
    ["--collection", "tasks", "--list"],
    ["--help", "bench"],
    ["bench", "--set", "flows[2].to=A-9"],
    ["bench", "--scale", "many"],
    ["figures", "no such run"],
    ["exec", "A-1", "--"],
    ["up", "--name", "a b"],
    ["nonsense"],
    ["--complete", "--", "invoke"],
    ["--complete", "--", "invoke", "bench", "--sc"],
]

NOTHING: Mapping[str, str] = {}
Ending = tuple[int, str, str]


def ending(argv: Sequence[str], environment: Mapping[str, str] = NOTHING, cwd: Path = ROOT) -> Ending:
    """The status with which a command ends, and all that it says."""
    done = subprocess.run(
        argv, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@functools.cache
def expected(*arguments: str) -> Ending:
    return ending([*INVOKEW, *arguments])


@pytest.fixture(scope="module")
def only_invoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which a Python has invoke, and nothing else of ours."""
    directory = tmp_path_factory.mktemp("elsewhere")
    for part in Path(invoke.__file__).parents[1].glob("invoke*"):  # the package, and what is known of it
        (directory / part.name).symlink_to(part)
    environment = {"PYTHONPATH": str(directory)}
    assert ending([*BARE, "-c", "import invoke"], environment)[0] == 0
    assert "No module named 'rich'" in ending([*BARE, "-c", "import rich"], environment)[2]
    return environment


@pytest.mark.long(one_in=8)
@pytest.mark.parametrize("arguments", LINES, ids=" ".join)
def test_the_environment_s_own(arguments: list[str]) -> None:
    assert ending([*OURS["invoke"], *arguments]) == expected(*arguments)


@pytest.mark.long(one_in=8)
@pytest.mark.parametrize("arguments", LINES, ids=" ".join)
def test_one_outside_of_it(arguments: list[str], only_invoke: dict[str, str]) -> None:
    assert ending([*OUTSIDE, *arguments], only_invoke) == expected(*arguments)


@pytest.mark.parametrize("other", ["inv", "python -m invoke"])
@pytest.mark.long(one_in=2)
def test_by_another_name(other: str) -> None:
    line = ["bench", "--set", "flows[2].to=A-9"]
    assert ending([*OURS[other], *line]) == expected(*line)


def test_it_may_have_found_us_by_options_of_its_own() -> None:
    line = ["-r", ".", "-c", "tasks", "--list", "kubernetes"]
    assert ending([*OURS["invoke"], *line]) == expected("--list", "kubernetes")


def test_what_is_expected_of_it_is_what_it_is_for() -> None:
    """So the tests above are about something."""
    status, told, _ = expected("--list")
    assert status == 0
    assert "test.e2e" in told
    status, _, words = expected("bench", "--set", "flows[2].to=A-9")
    assert status == 2
    assert words.startswith("scenarios/contmec.yaml: flows[2].to: no pod 'A-9'")
    assert "--scenario" in expected("--complete", "--", "invoke", "bench", "--sc")[1].splitlines()
    assert "'a b' is not a valid name" in expected("up", "--name", "a b")[2]


@pytest.mark.long(one_in=0)
def test_from_below_the_project_s_directory(only_invoke: dict[str, str]) -> None:
    """Where paths are relative to, as everywhere."""
    assert ending([*OUTSIDE, "bench", "first-run.md", "--dry"], only_invoke, ROOT / "docs" / "tutorial")[
        2
    ].startswith("first-run.md: ")
    assert ending([*OUTSIDE, "--list"], only_invoke, ROOT / "docs") == expected("--list")
    assert ending([*OUTSIDE, "--list"], only_invoke, ROOT / "scenarios" / "examples") == expected("--list")


def test_who_imports_the_module_gets_the_module() -> None:
    program = (
        "import sys, tasks; print(tasks.main.__name__, hasattr(tasks, 'other'), 'invoke' in sys.modules)"
    )
    assert ending([*BARE, "-c", program], {"PYTHONPATH": str(ROOT)}) == (0, "main False False\n", "")


@pytest.mark.long(one_in=0)
def test_where_nothing_is_set_up_it_begins_to(tmp_path: Path, only_invoke: dict[str, str]) -> None:
    """As far as that goes without a network: here is nowhere to have packages from."""

    # pip's own settings, this machine's among them, are others'.
    settings = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    environment = {**only_invoke, **settings}
    for file in ("tasks.py", "invokew"):
        shutil.copy(ROOT / file, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for argv in (INVOKEW, OUTSIDE):
        assert ending([*argv, "--complete", "--", "invoke"], environment, tmp_path) == (0, "", "")
    assert not (tmp_path / ".venv").exists()
    by_another = ending([*OUTSIDE, "status"], environment, tmp_path)
    assert (tmp_path / ".venv" / "bin" / "python").exists()
    assert by_another[0] == 2
    assert by_another[2].startswith(f"invokew: installing Python packages into {tmp_path}/.venv\n")
    assert by_another[2].endswith(
        f"invokew: could not install the packages of {tmp_path}/requirements/run.txt\n"
    )
    # There is a Python now, but none of its packages.
    assert ending([*INVOKEW, "status"], environment, tmp_path) == by_another
