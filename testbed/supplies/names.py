"""The image of who answers names of services in a cluster of machines: dnsmasq, and a shell that waits.

Not every machine has dnsmasq: a bundle has the image only if the one where it is made does.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed import resources
from testbed.runtime.names import PACKAGE, PROGRAM
from testbed.supplies import images, packages
from testbed.supplies.images import Entry, Start

IMAGE = f"testbed.local/concorde-names:{resources.version()}"
START = Start((f"/{images.PROGRAMS}/{images.WAITING}", "--"))
TOOLS = {images.WAITING: "catatonit", "sh": "dash", "sleep": "coreutils"}


def missing() -> Iterator[str]:
    """Yield, in words, what is missing for the image."""
    return packages.missing(PACKAGE)


def files() -> Iterator[Entry]:
    """Return the image's files. Raises LookupError for a program that is not there."""
    return images.of_package(PACKAGE, PROGRAM, TOOLS)
