"""All that machines need besides their distribution's packages, in one directory: it needs no internet there.

The programs are those that are kept of a version. The images of the control plane are assembled from them and
from this machine's etcd, as the pods' are: no registry is asked, and no machine has to reach one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testbed import resources
from testbed.supplies import addresses, cache, images, names, services, versions
from testbed.supplies.binaries import FLANNELD, Binaries
from testbed.supplies.images import WAIT, Entry
from testbed.supplies.versions import Version

MANIFEST = "manifest.json"
PROGRAMS = ("kubeadm", "kubelet", "kubectl")
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
# Those of the CNI project that shipped networks use.
REFERENCE = ("loopback", "bridge", "host-local", "bandwidth", "ptp", "firewall", "macvlan")
SITE = "testbed.local"  # which does not exist: see testbed.supplies.images
ETCD = f"{SITE}/etcd:1"
# Who works for clusters of some scenarios.
BESIDE = {addresses.IMAGE: addresses.START, services.IMAGE: services.START, names.IMAGE: names.START}
MAKE = "./invokew kubernetes.bundle --to"


@dataclass(frozen=True)
class Archive:
    """An image in a bundle."""

    name: str
    file: str
    digest: str


@dataclass(frozen=True)
class Bundle:
    """A directory with ``bin``, ``cni`` and ``images``, found complete and unchanged."""

    directory: Path
    version: Version
    sums: Mapping[str, str]  # SHA-256 by relative path
    images: tuple[Archive, ...]

    @property
    def files(self) -> list[str]:
        """The relative paths of all files."""
        return list(self.sums)

    @property
    def has_flanneld(self) -> bool:
        """Whether flannel itself is there."""
        return f"bin/{FLANNELD}" in self.files

    def below(self, part: str) -> list[str]:
        """Return the files of one of its directories."""
        return [file for file in self.files if file.startswith(f"{part}/")]

    @property
    def for_control_planes(self) -> list[Archive]:
        """The images that only masters need."""
        wanted = [ETCD, *(image_name(program, self.version) for program in CONTROL_PLANE)]
        return [one for one in self.images if one.name in wanted]

    @property
    def for_addresses(self) -> Archive:
        """The image of the controller that gives nodes their blocks. Raises LookupError if there is none."""
        return self._image(addresses.IMAGE)

    @property
    def for_services(self) -> Archive:
        """The image of services' proxies, and of who publishes hints. Raises LookupError if there is none."""
        return self._image(services.IMAGE)

    @property
    def for_names(self) -> Archive | None:
        """The image of who answers services' names, if it was made where that is."""
        return next((one for one in self.images if one.name == names.IMAGE), None)

    @property
    def for_pods(self) -> list[Archive]:
        """The images that every cell needs."""
        others = (*(one.name for one in self.for_control_planes), *BESIDE)
        return [one for one in self.images if one.name not in others]

    def _image(self, name: str) -> Archive:
        for one in self.images:
            if one.name == name:
                return one
        where = self.directory
        raise LookupError(f"--from: {where} has no image {name}: make it with {MAKE} {where}")


def image_name(program: str, version: Version) -> str:
    """Return what kubeadm calls the image of a component, given our site for its repository."""
    return f"{SITE}/{program}:v{version}"


def make(programs: Binaries, directory: Path) -> Bundle:
    """Write a bundle, in place of one that was there. Raises LookupError for what this machine lacks."""
    if directory.exists() and not (directory / MANIFEST).is_file() and any(directory.iterdir()):
        raise LookupError(f"--to: {directory} is neither empty nor a bundle: nothing is written there")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=directory.parent, prefix=".bundle-") as beside:
        staged = Path(beside) / "bundle"
        _copy_programs(programs, staged)
        archives = _write_images(programs, staged / "images")
        manifest = {
            "version": str(programs.version),
            "source": programs.source,
            "images": {one.name: {"file": one.file, "digest": one.digest} for one in archives},
            "sha256": cache.sha256(staged, _listed(staged)),
        }
        (staged / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        if directory.exists():
            directory.rename(Path(beside) / "replaced")
        staged.rename(directory)
    return read(directory)


def read(directory: Path) -> Bundle:
    """Return a bundle. Raises LookupError if there is none, or it is not what was written."""
    remedy = f"make it with {MAKE} {directory}"
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        recorded: dict[str, str] = dict(manifest["sha256"])
        archives = tuple(Archive(name, **one) for name, one in manifest["images"].items())
        version = versions.parse(manifest["version"])
    except FileNotFoundError:
        raise LookupError(f"--from: {directory} has no {MANIFEST}: {remedy}") from None
    except (ValueError, KeyError, TypeError):
        raise LookupError(f"--from: {directory / MANIFEST} is damaged: {remedy}") from None
    if missing := [file for file in recorded if not (directory / file).is_file()]:
        raise LookupError(f"--from: {directory} has no {', '.join(missing)}: {remedy}")
    found = cache.sha256(directory, recorded)
    if changed := [file for file in recorded if found[file] != recorded[file]]:
        raise LookupError(f"--from: {directory}: changed files: {', '.join(changed)}: {remedy}")
    return Bundle(directory.absolute(), version, recorded, archives)


def _copy_programs(programs: Binaries, staged: Path) -> None:
    wanted = {name: programs.path(name) for name in PROGRAMS}
    if FLANNELD in programs.programs:
        wanted[FLANNELD] = programs.path(FLANNELD)
    for part, files in (("bin", wanted), ("cni", _reference_plugins())):
        (staged / part).mkdir(parents=True)
        for name, source in files.items():
            shutil.copyfile(source, staged / part / name)
            (staged / part / name).chmod(0o755)


def _reference_plugins() -> dict[str, Path]:
    found = {}
    for name in REFERENCE:
        places = [Path(directory, name) for directory in resources.REFERENCE_PLUGINS]
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            raise LookupError(f"no CNI plugin {name} here: apt-get install containernetworking-plugins")
        found[name] = file
    return found


def _write_images(programs: Binaries, directory: Path) -> list[Archive]:
    directory.mkdir()
    contents = {
        images.PAUSE: images.pause_files(),
        images.TRAFFIC: images.traffic_files(),
        ETCD: images.programs({"etcd": "etcd-server"}),
        addresses.IMAGE: addresses.files(),
        services.IMAGE: services.files(),
        **({} if list(names.missing()) else {names.IMAGE: names.files()}),
        **{
            image_name(program, programs.version): [
                Entry(f"{images.PROGRAMS}/{program}", programs.path(program).read_bytes(), mode=0o755)
            ]
            for program in CONTROL_PLANE
        },
    }
    archives = []
    for name, files in contents.items():
        data, digest = images.render(name, files, BESIDE.get(name, WAIT))
        file = f"{name.rpartition('/')[2].replace(':', '-')}.tar"
        (directory / file).write_bytes(data)
        archives.append(Archive(name, f"images/{file}", digest))
    return archives


def _listed(directory: Path) -> list[str]:
    return sorted(str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file())
