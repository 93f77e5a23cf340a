#!/usr/bin/env python3
"""Build the plugins as a runtime finds them: executables, and their library beside them.

The library is compiled ahead: compiling at each start would cost more than the plugin's work. The
executable names its library by a digest of the sources and the interpreter, and libraries are never
changed once in place. So a build may run beside other builds and beside running plugins: each
invocation sees one whole library, its own. The same sources and interpreter give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import marshal
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE / "concorde"
# What the plugin has in common with the programs of edge. Nothing else of ours is imported there.
SHARED = ("edge/__init__.py", "edge/netlink.py")
INTERPRETER = "/usr/bin/python3"
LIBRARIES = "concorde.lib"
# An invocation may still be importing from its library long after a newer one has replaced it.
STALE_SECONDS = 3600
_HEADER = 16  # bytes of a compiled file before its code (PEP 552)

_STARTS = """\
import gc
import os
import sys

if sys.version_info < (3, 9):  # in words that an older one reads; the library it does not
    text = "Python %d.%d is too old: {interpreter} must be 3.9 or newer" % sys.version_info[:2]
    if len(sys.argv) > 1:
        sys.exit("concorde: " + text)
    code = 50 if os.environ.get("CNI_COMMAND") == "STATUS" else 109
    print('{{"cniVersion": "1.1.0", "code": %d, "msg": "%s"}}' % (code, text))
    sys.exit(1)

gc.disable()  # it would look through all that is imported, and nothing lives long enough to be collected

library = os.path.dirname(os.path.realpath(__file__)) + "{library}"
if sys.implementation.cache_tag != "{tag}":
    sys.path.insert(0, library)  # another interpreter than the one it was compiled for takes the sources
else:
    import marshal
    from _frozen_importlib import ModuleSpec

    with open(library + "/compiled", "rb") as file:
        content = memoryview(file.read())
    start = 4 + int.from_bytes(content[:4], "big")
    compiled = marshal.loads(content[4:start])

    class Compiled:  # fifty modules, each sought and opened by itself, take a millisecond more
        def find_spec(name, path=None, target=None):
            return ModuleSpec(name, Compiled, is_package=compiled[name][0]) if name in compiled else None

        def create_module(spec):
            return None

        def exec_module(module):
            _, at = compiled[module.__name__]
            exec(marshal.loads(content[start + at:]), module.__dict__)

    sys.meta_path.insert(0, Compiled)

from {module}.__main__ import main

# Not sys.exit(): nothing is buffered or left to close, and taking the interpreter apart costs 2 ms.
os._exit(main())
"""
EXECUTABLE = "#!{interpreter} -IS\n" + _STARTS

# Every pod of a node asks this one, and most want nothing of it: they are not to wait for Python, which takes
# 7 ms to start. What libcni writes is one line, its keys in order (Go's encoding/json): so the previous
# result, which is the answer, stands between two keys. A quotation mark within a string has a backslash
# before it, so none of these patterns is ever a part of one. What is written otherwise is read by Python.
NETWORKS = """\
#!/bin/sh
if [ "$CNI_COMMAND" = ADD ]; then
    call=
    while IFS= read -r line 2>/dev/null; do call="$call$line
