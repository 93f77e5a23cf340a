"""``invokew`` has the names of packages again that the testbed looks for, since it comes before Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.cli import pages
from bench.cli.table import VERBS
from bench.console.verb import SHORT
from testbed import doctor
from testbed.resources import version
from testbed.supplies import images, packages, runner
from testbed.supplies.box import building
from tests.paths import ROOT

SCRIPT = ROOT.joinpath("invokew").read_text(encoding="utf-8")
# Essential in Debian, or what python3-venv brings.
EVERYWHERE = {"coreutils", "dash", "grep", "libc-bin", "python3", "sed"}


def listed(start: str, end: str) -> set[tuple[str, str]]:
    """Return the pairs of program and package between two texts of the script."""
    return set(re.findall(r"([\w.-]+):([\w.-]+)", SCRIPT.partition(start)[2].partition(end)[0]))


BASE = listed("for pair in ", "${more:-}")
KUBERNETES = listed("more='dpkg-source", "'")
BOX = listed("box='", "'")
IMAGE = listed("image='", "'")


@pytest.mark.parametrize(
    ("installed", "needed"),
    [
        (BASE, packages.SANDBOX),
        (BASE | KUBERNETES, {**doctor.KUBERNETES_PROGRAMS, **images.TOOLS}),
        (BOX, building.TOOLS),
        (BASE | IMAGE, {**runner.TOOLS, **{package: package for package in runner.WHOLE}}),
    ],
    ids=["a node", "Kubernetes", "the box", "the image"],
)
def test_it_installs_all_packages_that_are_looked_for(
    installed: set[tuple[str, str]], needed: Mapping[str, str]
) -> None:
    assert set(needed.values()) - EVERYWHERE <= {package for _, package in installed}


def test_it_and_the_testbed_agree_on_the_package_of_a_program() -> None:
    known = {**doctor.KUBERNETES_PROGRAMS, **images.TOOLS, **building.TOOLS, **packages.SANDBOX}
    differing = {pair for pair in BASE | KUBERNETES | BOX if known.get(pair[0], pair[1]) != pair[1]}
    assert differing == {("syslinux", "syslinux-common")}  # which has no program


def test_what_suffices_for_tests_suffices_for_a_run() -> None:
    """With the former in its environment it does not look for the latter."""
    lines = ROOT.joinpath("requirements", "test.txt").read_text(encoding="utf-8").splitlines()
    assert "-r run.txt" in lines
    names = re.findall(r"^([\w.-]+)==", "\n".join(lines), re.MULTILINE)
    run = re.findall(r"^([\w.-]+)==", ROOT.joinpath("requirements", "run.txt").read_text(), re.MULTILINE)
    assert run
    assert not set(run) & set(names)  # pip takes no package twice


@pytest.mark.parametrize(
    ("line", "verb"),
    [
        ("bench --scenario test", "bench"),
        ("--collection tasks test.long", "test.long"),
        ("--list-depth 1 --echo --search-root . lint", "lint"),
        ("--help test", "test"),
        ("help test", "test"),
        ("--list-depth=1 -l", ""),
        ("exec A-1 -- test -f x", "exec"),
        ("", ""),
    ],
)
def test_it_knows_the_verb_from_invoke_s_own_options(line: str, verb: str) -> None:
    part = "verb=\n" + SCRIPT.partition("\nverb=\n")[2].partition("\ndone\n")[0] + "\ndone\necho $verb"
    told = subprocess.run(["sh", "-c", part, "sh", *line.split()], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == verb


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("bench --orchestrator kubernetes", "containerd"),
        ("bench --orchestrator=kubernetes", "containerd"),
        ("bench -o kubernetes", "containerd"),
        ("up -okubernetes", "containerd"),
        ("up --provider vagrant", "vagrant-libvirt"),
        ("up -p vagrant", "vagrant-libvirt"),
    ],
)
def test_what_a_part_needs_is_installed_however_it_is_asked_for(line: str, package: str) -> None:
    verb = line.partition(" ")[0]
    part = (
        "more=\n" + SCRIPT.partition("# Real Kubernetes needs more")[2].partition("# The tests assemble")[0]
    )
    told = subprocess.run(
        ["sh", "-c", f"verb={verb}; study=\n#{part}\necho $more", "sh", *line.split()],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.search(rf":{package}(\s|$)", told.stdout), told.stdout


@pytest.mark.parametrize(("option", "value"), [("orchestrator", "kubernetes"), ("provider", "vagrant")])
def test_it_knows_every_form_of_an_option_that_needs_more(option: str, value: str) -> None:
    for form in (f"--{option} {value}", f"--{option}={value}", f"-{SHORT[option]} {value}"):
        assert form in SCRIPT


def test_the_verbs_that_it_knows_are_verbs() -> None:
    words = " ".join(re.findall(r"^    ([a-z][a-z0-9. |*]*)\)$", SCRIPT, re.MULTILINE))
    named = {word.rstrip("*.") for word in re.split(r"[ |]+", words)} - {"dry", "help", "list", "version"}
    assert named
    assert all(any(verb.startswith(name) for verb in VERBS) for name in named), named


def test_a_bug_of_its_own_has_a_status_of_its_own(tmp_path: Path) -> None:
    """It takes what cannot be started for a Python."""
    shutil.copy(ROOT / "invokew", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/nonexistent\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["./invokew", "--complete"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 70
    assert done.stderr.endswith("invokew: this is a bug in the testbed: what failed is above\n")


def listing(directory: Path) -> set[Path]:
    return set(directory.rglob("*"))


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A checkout where nothing has been set up, as far as who only looks needs one."""
    for file in ("invokew", "docs/reference/commands.md", "plugin/concorde/__init__.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def looked(checkout: Path, *words: str, cwd: Path | None = None) -> tuple[int, str, str]:
    """The status with which looking ends, and all that is said."""
    done = subprocess.run(
        [str(checkout / "invokew"), *words], cwd=cwd or checkout, env={"PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_there_before_anything_is(verb: str, bare: Path) -> None:
    before = listing(bare)
    page = pages.verb(VERBS[verb], "invokew", pages.USUAL)
    assert looked(bare, verb, "--help") == looked(bare, "--help", verb) == (0, f"{page}\n", "")
    assert listing(bare) == before


@pytest.mark.parametrize("line", ["", "--help", "-h", "help", "--list", "-l"])
def test_so_is_the_first_page(line: str, bare: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    page = pages.front("invokew", pages.USUAL)
    assert looked(bare, *line.split()) == (0, f"{page}\n", "")
    assert looked(bare, *line.split(), cwd=elsewhere) == (0, f"{page}\n", "")


@pytest.mark.parametrize(
    "line", ["-h bench", "help bench", "--help=bench", "bench -h", "bench --json -h", "--echo bench --help"]
)
def test_in_whatever_way_one_asks(line: str, bare: Path) -> None:
    status, said, _ = looked(bare, *line.split())
    assert status == 0
    assert said.startswith("Usage: invokew bench ")


def test_the_version_is_known_and_a_verb_that_there_is_not(bare: Path) -> None:
    assert looked(bare, "--version") == (0, f"invokew {version()}\n", "")
    assert looked(bare, "nosuch", "--help") == (2, "", "invokew: no verb 'nosuch'\n")


def test_with_dry_nothing_is_set_up(tmp_path: Path) -> None:
    shutil.copy(ROOT / "invokew", tmp_path)
    for line in (["bench", "--dry"], ["--dry", "test"]):
        done = subprocess.run(["./invokew", *line], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "would install" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["invokew"]
