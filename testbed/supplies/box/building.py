"""Builds the box. Nothing is mounted and no machine is started.

mmdebstrap makes the system, and the tools of its file systems write it into the image of a disk. The BIOS
finds syslinux on a first, small partition with the kernel beside it; so the disk boots under KVM and under
plain emulation alike. Whatever would be random or of today is said instead, so that the same packages make
the same disk.

What a box is made of is in ``debian.yaml``: the packages we ask for, and the versions of all that this comes
to. Which mirrors they come from is said by who builds, or by the apt configuration of the machine that
builds; none is known here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from ruamel.yaml import YAML

from testbed import resources
from testbed.supplies.box import NAME

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
MBR = Path("/usr/lib/syslinux/mbr/mbr.bin")
TOOLS = {  # and the packages that have them
    "mmdebstrap": "mmdebstrap",
    "sfdisk": "fdisk",
    "mkfs.vfat": "dosfstools",
    "mcopy": "mtools",
    "syslinux": "syslinux",
    "mkfs.ext4": "e2fsprogs",
    "qemu-img": "qemu-utils",
}
PROXIES = ("apt-config", "dump", "--format", '%f "%v";%n', "Acquire::http::Proxy", "Acquire::https::Proxy")

EPOCH = "1735689600"  # 2025-01-01, the date of what has none of its own
SECTOR = 512
BLOCK = 4096
# All is written now, and nothing by the machines, in the background, while they are measured.
TIDY = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
BOOT_START, BOOT_SECTORS = 2048, 256 * 2048
ROOT_START = BOOT_START + BOOT_SECTORS
DISK_ID = "436f6e63"
ROOT_ID = "436f6e63-6f72-4465-8f72-6f6f74000000"

VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
LAST_LINES = 15

Say = Callable[[str], None]


class BoxError(RuntimeError):
    """A step failed; the message has the tool's own last words."""


def build(
    directory: Path, version: str, upgrade: bool, say: Say, mirror: str = "", security: str = ""
) -> Path:
    """Build the box into a directory, and return the catalogue by which Vagrant finds it there.

    With ``upgrade`` the pins are written again. Packages come from the mirrors that are named, or else from
    this machine's. Raises LookupError for a version that is none, programs that are missing, no mirror, or
    one that has other packages than the pinned.
    """
    if not VERSION.fullmatch(version):
        raise LookupError(f"--version: must be numbers, as in 12.0.1, not {version!r}")
    _demand_tools()
    wanted = read_recipe()
    if upgrade:
        wanted = wanted.model_copy(update={"pins": {}})
    sources = package_sources(wanted, find_mirrors(wanted, _output(INDEX_TARGETS), mirror, security))
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix="box-") as scratch:
        file = _build(_Workshop(Path(scratch)), wanted, sources, version, upgrade, say)
        box = file.replace(directory / file.name)
    found = box.with_suffix(".json")
    found.write_text(catalogue(box, version), encoding="utf-8")
    return found


def _build(workshop: _Workshop, wanted: Recipe, sources: str, version: str, upgrade: bool, say: Say) -> Path:
    try:
        say(f"installing Debian {wanted.suite}")
        packages = workshop.install(wanted, sources)
        if upgrade:
            write_pins(packages)
        else:
            check_pins(wanted, packages)
        say("writing the disk")
        disk = workshop.write_disk(wanted.disk * 10**9)
    finally:
        workshop.remove_system()
    say("packing the box")
    return workshop.pack(disk, wanted, packages, version)


def _demand_tools() -> None:
    missing = [package for tool, package in TOOLS.items() if shutil.which(tool, path=PATH) is None]
    if not MBR.is_file():
        missing.append("syslinux-common")
    if missing:
        raise LookupError(f"box.build: programs are missing: apt-get install {' '.join(missing)}")


def of_today() -> str:
    """Return the version of a box that is built now: later ones are higher."""
    return f"{datetime.now(UTC):%Y%m%d.%-H%M.0}"


def catalogue(box: Path, version: str) -> str:
    """Return Vagrant's description of where a version of the box is; a bare file would have no version."""
    with box.open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    where = {"name": "libvirt", "url": box.as_uri(), "checksum_type": "sha256", "checksum": checksum}
    described = {"name": NAME, "versions": [{"version": version, "providers": [where]}]}
    return json.dumps(described, indent=2) + "\n"


