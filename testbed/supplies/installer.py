"""The installer's image: the plugin, the script that puts it on a node, and the programs that takes.

It is assembled as the pods' images are. Manifests that use it are in ``plugin/deploy``; see
docs/howto/existing-clusters.md.
"""

from __future__ import annotations

from pathlib import Path

from testbed import resources
from testbed.access import scratch
from testbed.supplies import images
from testbed.supplies.images import Entry, Image

IMAGE = f"testbed.local/concorde:{resources.version()}"
SCRIPT = resources.PLUGIN / "deploy" / "install.sh"
HERE = "opt/concorde"  # in the image
TOOLS = {
    images.WAITING: "catatonit",
    "sh": "dash",
    "cmp": "diffutils",
    "grep": "grep",
    **dict.fromkeys(
        ("cat", "chmod", "chroot", "cp", "head", "ls", "mkdir", "mv", "rm", "rmdir", "sleep", "sort", "sync"),
        "coreutils",
    ),
}


def provide() -> Image:
    """Build the plugin, assemble the image and return it; raises LookupError if a program is missing."""
    with scratch.directory() as built:
        resources.build_plugin(built)
        return images.assemble(IMAGE, files(built))


def files(built: Path) -> list[Entry]:
    """Return the image's files, given the directory of a built plugin."""
    own = [
        Entry(f"{HERE}/{path.relative_to(built)}", path.read_bytes(), mode=path.stat().st_mode & 0o777)
        for path in sorted(built.rglob("*"))
        if path.is_file()
    ]
    return [
        Entry("bin", kind=images.LINK, target=images.PROGRAMS),
        Entry(f"{HERE}/install.sh", SCRIPT.read_bytes(), mode=0o755),
        *own,
        *images.programs(TOOLS),
    ]
