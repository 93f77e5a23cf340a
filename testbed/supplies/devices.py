"""The images of a cluster's devices: edge's programs for them, with kopf and Python, and a relay: socat.

Manifests that use them are in ``edge/deploy/devices``. kopf is nobody else's: pip puts it into the cache, by
the hashes of requirements/devices.txt.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from testbed import resources
from testbed.runtime.proxies import PACKAGE, PROGRAM
from testbed.supplies import addresses, cache, images, runner
from testbed.supplies.cache import Say
from testbed.supplies.images import Entry, Image, Start

IMAGE = f"testbed.local/concorde-devices:{resources.version()}"
RELAY = f"testbed.local/socat:{resources.version()}"
LIST = resources.REQUIREMENTS / "devices.txt"
PYTHON = (runner.INTERPRETER, "-I")  # with the packages that are installed in the image
START = Start((f"/{images.PROGRAMS}/{images.WAITING}", "--", *PYTHON, f"/{addresses.HOME}"))
# As process 1 it would leave its children, one for each connection, to nobody.
RELAY_START = Start((f"/{images.PROGRAMS}/{images.WAITING}", "--", f"/{images.PROGRAMS}/{PROGRAM}"))


def provide() -> Image:
    """Assemble the operator's image. Raises LookupError for a program, or packages, that cannot be had."""
    return images.assemble(IMAGE, files(packages()), START)


def provide_relay() -> Image:
    """Assemble the relay's image. Raises LookupError for a program that is missing."""
    own = images.of_package(PACKAGE, PROGRAM, {images.WAITING: "catatonit"})
    return images.assemble(RELAY, own, RELAY_START)


def files(installed: Path) -> Iterator[Entry]:
    """Yield the operator's files, given where its packages are. Raises LookupError."""
    modules = {f"{runner.SITE}/{file.relative_to(installed)}": file for file in runner.below(installed)}
    yield from addresses.files({**addresses.TOOLS, "chroot": "coreutils"})
    yield from runner.entries(modules)


def packages(say: Say = lambda _: None) -> Path:
    """Return the directory of the operator's packages; they are installed if they are not in the cache.

    Raises LookupError with what pip says.
    """
    digest = hashlib.sha256(LIST.read_bytes()).hexdigest()[:16]
    name = f"kopf-{digest}-python{sys.version_info[0]}.{sys.version_info[1]}"
    place = cache.root() / name
    with cache.claimed(name, say):
        if not place.exists():
            say("installing the operator's packages")
            with cache.workspace(name) as beside:
                _install(beside / "site")
                (beside / "site").replace(place)
    return place


def _install(place: Path) -> None:
    options = ("--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-compile")
    command = [sys.executable, "-m", "pip", "install", *options, f"--target={place}", f"--requirement={LIST}"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise LookupError(f"the operator's packages cannot be installed: {done.stderr.strip()[-400:]}")