"; done
    call=$call$line
    case $call in
        *'"k8s.v1.cni.cncf.io/networks":'* | *'"concorde.contmec.dev/forward":'*) ;;
        *'"concorde.contmec.dev/egress-guarantee.'* | *'"concorde.contmec.dev/answers-guarantee.'*) ;;
        *'"concorde.contmec.dev/ingress-guarantee.'*) ;;
        *'"prevResult":{{'*'}},"runtimeConfig":{{"io.kubernetes.cri.pod-annotations":{{'*)
            result=${{call#*'"prevResult":'}}
            printf '%s}}\\n' "${{result%%'}},"runtimeConfig":'*}}"
            exit ;;
    esac
fi
[ ! -L "$0" ] || set -- "$(readlink -f "$0")"
directory=${{1:-$0}}
set -- {interpreter} -IS "${{directory%/*}}/{libraries}/{digest}/networks"
[ "$CNI_COMMAND" = ADD ] || exec "$@"
exec "$@" <<END
$call
END
"""


def build(output: Path, interpreter: str = INTERPRETER) -> Path:
    """Build into a directory and return the path of the executable `concorde`.

    Raises subprocess.CalledProcessError when the interpreter cannot compile the sources.
    """
    sources = {path.relative_to(HERE): path.read_bytes() for path in sorted(SOURCE.rglob("*.py"))}
    sources.update((Path(path), (HERE.parent / path).read_bytes()) for path in SHARED)
    digest = _digest(sources, interpreter)
    libraries = output / LIBRARIES
    libraries.mkdir(parents=True, exist_ok=True)
    if not (libraries / digest).is_dir():
        _make_library(libraries, digest, sources, interpreter)
    executable = output / "concorde"
    if executable.exists() and (former := _library_of(executable)).is_dir():
        os.utime(former)  # its time of retirement, for _drop_stale
    library = f"/{LIBRARIES}/{digest}"
    text = EXECUTABLE.format(
        interpreter=interpreter, library=library, tag=_cache_tag(interpreter), module="concorde"
    )
    _replace(executable, text.encode(), 0o755)
    networks = NETWORKS.format(interpreter=interpreter, libraries=LIBRARIES, digest=digest)
    _replace(output / "concorde-networks", networks.encode(), 0o755)
    _drop_stale(libraries, digest)
    return executable


def pack(executable: Path, tar: Path) -> None:
    """Write executable and library into a tar archive that depends on nothing but their content."""
    library = _library_of(executable)
    with (
        tempfile.NamedTemporaryFile(dir=tar.parent, delete=False) as file,
        tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        executables = [executable, executable.parent / "concorde-networks"]
        for path in [*executables, *sorted(path for path in library.rglob("*") if path.is_file())]:
            archive.add(path, str(path.relative_to(executable.parent)), filter=_anonymous)
    Path(file.name).chmod(0o644)
    Path(file.name).replace(tar)


def _library_of(executable: Path) -> Path:
    digest = executable.read_text().partition(f"/{LIBRARIES}/")[2].partition('"')[0]
    return executable.parent / LIBRARIES / digest


def _cache_tag(interpreter: str) -> str:
    asked = [interpreter, "-ISc", "import sys; print(sys.implementation.cache_tag)"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def _digest(sources: dict[Path, bytes], interpreter: str) -> str:
    version = subprocess.run([interpreter, "-ISVV"], check=True, capture_output=True).stdout
    digest = hashlib.sha256(version + EXECUTABLE.encode() + NETWORKS.encode())
    for path, content in sources.items():
        digest.update(f"{path} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _make_library(libraries: Path, digest: str, sources: dict[Path, bytes], interpreter: str) -> None:
    with tempfile.TemporaryDirectory(prefix=".new-", dir=libraries) as temporary:
        new, compiled = Path(temporary) / digest, Path(temporary) / "compiled"
        for path, content in sources.items():
            for place in (new / path, compiled / path):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        # Unchecked hashes: no timestamp in the file. The fixed hash seed keeps the order of sets, which older
        # interpreters write as it happens to be.
        compiling = [interpreter, "-m", "compileall", "-q", "-b", "--invalidation-mode", "unchecked-hash"]
        subprocess.run(
            [*compiling, "-s", str(compiled), str(compiled)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdout=sys.stderr,
        )
        (new / "compiled").write_bytes(_bundled(compiled))
        starts = _STARTS.format(
            interpreter=interpreter, library="", tag=_cache_tag(interpreter), module="concorde.networks"
        )
        (new / "networks").write_text(starts)
        try:
            new.rename(libraries / digest)
        except OSError:
            # Another build of the same sources was faster; theirs has the same bytes.
            if not (libraries / digest).is_dir():
                raise


def _bundled(compiled: Path) -> bytes:
    """All modules of a directory in one piece, of which a call reads what it needs.

    First how long the index is (4 bytes), then that: by name, whether it is a package, and where its code is,
    from where the index ends; then the code of all, each by itself (marshal).
    """
    index, codes = {}, b""
    for path in sorted(compiled.rglob("*.pyc")):
        parts = path.relative_to(compiled).with_suffix("").parts
        name, is_package, _ = ".".join(parts).partition(".__init__")
        index[name] = bool(is_package), len(codes)
        codes += path.read_bytes()[_HEADER:]
    head = marshal.dumps(index, 2)  # any interpreter reads it, and equal content is equal bytes
    return len(head).to_bytes(4, "big") + head + codes


def _replace(path: Path, content: bytes, mode: int) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
        file.write(content)
    Path(file.name).chmod(mode)
    Path(file.name).replace(path)


def _drop_stale(libraries: Path, digest: str) -> None:
    for path in libraries.iterdir():
        if path.name != digest and time.time() - path.lstat().st_mtime > STALE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = 0
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if "/" not in entry.name else 0o644
    return entry


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(description="Build the Concorde CNI plugin.")
    parser.add_argument("--output", type=Path, default=Path("build/cni"), help="directory to build into")
    parser.add_argument(
        "--python", default=INTERPRETER, help="interpreter of the node the plugin will run on"
    )
    parser.add_argument("--tar", type=Path, help="also write a tar archive for copying to nodes")
    arguments = parser.parse_args()
    executable = build(arguments.output, arguments.python)
    if arguments.tar:
        pack(executable, arguments.tar)


if __name__ == "__main__":
    main()