def add(found: Path) -> None:
    """Let Vagrant have a box. Raises BoxError."""
    argv = ["vagrant", "box", "add", "--force", str(found)]
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise BoxError(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()}")


def partitions() -> str:
    """Return the partition table for sfdisk: the BIOS's and the kernel's."""
    return (
        f"label: dos\nlabel-id: 0x{DISK_ID}\n"
        f"start={BOOT_START}, size={BOOT_SECTORS}, type=e, bootable\n"
        f"start={ROOT_START}, type=83\n"
    )


class _Workshop:
    """The files of one build, in a directory that goes away with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._root = directory / "root"
        # Who is not root is so in a user namespace, and there has the users of the system.
        self._as_root = [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--map-auto", "--"]

    def install(self, wanted: Recipe, sources: str) -> dict[str, str]:
        """Install Debian from package sources into a directory; return its packages with their versions."""
        archive, pins = self._directory / "root.tar", self._directory / "pins"
        pins.write_text(preferences(wanted.pins), encoding="utf-8")
        sources_file = self._directory / "sources"
        sources_file.write_text(without_passwords(sources), encoding="utf-8")
        self._run([
            "mmdebstrap", "--variant=minbase", "--format=tar", f"--include={','.join(wanted.packages)}",
            *(f"--aptopt={line}" for line in self._run(PROXIES).splitlines()),
            f"--setup-hook=upload {pins} /etc/apt/preferences.d/pins",
            f"--essential-hook=sync-in {resources.BOX / 'files'} /",
            f"--customize-hook={resources.BOX / 'customize'}",
            f"--customize-hook=upload {sources_file} /etc/apt/sources.list",
            wanted.suite, str(archive), "-",
        ], stdin=sources)  # fmt: skip
        self._root.mkdir()
        # Without devices: they are the kernel's own, and not for everybody to make.
        unpack = ["tar", "--extract", "--preserve-permissions", "--numeric-owner", "--exclude=./dev/*"]
        self._run([*self._as_root, *unpack, "--file", str(archive), "--directory", str(self._root)])
        archive.unlink()
        listed = self._run([
            "dpkg-query", f"--admindir={self._root / 'var/lib/dpkg'}", "--show",
            "--showformat=${Package} ${Version}\\n",
        ])  # fmt: skip
        return dict(line.split() for line in listed.splitlines())

    def write_disk(self, size: int) -> Path:
        """Write the system into the image of a disk of so many bytes."""
        disk = self._directory / "disk"
        with disk.open("wb") as image:
            image.truncate(size)
        self._run(["sfdisk", "--quiet", str(disk)], stdin=partitions())
        self._run([
            "mkfs.vfat", "-F", "16", "--invariant", "-n", "BOOT", f"--offset={BOOT_START}", str(disk),
            str(BOOT_SECTORS * SECTOR // 1024),
        ])  # fmt: skip
        boot = [self._root / "vmlinuz", self._root / "initrd.img", resources.BOX / "syslinux.cfg"]
        self._run(["mcopy", "-i", f"{disk}@@{BOOT_START * SECTOR}", *map(str, boot), "::/"])
        self._run(["syslinux", "--install", "--offset", str(BOOT_START * SECTOR), str(disk)])
        self._run([
            *self._as_root, "mkfs.ext4", "-q", "-F", "-L", "root", "-U", ROOT_ID, "-b", str(BLOCK),
            "-E", f"offset={ROOT_START * SECTOR},hash_seed={ROOT_ID},{TIDY}", "-d", str(self._root),
            str(disk), str((size - ROOT_START * SECTOR) // BLOCK),
        ])  # fmt: skip
        with disk.open("r+b") as image:
            image.write(MBR.read_bytes())
        return disk

    def remove_system(self) -> None:
        """Remove what may belong to the system's users."""
        self._run([*self._as_root, "rm", "-rf", "--one-file-system", str(self._root)])

    def pack(self, disk: Path, wanted: Recipe, packages: Mapping[str, str], version: str) -> Path:
        """Return the box: the disk, and what Vagrant and people are to know of it."""
        contents = self._directory / "contents"
        contents.mkdir()
        self._run(["qemu-img", "convert", "-O", "qcow2", str(disk), str(contents / "box.img")])
        shutil.copy(resources.BOX / "Vagrantfile", contents)
        metadata = {
            "provider": "libvirt",
            "format": "qcow2",
            "virtual_size": -(-disk.stat().st_size // 2**30),
        }
        about = {"name": NAME, "version": version, "suite": wanted.suite}
        (contents / "metadata.json").write_text(json.dumps(metadata) + "\n", encoding="utf-8")
        (contents / "info.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
        (contents / "packages.txt").write_text(list_packages(packages), encoding="utf-8")
        file = self._directory / f"{NAME.replace('/', '-')}-{version}.box"
        self._run([
            "tar", "--create", "--sort=name", f"--mtime=@{EPOCH}", "--owner=0", "--group=0",
            "--numeric-owner", "--mode=u=rw,go=r,a+X", "--use-compress-program=gzip -1n",
            "--file", str(file), "--directory", str(contents), "--no-recursion",
            *sorted(each.name for each in contents.iterdir()),
        ])  # fmt: skip
        return file

    def _run(self, argv: Sequence[str], stdin: str = "") -> str:
        return _output(argv, stdin, {"TMPDIR": str(self._directory)})


def _output(argv: Sequence[str], stdin: str = "", besides: Mapping[str, str] | None = None) -> str:
    """Return what a tool writes, with an environment that makes the same of the same. Raises BoxError."""
    fixed = {"PATH": PATH, "LC_ALL": "C", "SOURCE_DATE_EPOCH": EPOCH, "E2FSPROGS_FAKE_TIME": EPOCH}
    done = subprocess.run(
        argv, input=stdin, capture_output=True, encoding="utf-8", errors="replace", check=False,
        env={**os.environ, **fixed, **(besides or {})},
    )  # fmt: skip
    if done.returncode != 0:
        text = "\n".join(done.stderr.strip().splitlines()[-LAST_LINES:])
        raise BoxError(f"{argv[0]} ended with {done.returncode}: {text}")
    return done.stdout


FILE = resources.BOX / "debian.yaml"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# What each of this machine's package sources is; parsed by apt itself, whatever they are written in.
INDEX_TARGETS = (
    "apt-get", "indextargets", "--format", "$(ORIGIN)|$(RELEASE)|$(REPO_URI)", "Created-By: Packages",
)  # fmt: skip

_URL = re.compile(r"[a-z][a-z+]*:/[!-~]+")  # what apt takes, on one line
_USER = re.compile(r"(?<=://)[^/]*@")

Package = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9+.-]+$")]
PackageVersion = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.+~:-]+$")]


