"""What a box is made of: the packages we ask for, and the versions of all that this comes to.

Both are in ``debian.yaml``. Which mirrors they come from is said by who builds, or by the apt configuration
of the machine that builds; none is known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from ruamel.yaml import YAML

from testbed import resources

FILE = resources.BOX / "debian.yaml"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# What each of this machine's package sources is; parsed by apt itself, whatever they are written in.
INDEX_TARGETS = (
    "apt-get", "indextargets", "--format", "$(ORIGIN)|$(RELEASE)|$(REPO_URI)", "Created-By: Packages",
)  # fmt: skip

_URL = re.compile(r"[a-z][a-z+]*:/[!-~]+")  # what apt takes, on one line
_USER = re.compile(r"(?<=://)[^/]*@")

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


def mirrors(recipe: Recipe, index_targets: str, mirror: str = "", security: str = "") -> dict[str, str]:
    """Return where each release of a box comes from: what is named, or else what is among index targets.

    Updates come from where the suite itself does, unless this machine has others. Raises LookupError for what
    is no URL, and for a release that nobody has named a mirror of.
    """
    for option, url in (("--mirror", mirror), ("--security", security)):
        if url and not _URL.fullmatch(url):
            raise LookupError(f"{option}: must be the URL of a mirror, as in http://HOST/debian, not {url!r}")
    listed = [line.split("|") for line in index_targets.splitlines()]
    own = {release: uri for origin, release, uri in listed if origin == "Debian"}
    suite, updates, fixes = recipe.suite, f"{recipe.suite}-updates", f"{recipe.suite}-security"
    main = mirror or own.get(suite, "")
    found = {suite: main, updates: mirror or own.get(updates, main), fixes: security or own.get(fixes, "")}
    lacking = {suite: "--mirror URL", fixes: "--security URL"}
    missing = [release for release in lacking if not found[release]]
    if missing:
        raise LookupError(
            f"box.build: this machine's apt sources have no {' and no '.join(missing)} of Debian; "
            f"name a mirror: {' '.join(lacking[release] for release in missing)}"
        )
    return found


def sources(recipe: Recipe, mirrors: Mapping[str, str]) -> str:
    """Return package sources for apt."""
    components = " ".join(recipe.components)
    return "".join(
        f"deb [signed-by={KEYRING}] {uri} {release} {components}\n" for release, uri in mirrors.items()
    )


def kept(sources: str) -> str:
    """Return the package sources that a box keeps: the same, but without anybody's user and password."""
    return _USER.sub("", sources)


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
            "the mirror lacks what testbed/supplies/box/debian.yaml pins: " + "; ".join(words) + "\n"
            "Take what it has with ./invokew box.build --upgrade, which writes the pins again, or name "
            "mirrors that have kept the pinned versions, by --mirror and --security or in this machine's "
            "apt sources"
        )
