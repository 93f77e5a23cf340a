"""What a box is made of: the packages we ask for, and the versions of all that this comes to.

Both are in ``debian.yaml``. Which mirror they come from is said by the machine that builds, in its own apt
configuration; a mirror's name is no part of a box.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from ruamel.yaml import YAML

from testbed import resources

FILE = resources.BOX / "debian.yaml"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
DEBIAN = "http://deb.debian.org"
MIRROR, SECURITY = f"{DEBIAN}/debian", f"{DEBIAN}/debian-security"
# What each of this machine's package sources is; parsed by apt itself, whatever they are written in.
INDEX_TARGETS = (
    "apt-get", "indextargets", "--format", "$(ORIGIN)|$(RELEASE)|$(REPO_URI)", "Created-By: Packages",
)  # fmt: skip

Package = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]
Version = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+~:-]+$")]


class Recipe(BaseModel):
    """The contents of ``debian.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: Package
    components: list[Package]
    disk: int = Field(ge=2, le=2000, description="size of the disk, GB")
    packages: list[Package]
    pins: dict[Package, Version]


def read(file: Path = FILE) -> Recipe:
    """Return the recipe."""
    return Recipe.model_validate(YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8")))


def write_pins(packages: Mapping[str, str], file: Path = FILE) -> None:
    """Write these versions into the recipe; the rest of the file stays as it is, comments and all."""
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    data = yaml.load(file.read_text(encoding="utf-8"))
    data["pins"] = dict(sorted(packages.items()))
    with file.open("w", encoding="utf-8") as out:
        yaml.dump(data, out)


def sources(recipe: Recipe, index_targets: str = "") -> str:
    """Return package sources for apt: the mirrors among some index targets, or else Debian's own."""
    listed = [line.split("|") for line in index_targets.splitlines()]
    mirrors = {release: uri for origin, release, uri in listed if origin == "Debian"}
    suite = recipe.suite
    wanted = {suite: MIRROR, f"{suite}-updates": MIRROR, f"{suite}-security": SECURITY}
    components = " ".join(recipe.components)
    return "".join(
        f"deb [signed-by={KEYRING}] {mirrors.get(release, default)} {release} {components}\n"
        for release, default in wanted.items()
    )


def preferences(pins: Mapping[str, str]) -> str:
    """Return apt preferences that take these versions and no others."""
    return "\n".join(
        f"Package: {package}\nPin: version {version}\nPin-Priority: 1001\n"
        for package, version in pins.items()
    )


def manifest(packages: Mapping[str, str]) -> str:
    """Return the list of packages that a box has with it."""
    return "".join(f"{package} {version}\n" for package, version in sorted(packages.items()))


def check(recipe: Recipe, packages: Mapping[str, str]) -> None:
    """Raise LookupError if these packages are not the pinned ones."""
    pins = recipe.pins
    differing = sorted(p for p in {*pins, *packages} if pins.get(p) != packages.get(p))
    if differing:
        words = [f"{p} {packages.get(p, 'missing')} (pinned: {pins.get(p, 'not at all')})" for p in differing]
        raise LookupError(
            "the mirror has not what testbed/supplies/box/debian.yaml pins: " + "; ".join(words) + "\n"
            "Take what it has with ./invokew box.build --upgrade, which writes the pins again, or let this "
            "machine's apt sources name a mirror that has kept the pinned versions"
        )
