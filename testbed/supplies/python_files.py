"""Which files a Python program needs of this machine, and what they become in an image.

They are those of Debian's Python and of installed distributions, without tests and headers. Modules are
compiled ahead, for what a container compiles is lost with it; as the plugin's, they do not depend on when or
where.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import marshal
import os
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

from testbed.supplies.images import Entry

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
