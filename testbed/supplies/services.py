"""The image of a cluster's services: ``edge``, Python, and what writes a node's rules.

Which of edge's programs runs, manifests say: those in ``edge/deploy/services``.
"""

from __future__ import annotations

from collections.abc import Iterator

from testbed import resources
from testbed.supplies import addresses, images
from testbed.supplies.images import Entry, Image, Start

IMAGE = f"testbed.local/concorde-services:{resources.version()}"
# A proxy that was told to end while Python is being started would end without a word, and leave its table.
UNHEARD = (f"/{images.PROGRAMS}/env", "--block-signal=TERM")
START = Start((*addresses.REAPER, *UNHEARD, *addresses.PYTHON, f"/{addresses.HOME}"))
TOOLS = {images.WAITING: "catatonit", "env": "coreutils", "python3": "python3", "nft": "nftables"}


def provide() -> Image:
    """Assemble the image, in less than a second; raises LookupError if a program is missing."""
    return images.assemble(IMAGE, files(), START)


def files() -> Iterator[Entry]:
    """Yield the image's files. Raises LookupError for a program that is not there."""
    return addresses.files(TOOLS)
