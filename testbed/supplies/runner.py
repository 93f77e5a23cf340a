"""The image in which ``bench`` runs: the project, what it imports, and the programs of nodes.

It is assembled as the pods' images are, from what is installed on this machine: Debian's programs and Python,
and the packages of requirements/run.txt.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import marshal
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from packaging.requirements import Requirement

from testbed import resources
from testbed.supplies import images, packages
from testbed.supplies.images import Entry, Image, Start

IMAGE = f"testbed.local/bench:{resources.version()}"
INTERPRETER = "/usr/bin/python3"  # the plugin's, too
PACKAGE = "concorde_testbed"
WORK = "work"  # recordings go to reports/ in it
# What is brought of the project, wherever it is: in a checkout there is more.
TREE = (
    "bench", "edge", "playbooks", "plugin", "requirements", "scenarios", "testbed", "tasks.py", "Vagrantfile",
)  # fmt: skip
TOOLS = {**images.TOOLS, **packages.SANDBOX, "python3": "python3"}
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
    modules = {**standard_library(), **distributions(here(pinned)), **project()}
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
    yield from entries(plugins)
    yield from entries(modules)


def reference_plugins() -> Files:
    """Return the reference plugins, which are compared with, and keep their places. Raises LookupError."""
    for directory in map(Path, resources.REFERENCE_PLUGINS):
        if (directory / "bandwidth").exists():
            return {str(file).lstrip("/"): file for file in below(directory)}
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
    package = f"{SITE}/{PACKAGE}"
    own = resources.HOME / PACKAGE if resources.CHECKOUT else resources.HOME.parent
    tree = [file for name in TREE for file in below(resources.HOME / name)]
    return {
        **{f"{package}/{file.name}": file for file in sorted(own.glob("*.py"))},
        **{f"{package}/tree/{file.relative_to(resources.HOME)}": file for file in tree},
    }


Files = Mapping[str, Path]  # by their paths in the image

# Where Debian's Python looks for what its administrator installs.
SITE = f"usr/local/lib/python{sysconfig.get_python_version()}/dist-packages"
LEFT_OUT = {"__pycache__", "ensurepip", "idlelib", "include", "lib2to3", "sample_data", "test", "tests"}
LEFT_OUT_KINDS = {".c", ".h", ".pxd", ".pyc", ".pyi", ".pyx"}
UNCHECKED = (1).to_bytes(
    4, "little"
)  # the flags of a compiled file that is never compared with its source (PEP 552)


def standard_library() -> Files:
    """Return the standard library's files, which keep their places."""
    directory = Path(sysconfig.get_path("stdlib"))
    return {str(file).lstrip("/"): file for file in below(directory)}


def distributions(names: Iterable[str]) -> Files:
    """Return the files of installed distributions, without their scripts. Raises LookupError."""
    found: dict[str, Path] = {}
    for name in names:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise LookupError(f"the package {name} is not installed: pip install {name}") from None
        for file in distribution.files or ():
            place = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and wanted(file) and place.is_file():
                found[f"{SITE}/{file}"] = place
    return found


def below(directory: Path) -> Iterator[Path]:
    """Yield the files below a directory that a program needs, in order; a file is itself."""
    if directory.is_file():
        yield directory
    for here, inner, names in os.walk(directory):
        inner[:] = sorted(set(inner) - LEFT_OUT)
        yield from (file for name in sorted(names) if wanted(file := Path(here, name)) and file.is_file())


def wanted(file: PurePath) -> bool:
    """Whether a program needs a file, as far as its path tells."""
    return not LEFT_OUT & set(file.parts) and file.suffix not in LEFT_OUT_KINDS


def entries(files: Files) -> Iterator[Entry]:
    """Yield files as an image has them; each module with its compiled form."""
    for path, file in sorted(files.items()):
        data = file.read_bytes()
        yield Entry(path, data, mode=0o755 if os.access(file, os.X_OK) else 0o644)
        if file.suffix == ".py":
            yield Entry(importlib.util.cache_from_source(path), compiled(data, path))


def compiled(source: bytes, path: str) -> bytes:
    """Return the compiled form of a module that will be at a path, relative to the root."""
    code = compile(source, f"/{path}", "exec", dont_inherit=True)
    digest = importlib.util.source_hash(source)
    return importlib.util.MAGIC_NUMBER + UNCHECKED + digest + marshal.dumps(code)
