"""The image of the controller that gives nodes their blocks: ``edge``, Python, and what makes a certificate.

Manifests that use it are in ``edge/deploy/addresses``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed import resources
from testbed.supplies import images, runner
from testbed.supplies.images import Entry, Image, Start

IMAGE = f"testbed.local/concorde-addresses:{resources.version()}"
HOME = "opt/concorde/edge"
PYTHON = (runner.INTERPRETER, "-IS")
# As process 1 it would not end when it is told to: the kernel ignores signals for which that has no handler.
REAPER = (f"/{images.PROGRAMS}/{images.WAITING}", "--")
RUN = (*REAPER, *PYTHON, f"/{HOME}")
START = Start((*RUN, "addresses"))
TOOLS = {images.WAITING: "catatonit", "python3": "python3", "openssl": "openssl"}
LIBRARY = "import sysconfig; print(sysconfig.get_path('stdlib'))"


def provide() -> Image:
    """Assemble the image, in less than a second; raises LookupError if a program is missing."""
    return images.assemble(IMAGE, files(), START)


def files(tools: Mapping[str, str] = TOOLS) -> Iterator[Entry]:
    """Yield the image's files, with these programs. Raises LookupError for a program that is not there."""
    asked = subprocess.run([*PYTHON, "-c", LIBRARY], capture_output=True, encoding="utf-8", check=True)
    # Without what one compiles against, which is most of it.
    library = [file for file in runner.below(Path(asked.stdout.strip())) if "/config-" not in str(file)]
    yield from images.programs(tools, [file for file in library if ".so" in file.suffixes])
    for file in library:
        yield Entry(str(file).lstrip("/"), file.read_bytes())
    for file in runner.below(resources.EDGE):
        if file.suffix == ".py":
            yield Entry(f"{HOME}/{file.relative_to(resources.EDGE)}", file.read_bytes())
