"""The image in which ``bench`` runs: the project, what it imports, and the programs of nodes.

It is assembled as the pods' images are, from what is installed on this machine: Debian's programs and Python,
and the packages of requirements/run.txt.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement

from testbed import resources
from testbed.enforcements import concorde
from testbed.supplies import images, programs, python_files
from testbed.supplies.images import Entry, Image, Start
from testbed.supplies.python_files import Files

IMAGE = f"testbed.local/bench:{resources.version()}"
INTERPRETER = "/usr/bin/python3"  # the plugin's, too
PACKAGE = "concorde_testbed"
WORK = "work"  # recordings go to reports/ in it
# What is brought of the project, wherever it is: in a checkout there is more.
TREE = (
    "bench", "edge", "playbooks", "plugin", "requirements", "scenarios", "testbed", "tasks.py", "Vagrantfile",
)  # fmt: skip
TOOLS = {**images.TOOLS, **programs.SANDBOX, "python3": "python3"}
# All programs of these are brought: what runs on nodes are shell programs, too, and so is what people type.
WHOLE = ("coreutils", "dash", "grep", "procps", "sed", "util-linux")
# Whoever runs it may have no home there, and no right to write anywhere else.
START = Start((INTERPRETER, "-m", PACKAGE), f"/{WORK}", ("HOME=/tmp",))
COMMAND = f"""\
#!{INTERPRETER}
from {PACKAGE}.__main__ import main
main()
"""


def provide() -> Image:
    """Assemble the image; raises LookupError if this is not Debian's Python, or a program is missing.

    That takes some 15 s, and 2 GB of memory.
    """
    if not Path(sys.executable).samefile(INTERPRETER):
        raise LookupError(f"the image is of Debian's packages: run this by {INTERPRETER}, or a venv of it")
    return images.assemble(IMAGE, files(), START)


def files() -> Iterator[Entry]:
    """Yield the image's files. Raises LookupError for a program or a package that is not there."""
    pinned = (resources.REQUIREMENTS / "run.txt").read_text(encoding="utf-8")
    modules = {**python_files.standard_library(), **python_files.distributions(here(pinned)), **project()}
    plugins = reference_plugins()
    binaries = [*plugins.values(), *(file for file in modules.values() if ".so" in file.suffixes)]
    yield Entry("tmp", mode=0o1777, kind=images.DIRECTORY)
    yield Entry("run", mode=0o755, kind=images.DIRECTORY)
    yield Entry("root", mode=0o700, kind=images.DIRECTORY)
    yield Entry(WORK, mode=0o1777, kind=images.DIRECTORY)
    yield Entry("bin", kind=images.LINK, target=images.PROGRAMS)
    yield Entry("sbin", kind=images.LINK, target=images.PROGRAMS)
    yield Entry("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    yield Entry("etc/group", b"root:x:0:\n")
    yield Entry("etc/os-release", Path("/etc/os-release").read_bytes())
    yield Entry(f"{images.PROGRAMS}/concorde-testbed", COMMAND.encode(), mode=0o755)
    yield from images.programs({**of_packages(WHOLE), **TOOLS}, binaries)
    yield from python_files.entries(plugins)
    yield from python_files.entries(modules)


def reference_plugins() -> Files:
    """Return the reference plugins, which are compared with, and keep their places. Raises LookupError."""
    for directory in map(Path, concorde.REFERENCE_DIRECTORIES):
        if (directory / "bandwidth").exists():
            return {str(file).lstrip("/"): file for file in python_files.below(directory)}
    raise LookupError("the image needs the reference plugins: apt-get install containernetworking-plugins")


def of_packages(packages: Iterable[str]) -> dict[str, str]:
    """Return the programs of Debian's packages, each with its package. Raises LookupError."""
    found: dict[str, str] = {}
    for package in packages:
        asked = ["dpkg-query", "--listfiles", package]
        try:
            done = subprocess.run(asked, capture_output=True, encoding="utf-8", check=True)
        except (OSError, subprocess.CalledProcessError):
            raise LookupError(
                f"the image needs Debian's package {package}: apt-get install {package}"
            ) from None
        files = [Path(line) for line in done.stdout.splitlines()]
        places = images.SEARCHED.split(":")
        found.update(
            {file.name: package for file in files if str(file.parent) in places and os.access(file, os.X_OK)}
        )
    return found


def here(pinned: str) -> Iterator[str]:
    """Yield the names in a list of pinned packages, but for those of other systems and versions."""
    for line in pinned.splitlines():
        if line[:1].isalnum():
            requirement = Requirement(line.removesuffix("\\"))
            if requirement.marker is None or requirement.marker.evaluate():
                yield requirement.name


def project() -> Files:
    """Return the project's own files, as one package."""
    package = f"{python_files.SITE}/{PACKAGE}"
    own = resources.HOME / PACKAGE if resources.CHECKOUT else resources.HOME.parent
    tree = [file for name in TREE for file in python_files.below(resources.HOME / name)]
    return {
        **{f"{package}/{file.name}": file for file in sorted(own.glob("*.py"))},
        **{f"{package}/tree/{file.relative_to(resources.HOME)}": file for file in tree},
    }