class Recipe(BaseModel):
    """The contents of ``debian.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: Package
    components: list[Package]
    disk: int = Field(ge=2, le=2000, description="size of the disk, GB")
    packages: list[Package]
    pins: dict[Package, PackageVersion]


def read_recipe(file: Path = FILE) -> Recipe:
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


def find_mirrors(recipe: Recipe, index_targets: str, mirror: str = "", security: str = "") -> dict[str, str]:
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


def package_sources(recipe: Recipe, mirrors: Mapping[str, str]) -> str:
    """Return package sources for apt."""
    components = " ".join(recipe.components)
    return "".join(
        f"deb [signed-by={KEYRING}] {uri} {release} {components}\n" for release, uri in mirrors.items()
    )


def without_passwords(sources: str) -> str:
    """Return the package sources that a box keeps: the same, but without anybody's user and password."""
    return _USER.sub("", sources)


def preferences(pins: Mapping[str, str]) -> str:
    """Return apt preferences that take these versions and no others."""
    return "\n".join(
        f"Package: {package}\nPin: version {version}\nPin-Priority: 1001\n"
        for package, version in pins.items()
    )


def list_packages(packages: Mapping[str, str]) -> str:
    """Return the list of packages that a box has with it."""
    return "".join(f"{package} {version}\n" for package, version in sorted(packages.items()))


def check_pins(recipe: Recipe, packages: Mapping[str, str]) -> None:
    """Raise LookupError if these packages are not the pinned ones."""
    pins = recipe.pins
    differing = sorted(p for p in {*pins, *packages} if pins.get(p) != packages.get(p))
    if differing:
        differences = [
            f"{p} {packages.get(p, 'missing')} (pinned: {pins.get(p, 'not at all')})" for p in differing
        ]
        raise LookupError(
            "the mirror lacks what testbed/supplies/box/debian.yaml pins: " + "; ".join(differences) + "\n"
            "Take what it has with ./invokew box.build --upgrade, which writes the pins again, or name "
            "mirrors that have kept the pinned versions, by --mirror and --security or in this machine's "
            "apt sources"
        )
